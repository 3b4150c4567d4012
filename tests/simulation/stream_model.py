"""What a stream must hold after each entry of its log: the rules once more, as simple as can be.

Nothing of the broker's own stream is used but the decoding of entries and configs.
"""

from collections import deque
from collections.abc import Sequence

from jsctl.api.codec import loads
from jsctl.api.stream import StreamConfig
from jsctl.api.words import Retention
from jsctl.broker.jetstream.streams.entries import (
    Config,
    Delete,
    Expire,
    Messages,
    Purge,
    RemoveMessages,
    Scheduled,
    StreamEntry,
)
from jsctl.broker.jetstream.streams.publish_headers import ends_schedule, nats_fields
from jsctl.broker.store.record import Record
from tests.simulation.violation import Violation
from tests.simulation.world import SECOND
from tests.support.frames import decode_frame

JUDGED_BEFORE = 16
"""Entries that may be applied between the moment in which a message is judged and its own."""


class StreamModel:
    """Sequence -> (subject, time) of what is there."""

    def __init__(self, config: StreamConfig) -> None:
        self.config = config
        self.consumed: list[tuple[int, int]] = []
        """(sequence, index of the entry) of what was removed because nobody needs it any more;
        whoever looks takes them."""
        self.rows: dict[int, tuple[bytes, int]] = {}
        self.over: dict[int, int] = {}
        """Messages with a time to live -> when it is over."""
        self.immortal: set[int] = set()
        """Messages that outlive `max_age`."""
        self.outlived: list[tuple[int, int]] = []
        """(sequence, end) of those that were removed for it; whoever looks takes them."""
        self._counts = deque([0], maxlen=JUDGED_BEFORE)
        """How many messages there were behind each of the last entries."""

    def mortal(self) -> list[int]:
        """What is there and will go by itself."""
        ages = self.config.max_age > 0
        return [seq for seq in self.rows if seq in self.over or (ages and seq not in self.immortal)]

    def apply(self, index: int, entry: StreamEntry) -> None:
        """Take one entry."""
        self._take(index, entry)
        self._counts.append(len(self.rows))

    def _take(self, index: int, entry: StreamEntry) -> None:
        match entry:
            case Messages():
                self._store(entry)
            case Expire():
                self._expire(entry)
            case Delete():
                self.rows.pop(entry.seq, None)
            case RemoveMessages():
                self._remove(index, entry)
            case Purge():
                self._purge(entry)
            case Scheduled():
                self._drop([seq for seq, due_ns in entry.changes.items() if due_ns < 0])
            case Config():
                self.config = loads(StreamConfig, entry.config)
                self._limit()

    def _store(self, entry: Messages) -> None:
        before = len(self.rows)
        for record in decode_frame(bytes(entry.frame.view)):
            if record.seq not in entry.skipped:
                self.rows[record.seq] = (record.subject, record.time_ns)
            if self.config.allow_msg_ttl:
                self._learn_ttl(record)
            if self.config.allow_msg_schedules and record.headers:
                self._replace(record)
        self._limit()
        most = self.config.max_msgs
        # One that takes the place of the oldest on its subject does not make it any fuller; nor
        # fuller than it was when that was judged, if the oldest has gone meanwhile.
        if 0 < most < len(self.rows) and before < len(self.rows) > max(self._counts):
            raise Violation(f"{self.config.name} took a message above its limit of {most}")

    def _replace(self, record: Record) -> None:
        """Schedules take the place of all that is on their subject, and ends that of schedules."""
        fields = nats_fields(record.headers)
        gone = [fields[b"Nats-Scheduler"]] if ends_schedule(fields) else []
        if b"Nats-Rollup" in fields:
            gone.append(record.subject)
        rows = self.rows.items()
        self._drop([seq for seq, row in rows if row[0] in gone and seq < record.seq])

    def _learn_ttl(self, record: Record) -> None:
        if b"Nats-TTL: never" in record.headers:
            self.immortal.add(record.seq)
        elif b"Nats-TTL: 1s" in record.headers:
            self.over[record.seq] = record.time_ns + SECOND

    def _remove(self, index: int, entry: RemoveMessages) -> None:
        gone = [seq for seq in entry.seqs if self.rows.pop(seq, None)]
        if self.config.retention is not Retention.LIMITS:
            self.consumed += [(seq, index) for seq in gone]
            return
        for seq in gone:
            if seq not in self.over:
                raise Violation(f"{self.config.name} removes {seq}, which may stay")
            self.outlived.append((seq, self.over[seq]))

    def _limit(self) -> None:
        if self.config.max_msgs_per_subject > 0:
            for subject in {subject for subject, _ in self.rows.values()}:
                same = [seq for seq, row in self.rows.items() if row[0] == subject]
                self._drop(same[: -self.config.max_msgs_per_subject])
        if self.config.max_msgs > 0 and self.config.discard.value == "old":
            self._drop(list(self.rows)[: -self.config.max_msgs])

    def _drop(self, seqs: Sequence[int]) -> None:
        for seq in seqs:
            del self.rows[seq]

    def _expire(self, entry: Expire) -> None:
        for seq in [one for one in self.rows if one <= entry.up_to and one not in self.immortal]:
            age = entry.now_ns - self.rows.pop(seq)[1]
            if not 0 < self.config.max_age <= age:
                raise Violation(f"{self.config.name} lets {seq} expire after {age} ns")

    def _purge(self, entry: Purge) -> None:
        found = [
            seq
            for seq, (subject, _) in self.rows.items()
            if seq <= entry.up_to and entry.filter in (b"", subject)
        ]
        self._drop(found[: -entry.keep] if entry.keep else found)
