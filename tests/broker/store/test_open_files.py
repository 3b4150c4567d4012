"""More stores than there may be open files."""

import random

import pytest

from jsctl.broker.store.checkpoint import CheckpointJob
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.message_store import MessageStore
from jsctl.broker.store.record import Record
from jsctl.broker.store.segments.files import StoreOptions
from jsctl.broker.store.segments.open_files import LOOKED_AT
from tests.support.sim_disk import SimDisk

STORES = 100
ROUNDS = 4
"""Each store closes some of its segments in these."""


def append(store: MessageStore, seq: int) -> None:
    frame = frame_of([Record(seq, seq, b"s", b"", b"%0200d" % seq)])
    store.append(frame, seq)


def crowded_disk() -> SimDisk:
    disk = SimDisk(random.Random(1))
    disk.crowded = True
    return disk


def stores_on(disk: SimDisk, options: StoreOptions) -> list[MessageStore]:
    return [MessageStore.open(disk, f"s{number}", options) for number in range(STORES)]


def has(store: MessageStore, last: int) -> bool:
    return [row[0] for row in store.load_range(1, last)] == list(range(1, last + 1))


def test_stores_take_turns_where_files_run_short() -> None:
    options = StoreOptions(500)
    stores = stores_on(crowded_disk(), options)
    for seq in range(1, ROUNDS + 1):
        for store in stores:
            append(store, seq)
            assert len(options.open_files) < LOOKED_AT
    assert all(has(store, ROUNDS) for store in stores)
    for store in stores:
        store.close()
    assert len(options.open_files) == 0


def test_what_finds_no_room_stays_open() -> None:
    disk, options = crowded_disk(), StoreOptions()
    stores = stores_on(disk, options)
    room, disk.capacity = disk.capacity, 0
    for store in stores:
        append(store, 1)
    assert all(has(store, 1) for store in stores)
    disk.capacity = room
    assert all([store.find_room() for store in stores])
    assert all(has(store, 1) for store in stores)


@pytest.mark.parametrize("fails", [False, True])
def test_what_is_written_anew_is_read_meanwhile(fails: bool) -> None:
    """Its new file is in its place before that is known, and files run short."""
    disk = SimDisk(random.Random(1))
    disk.crowded = True
    store = MessageStore.open(disk, "S-1/messages", StoreOptions(segment_bytes=500))
    for seq in range(1, 31):
        store.append(frame_of([Record(seq, seq, b"s", b"", bytes(50))]), seq)
    first = store.checkpoint()
    assert first is not None
    first.run()
    store.done(first)
    live = [seq for seq in range(1, 31) if seq % 3 == 0]
    store.remove([seq for seq in range(1, 31) if seq % 3], 31)
    want = [store.load(seq) for seq in live]
    job = store.checkpoint()
    assert isinstance(job, CheckpointJob) and job.rewrites
    assert [store.load(seq) for seq in live] == want
    job.run()
    assert all(one.made is not None for one in job.rewrites)
    for seqs in (live, live[::-1], live):
        assert [store.load(seq) for seq in seqs] == [want[live.index(seq)] for seq in seqs]
        assert store.load_many(live) == [tuple(one) for one in want if one is not None]
    store.failed(job) if fails else store.done(job)
    assert [store.load(seq) for seq in live] == want
    assert not store.lost
    store.check_totals()
