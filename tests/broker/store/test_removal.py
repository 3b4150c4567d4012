"""Removing many messages: their records are not read, and what they counted is known."""

import random
import struct
import tracemalloc
from collections.abc import Callable

import pytest

from jsctl.broker.errors import Damaged
from jsctl.broker.store import record
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.message_store import MessageStore, StoreOptions
from jsctl.broker.store.record import Record
from jsctl.broker.store.segments import segment
from jsctl.broker.store.stream_store import StreamStore
from jsctl.broker.subject.matching import Filters
from tests.support.sim_disk import SimDisk

MESSAGES = 3000
HEADERS = b"NATS/1.0\r\nA: b\r\n\r\n"
OPTIONS = StoreOptions(segment_bytes=40_000)
MIXED = Filters((b"a.*",))


def row(seq: int) -> Record:
    headers = HEADERS if seq % 3 == 0 else b""
    return Record(seq, 1000 + seq, b"%c.%d" % (b"ab"[seq % 2], seq % 7), headers, b"x" * 50)


class CountingDisk(SimDisk):
    """Counts bytes that are read."""

    read_bytes = 0

    def open(self, path: str, *, create: bool = False):  # type: ignore[no-untyped-def]
        file = super().open(path, create=create)
        read = file.read

        def counted(offset: int, length: int) -> bytes:
            self.read_bytes += length
            return read(offset, length)

        file.read = counted  # type: ignore[method-assign]
        return file


def filled() -> tuple[CountingDisk, MessageStore]:
    disk = CountingDisk(random.Random(1))
    store = MessageStore.open(disk, "s", OPTIONS)
    for mark, first in enumerate(range(1, MESSAGES, 10), 1):
        store.append(frame_of([row(seq) for seq in range(first, first + 10)]), mark)
    return disk, store


def counted(store: StreamStore) -> tuple[int, int]:
    """Bytes and digest from the records themselves."""
    size = digest = 0
    for one in store.load_range(1, MESSAGES):
        size += record.message_bytes(len(one[2]), len(one[3]), len(one[4]))
        (crc,) = struct.unpack_from("<I", store.read_raw([one[0]])[0])
        digest += (crc << 64) + one[0]
    return size, digest


CHANGES: dict[str, Callable[[StreamStore], int]] = {
    "a filter": lambda store: store.purge(MIXED, None, 0, 10**6),
    "a filter and a sequence": lambda store: store.purge(MIXED, MESSAGES - 50, 0, 10**6),
    "a filter and some kept": lambda store: store.purge(MIXED, None, 20, 10**6),
    "some kept": lambda store: store.purge(None, None, 20, 10**6),
    "a sequence": lambda store: store.purge(None, MESSAGES // 3, 0, 10**6),
    "subjects": lambda store: len(store.remove_oldest([(b"a.2", 90), (b"b.1", 80)], 10**6)),
}


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_records_are_not_read(change: Callable[[StreamStore], int], restarted: bool) -> None:
    disk, store = filled()
    if restarted:
        job = store.checkpoint(index=True)
        assert job is not None
        job.run()
        store.done(job)
        store.close()
        store = MessageStore.open(disk, "s", OPTIONS)
    before = store.messages
    disk.read_bytes = 0
    gone = change(store)
    assert before - gone == store.messages
    assert gone > 150
    # A table has 16 bytes for each record, the records 80 and more.
    assert disk.read_bytes < MESSAGES * 17
    assert (store.size_bytes, store.digest()) == counted(store)


def test_a_seal_that_does_not_tell_of_headers_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = segment.Table.encode
    plain = 0x7FFF_FFFF

    def without(self: segment.Table) -> bytes:
        (count,) = struct.unpack_from("<I", encode(self))
        length = len(self.seqs)
        lengths = struct.pack(f"<{length}I", *self.lengths)
        made = encode(self)
        at = 12 + 8 * length
        return struct.pack("<I", count & plain) + made[4:at] + lengths + made[at + len(lengths) :]

    with monkeypatch.context() as patch:
        patch.setattr(segment.Table, "encode", without)
        disk, store = filled()
        job = store.checkpoint(index=True)
        assert job is not None
        job.run()
        store.done(job)
        store.close()
    store = MessageStore.open(disk, "s", OPTIONS)
    assert store.purge(MIXED, None, 0, 10**6) == MESSAGES // 2
    assert (store.size_bytes, store.digest()) == counted(store)


def test_a_damaged_message_with_headers_counts_what_it_counted() -> None:
    disk, store = filled()
    whole = store.size_bytes
    path = next(path for path in disk.paths() if path.endswith("0001.seg"))
    at = disk.content(path).index(HEADERS)
    disk.open(path).write(at, [b"X"])
    with pytest.raises(Damaged):
        store.load(3)
    size = record.message_bytes(3, len(HEADERS), 50)
    assert store.size_bytes == whole - size


def test_the_front_goes_without_a_look_at_each_message() -> None:
    count, subjects = 100_000, 10
    store = MessageStore.open(SimDisk(random.Random(1)), "s", StoreOptions())
    for mark, first in enumerate(range(1, count, 1000), 1):
        rows = [
            Record(seq, 1, b"%d" % (seq % subjects), b"", b"") for seq in range(first, first + 1000)
        ]
        store.append(frame_of(rows), mark)
    tracemalloc.start()
    try:
        assert store.purge(None, count - 10, 0, 10**6) == count - 11
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The table of the segment has 16 bytes for each; a list of them would take 36 more.
    assert peak < 25 * count
    assert (store.first_seq, store.messages) == (count - 10, 11)
