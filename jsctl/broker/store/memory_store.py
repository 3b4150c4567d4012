"""The store of a memory stream: encoded records in a dictionary.

Records stay encoded, so that a message costs one object and copies to replicas need no work.
Nothing survives a restart; replicas bring a restarted one up by export and import.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise

from jsctl.broker.store import record
from jsctl.broker.store.record import RECORD_OVERHEAD, Columns, Row
from jsctl.broker.store.stream_store import Facts, StoreJob, StreamStore

MEMORY_OVERHEAD = 16
"""What a message counts in a memory stream's `bytes` beyond its own."""


def memory_message_bytes(subject: int, headers: int, payload: int) -> int:
    """What a message with parts of these lengths counts in a memory stream's `bytes`."""
    return MEMORY_OVERHEAD + subject + headers + payload


class MemoryStore(StreamStore):
    """Messages of one stream in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._raw: dict[int, bytes] = {}

    def message_bytes(self, subject: int, headers: int, payload: int) -> int:
        """What such a message adds to `bytes`."""
        return memory_message_bytes(subject, headers, payload)

    def durable_mark(self) -> int:
        """The mark: there is nothing that a restart would find, ever."""
        return self._mark

    def checkpoint(self) -> StoreJob | None:
        """Nothing to do."""
        return None

    def done(self, job: StoreJob) -> None:
        """Never called, as there are no jobs."""

    def close(self) -> None:
        """Nothing to release."""

    def delete(self) -> None:
        """Forget everything."""
        self._raw.clear()

    def read_raw(self, seqs: Sequence[int]) -> list[bytes]:
        raw = self._raw
        return [raw[seq] for seq in seqs]

    def _read(self, seqs: Sequence[int], bytes_max: int) -> list[Row]:
        raw = self._raw
        found: list[Row] = []
        total = 0
        for seq in seqs:
            data = raw[seq]
            total += len(data)
            if bytes_max and total > bytes_max and found:
                break
            found.append(record.decode_row(data))
        return found

    def _sizes(self, found: Columns) -> int:
        bodies = sum(len(self._raw[seq]) for seq in found.seqs)
        return bodies - len(found.seqs) * (RECORD_OVERHEAD - MEMORY_OVERHEAD)

    def _facts(self, seqs: Sequence[int]) -> Iterator[Facts]:
        for seq in seqs:
            data = self._raw[seq]
            crc, _, time_ns, subject = record.raw_facts(data)
            yield crc, len(data) - RECORD_OVERHEAD + MEMORY_OVERHEAD, time_ns, subject

    def _tally(self, seqs: Sequence[int]) -> tuple[int, int]:
        raws = list(map(self._raw.__getitem__, seqs))
        crcs = struct.unpack(f"<{len(raws)}I", b"".join([raw[:4] for raw in raws]))
        return sum(map(len, raws)) - len(raws) * (RECORD_OVERHEAD - MEMORY_OVERHEAD), sum(crcs)

    def _time_near(self, seq: int) -> int:
        return record.raw_facts(self._raw[seq])[2]

    def _wrote(self, frame: bytes, mark: int, found: Columns) -> None:
        bounds = pairwise([*found.offsets, len(frame)])
        parts = [frame[start:end] for start, end in bounds]
        self._raw.update(zip(found.seqs, parts, strict=True))

    def _removed(self, seqs: Sequence[int]) -> None:
        for seq in seqs:
            del self._raw[seq]

    def _truncated(self, first_seq: int, gone: Sequence[int]) -> None:
        if first_seq > self._last:
            self._raw.clear()
        for seq in gone:
            del self._raw[seq]

    def _reset_to(self, mark: int) -> None:
        self._raw.clear()

    def _noted(self, mark: int) -> None:
        for seq in [seq for seq in self._raw if not self.is_live(seq)]:
            del self._raw[seq]
