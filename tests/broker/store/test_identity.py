"""The identity of a store outlives damage to one of its copies."""

import random

import pytest

from jsctl.broker.errors import Damaged, DiskFull
from jsctl.broker.store import identity
from jsctl.broker.store.identity import StoreIdentity
from tests.support.sim_disk import SimDisk

FIRST = b"0123456789abcdef"
OTHER = b"fedcba9876543210"


def made() -> SimDisk:
    disk = SimDisk(random.Random(1))
    known = identity.read_or_create(disk, "n1", "east", FIRST)
    assert known == StoreIdentity("n1", "east", FIRST)
    return disk


def test_it_stays_the_same_through_crashes() -> None:
    disk = made()
    disk.crash()
    assert identity.read_or_create(disk, "n1", "east", OTHER).incarnation == FIRST
    renamed = identity.read_or_create(disk, "n1", "west", OTHER)
    assert renamed == StoreIdentity("n1", "west", FIRST, 2)
    disk.crash()
    assert identity.read(disk) == renamed


def test_every_flipped_bit_and_cut_of_one_copy_is_harmless() -> None:
    disk = made()
    for slot in ("identity.0", "identity.1"):
        image = disk.content(slot)
        for bit in range(8 * len(image)):
            disk.flip_bit(slot, bit)
            assert identity.read(disk) == StoreIdentity("n1", "east", FIRST)
            assert identity.decode(disk.content(slot)) is None
            disk.overwrite(slot, image)
        for length in range(len(image)):
            disk.overwrite(slot, image[:length])
            assert identity.read(disk) == StoreIdentity("n1", "east", FIRST)
        disk.overwrite(slot, image)


def test_a_copy_that_cannot_be_read_is_as_good_as_damaged() -> None:
    disk = made()
    disk.unreadable = [("identity.0", 0, 1)]
    assert identity.read(disk) == StoreIdentity("n1", "east", FIRST)
    disk.unreadable.append(("identity.1", 0, 1))
    with pytest.raises(Damaged, match="no copy"):
        identity.read(disk)


def test_a_lost_identity_is_not_quietly_replaced() -> None:
    disk = made()
    for slot in ("identity.0", "identity.1"):
        disk.overwrite(slot, b"")
    with pytest.raises(Damaged):
        identity.read(disk)
    for slot in ("identity.0", "identity.1"):
        disk.remove(slot)
    disk.make_directory("wal")
    with pytest.raises(Damaged, match="the identity is missing"):
        identity.read_or_create(disk, "n1", "east", OTHER)


def test_a_crash_while_creating_leaves_one_or_none() -> None:
    for seed in range(30):
        disk = SimDisk(random.Random(seed))
        disk.fail_syncs = 0
        file = disk.open("identity.0.new", create=True)
        file.write(0, [b"half"])
        disk.crash()
        assert identity.read_or_create(disk, "n1", "", OTHER).incarnation == OTHER


def test_what_was_made_without_room_for_its_second_copy_gets_that_at_the_next_start() -> None:
    disk = SimDisk(random.Random(1))
    size = len(identity.encode(StoreIdentity("n1", "east", FIRST)))
    disk.capacity = 2 * size - 1
    with pytest.raises(DiskFull):
        identity.read_or_create(disk, "n1", "east", FIRST)
    assert disk.exists("identity.0")
    assert not disk.exists("identity.1")
    disk.capacity = 1 << 20
    assert identity.read_or_create(disk, "n1", "east", OTHER).incarnation == FIRST
    assert disk.content("identity.1") == disk.content("identity.0")
    disk.crash()
    assert disk.content("identity.1") == disk.content("identity.0")


def test_a_copy_that_is_missing_beside_data_is_left_to_whoever_tells_of_damage() -> None:
    disk = made()
    disk.remove("identity.1")
    disk.make_directory("log")
    disk.open("log/1", create=True).write(0, [b"x"])
    assert identity.read_or_create(disk, "n1", "east", OTHER).incarnation == FIRST
    assert not disk.exists("identity.1")
