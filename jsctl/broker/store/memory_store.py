"""The store of a memory stream: encoded records in a dictionary.

Records stay encoded, so that a message costs one object and copies to replicas need no work.
Nothing survives a restart; replicas bring a restarted one up by export and import.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from jsctl.broker.errors import Damaged
from jsctl.broker.store import record
from jsctl.broker.store.frame import Frame
from jsctl.broker.store.index import Facts, StoreIndex
from jsctl.broker.store.record import RECORD_OVERHEAD, Columns, Row
from jsctl.broker.store.segments.segment import RecordColumns
from jsctl.broker.store.stream_store import StoreJob, StreamStore
from jsctl.broker.store.views.places import Held, RecordPlace

MEMORY_OVERHEAD = 16
"""What a message counts in a memory stream's `bytes` beyond its own."""


def memory_message_bytes(subject: int, headers: int, payload: int) -> int:
    """What a message with parts of these lengths counts in a memory stream's `bytes`."""
    return MEMORY_OVERHEAD + subject + headers + payload


class MemoryRecords:
    """Implements `Records`: encoded records by their sequences."""

    def __init__(self, index: StoreIndex) -> None:
        self._index = index
        self._raw: dict[int, bytes] = {}
        self._held: dict[int, bytes] = {}
        """Removed since there was a view."""
        self._views = 0

    def message_bytes(self, subject: int, headers: int, payload: int) -> int:
        """What such a message adds to `bytes`."""
        return memory_message_bytes(subject, headers, payload)

    def count_bytes(self, found: Columns) -> int:
        """What the records of a frame that was written count."""
        return sum(self.sizes(found.seqs))

    @property
    def totals_known(self) -> bool:
        """Nothing is damaged in memory."""
        return True

    def clear(self) -> None:
        """Forget everything."""
        self._raw.clear()

    def hold(self) -> None:
        """Removed records are kept aside."""
        self._views += 1

    def release(self) -> None:
        """With the last view they go."""
        self._views -= 1
        if not self._views:
            self._held.clear()

    def places(self, seqs: Sequence[int]) -> list[RecordPlace]:
        """Here."""
        return [Held(seqs, self.read_raw(seqs)[0])]

    def read_raw(self, seqs: Sequence[int]) -> tuple[list[bytes], int]:
        """The encoded records."""
        return [self._of(seq) for seq in seqs], 0

    def _of(self, seq: int) -> bytes:
        raw = self._raw.get(seq)
        return self._held[seq] if raw is None else raw

    def _keep(self, seqs: Iterable[int]) -> None:
        if self._views:
            self._held.update((seq, self._raw[seq]) for seq in seqs)

    def read(self, seqs: Sequence[int], bytes_max: int) -> tuple[list[Row], int]:
        """The records, within `bytes_max`, but at least one."""
        raw = self._raw
        found: list[Row] = []
        total = 0
        for seq in seqs:
            data = raw[seq]
            total += len(data)
            if bytes_max and total > bytes_max and found:
                break
            found.append(record.decode_row(data))
        return found, 0

    def facts(self, seqs: Sequence[int]) -> Iterator[Facts]:
        """What the counters need to forget records."""
        for seq in seqs:
            data = self._raw[seq]
            crc, _, time_ns, subject = record.raw_facts(data)
            yield Facts(crc, len(data) - RECORD_OVERHEAD + MEMORY_OVERHEAD, time_ns, subject)

    def tally(self, seqs: Sequence[int]) -> tuple[int, int]:
        """Sums of sizes and checksums."""
        raws = list(map(self._raw.__getitem__, seqs))
        crcs = struct.unpack(f"<{len(raws)}I", b"".join([raw[:4] for raw in raws]))
        return sum(map(len, raws)) - len(raws) * (RECORD_OVERHEAD - MEMORY_OVERHEAD), sum(crcs)

    def sizes(self, seqs: Sequence[int]) -> list[int]:
        """What each record counts."""
        less = RECORD_OVERHEAD - MEMORY_OVERHEAD
        return [len(self._of(seq)) - less for seq in seqs]

    def time_of(self, seq: int) -> int | None:
        """Time of a record."""
        return record.raw_facts(self._raw[seq])[2]

    def path_of(self, seq: int) -> str:
        """Nowhere in particular."""
        return "memory"

    def write(self, frame: Frame, mark: int) -> None:
        """Keep the records of a frame."""
        found, buffer = frame.columns, frame.buffer
        bounds = pairwise([*found.offsets, len(buffer)])
        parts = [buffer[start:end] for start, end in bounds]
        self._raw.update(zip(found.seqs, parts, strict=True))

    def note_lost(self, some: RecordColumns, mark: int) -> None:
        """Memory has no damage that could be told of."""
        raise Damaged("damaged messages in memory", path="chunk")

    def note_removal(self, seqs: Sequence[int], mark: int) -> None:
        """Not needed: there is no restart."""

    def erase(self, seqs: Sequence[int]) -> None:
        """What is removed is forgotten at once."""

    def note_cut(self, first_seq: int, mark: int) -> None:
        """Not needed either."""

    def removed(self, seqs: Sequence[int]) -> None:
        """Forget records."""
        self._keep(seqs)
        for seq in seqs:
            del self._raw[seq]

    def truncated(self, first_seq: int, gone: Sequence[int]) -> None:
        """Forget all below a sequence."""
        self._keep(list(self._raw) if first_seq > self._index.last else gone)
        if first_seq > self._index.last:
            self._raw.clear()
        for seq in gone:
            del self._raw[seq]

    def reset(self) -> None:
        """Forget everything."""
        self._raw.clear()

    def note_state(self, mark: int) -> None:
        """Forget what the index does not have any more."""
        for seq in [seq for seq in self._raw if not self._index.is_live(seq)]:
            del self._raw[seq]

    def restore(self, raws: dict[int, bytes]) -> None:
        """Keep records again."""
        self._raw.update(raws)


class MemoryStore(StreamStore):
    """Messages of one stream in memory."""

    def __init__(self) -> None:
        index = StoreIndex()
        self._memory = MemoryRecords(index)
        super().__init__(index, self._memory)

    def checkpoint(self) -> StoreJob | None:
        """Nothing to do."""
        return None

    def done(self, job: StoreJob) -> None:
        """Never called, as there are no jobs."""

    def close(self) -> None:
        """Nothing to release."""

    def delete(self) -> None:
        """Forget everything."""
        self._memory.clear()
