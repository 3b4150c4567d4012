"""More stores than there may be open files."""

import random

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
