"""What is to be erased is known behind a checkpoint that could not let it go, and a crash."""

import random

import pytest

from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.message_store import MessageStore, StoreOptions
from jsctl.broker.store.record import Record
from jsctl.broker.store.scrub import SummedCheck
from jsctl.broker.store.segments.erasures import ERASE_NAME
from tests.support.sim_disk import SimDisk

SECRET = b"SECRET" * 4
NOTE = f"s/{ERASE_NAME}"


def settle(store: MessageStore, index: bool = False) -> None:
    job = store.checkpoint(index)
    if job is not None:
        job.run()
        store.done(job)


def opened(disk: SimDisk) -> MessageStore:
    return MessageStore.open(disk, "s", StoreOptions(segment_bytes=400))


def held(disk: SimDisk) -> bool:
    paths = [one for one in disk.paths() if one.endswith(".seg")]
    assert paths
    return any(SECRET in disk.content(one) for one in paths)


def left_by(disk: SimDisk, index: bool = False) -> None:
    """A process dies behind the checkpoint that followed an erasure during a snapshot."""
    store = opened(disk)
    for mark, first in enumerate(range(1, 10, 3), 1):
        rows = [
            Record(seq, seq, b"s", b"", SECRET if seq == 2 else b"x" * 24)
            for seq in range(first, first + 3)
        ]
        store.append(frame_of(rows), mark)
    settle(store)
    store.view()
    store.remove([2], 10, erase=True)
    settle(store, index)
    assert held(disk), "the snapshot shows what there was"
    disk.crash()


@pytest.fixture
def disk() -> SimDisk:
    return SimDisk(random.Random(7))


@pytest.mark.parametrize("index", [False, True], ids=["segments", "index"])
def test_a_crash_forgets_none(disk: SimDisk, index: bool) -> None:
    left_by(disk, index)
    store = opened(disk)
    assert store.erasing, "its replica asks for a checkpoint"
    settle(store)
    assert not held(disk)
    assert not disk.exists(NOTE)
    assert [one[0] for one in store.load_range(1, 20)] == [1, 3, 4, 5, 6, 7, 8, 9]
    assert not opened(disk).erasing


def test_a_note_that_does_not_check_means_any(disk: SimDisk) -> None:
    left_by(disk)
    disk.flip_bit(NOTE, 130)
    store = opened(disk)
    assert store.erasing
    for _ in range(4):
        settle(store)
    assert not held(disk)
    assert not disk.exists(NOTE)


def test_a_note_that_goes_bad_is_written_anew(disk: SimDisk) -> None:
    left_by(disk)
    store = opened(disk)
    view = store.view()
    good = disk.content(NOTE)
    disk.flip_bit(NOTE, 130)
    check = next(
        one for one in store.resting() if isinstance(one, SummedCheck) and one.path == NOTE
    )
    while not check.done:
        check.step(disk, 1 << 20)
    assert check.damage
    assert store.suspect(check) == (1, 0)
    settle(store)
    assert disk.content(NOTE) == good
    view.close()
