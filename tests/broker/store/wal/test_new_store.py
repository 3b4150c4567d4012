"""A store made beside the loading of the broker: whole, or what an interrupted start leaves."""

import random

import pytest

from jsctl.broker.errors import DiskError
from jsctl.broker.store import identity
from jsctl.broker.store.identity import StoreIdentity
from jsctl.broker.store.wal.log import Wal, WalOptions
from jsctl.broker.store.wal.new_store import LOG_DIRECTORY, incarnation_of, make_store
from tests.support.sim_disk import SimDisk
from tests.support.wal_rig import commit

SEGMENT_BYTES = 1 << 16
OURS, LATER = incarnation_of("ours"), incarnation_of("later")


def test_it_is_what_a_start_finds() -> None:
    disk = SimDisk(random.Random(1))
    made = make_store(disk, "n1", "east", OURS, SEGMENT_BYTES)
    assert made is not None
    assert made.identity == identity.read(disk) == StoreIdentity("n1", "east", OURS)
    assert made.recovered.empty and not made.recovered.damage
    made.log.add_vote(b"g", 3, b"n1")
    commit(made.log)
    disk.crash()
    wal, recovered = Wal.open(disk, LOG_DIRECTORY, WalOptions(OURS, SEGMENT_BYTES))
    assert recovered.groups[b"g"].term == 3 and not recovered.damage
    wal.close()


def test_what_is_there_is_left_to_the_start() -> None:
    disk = SimDisk(random.Random(1))
    assert make_store(disk, "n1", "east", OURS, SEGMENT_BYTES) is not None
    paths = disk.paths()
    assert make_store(disk, "n1", "west", LATER, SEGMENT_BYTES) is None
    for slot in ("identity.0", "identity.1"):
        disk.remove(slot)
    assert make_store(disk, "n1", "east", LATER, SEGMENT_BYTES) is None, "data without an identity"
    assert disk.paths() == [path for path in paths if not path.startswith("identity")]


def syncs_of_one() -> int:
    disk = SimDisk(random.Random(1))
    make_store(disk, "n1", "east", OURS, SEGMENT_BYTES)
    return disk.syncs + disk.directory_syncs


@pytest.mark.parametrize("seed", range(8))
def test_a_power_cut_at_any_place_leaves_what_a_start_goes_on_with(seed: int) -> None:
    cut = 0
    for place in range(syncs_of_one()):
        disk = SimDisk(random.Random(seed))
        disk.power_fails_in = place
        try:
            make_store(disk, "n1", "east", OURS, SEGMENT_BYTES)
        except DiskError:
            cut += 1
        else:
            break
        known = identity.read_or_create(disk, "n1", "east", LATER)
        assert known.incarnation in (OURS, LATER)
        wal, recovered = Wal.open(disk, LOG_DIRECTORY, WalOptions(known.incarnation, SEGMENT_BYTES))
        assert recovered.empty and not recovered.damage and not recovered.unsure
        wal.close()
    assert cut >= 4
