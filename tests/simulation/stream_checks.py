"""What a stream holds, kept beside all servers from the entries that were committed.

The books are a replica of their own, in memory: servers that restart, catch up or take over whole
states must stand where it stands at the same index.
"""

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

from jsctl.api.words import Retention
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.meta.assignments import StreamAssignment
from jsctl.broker.jetstream.scheduling.schedules import ScheduledMessage
from jsctl.broker.jetstream.streams.entries import (
    Delete,
    Messages,
    Purge,
    RemoveMessages,
    decode,
)
from jsctl.broker.jetstream.streams.publish_headers import MSG_ID, STREAM_SOURCE, nats_fields
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.store.memory_store import MemoryStore
from jsctl.broker.store.record import Record
from jsctl.broker.store.stream_store import StreamStore
from tests.simulation.batch_checks import Fast, check_batches, check_fast, note_fast
from tests.simulation.chain_checks import check_chain
from tests.simulation.counter_checks import Totals, check_total
from tests.simulation.schedule_checks import PlanBooks
from tests.simulation.stream_model import StreamModel
from tests.simulation.violation import Violation
from tests.support.frames import decode_frame

DEAD_LETTER = b"Dead-Letter-Sequence"


@cache
def is_memory(name: str) -> bool:
    """Whether a group keeps what it holds in memory only, as its name says."""
    kind = name.split("-")[1:2]
    return bool(kind) and kind[0].endswith("M")


class Books:
    """One stream."""

    def __init__(self, assignment: StreamAssignment) -> None:
        self.name = assignment.name
        self.model = StreamModel(assignment.config)
        self.stream = Stream(
            assignment.account, assignment.config, assignment.created_ns, MemoryStore()
        )
        self.values: dict[int, bytes] = {}
        """Sequence -> payload, for ever."""
        self.subjects: dict[int, bytes] = {}
        self.skipped: set[int] = set()
        """Sequences of messages that nobody was interested in."""
        self.indexes: dict[int, int] = {}
        """Sequence -> index of its entry."""
        self.ids: dict[bytes, tuple[int, int]] = {}
        """Message id -> (sequence, time) when it was stored last."""
        self.taken: dict[tuple[str, str], dict[int, bytes]] = {}
        """Of what was taken from other streams: (name, identity) -> sequence there -> payload."""
        self.batches: dict[bytes, int] = {}
        """Atomic batch -> sequence of its end."""
        self.totals: Totals = {}
        self.fast: Fast = {}
        self.plans = PlanBooks(self.name)
        self.letters: set[bytes] = set()
        """Subjects of dead letters."""
        self.last = assignment.config.first_seq - 1 if assignment.config.first_seq > 1 else 0

    def apply(self, index: int, data: bytes) -> None:
        """Take one committed entry, once."""
        entry = decode(data)
        if isinstance(entry, Messages):
            self._messages(index, entry)
        self.model.apply(index, entry)
        self.stream.apply(index, entry)
        if isinstance(entry, Delete | Purge | RemoveMessages):
            self.plans.removed(self.model.rows)
        self._compare_model()

    def _compare_model(self) -> None:
        rows, store = self.model.rows, self.stream.store
        first = min(rows, default=store.last_seq + 1)
        if store.messages != len(rows) or (rows and store.first_seq != first):
            raise Violation(
                f"{self.name} has {store.messages} messages from {store.first_seq} on, and should"
                f" have {len(rows)} from {first} on"
            )

    def _messages(self, index: int, entry: Messages) -> None:
        window_ns = self.stream.config.duplicate_window
        records = list(decode_frame(bytes(entry.frame.view)))
        if self.stream.config.allow_atomic:
            check_batches(self.name, records, entry.skipped, self.batches)
        self.skipped.update(entry.skipped)
        for record in records:
            mirrors = self.stream.config.mirror is not None
            if record.seq != self.last + 1 and not (mirrors and record.seq > self.last):
                raise Violation(f"{self.name} has {record.seq} behind {self.last}")
            self._judge(record)
            if self.stream.config.retention is not Retention.INTEREST:
                note_fast(self.name, record, self.fast)
            self.last = record.seq
            self.values[record.seq] = record.payload
            self.subjects[record.seq] = record.subject
            self.indexes[record.seq] = index
            message_id = nats_fields(record.headers).get(MSG_ID)
            if message_id is None:
                continue
            first, time_ns = self.ids.get(message_id, (0, 0))
            if first and record.time_ns < time_ns + window_ns:
                raise Violation(f"{self.name} has id {message_id!r} at {first} and {record.seq}")
            self.ids[message_id] = (record.seq, record.time_ns)

    def _judge(self, record: Record) -> None:
        """What must be true of it because of what it is."""
        config = self.stream.config
        if config.allow_msg_counter:
            check_total(self.name, record, self.model.rows, self.totals)
        elif config.allow_msg_schedules:
            self.plans.store(record)
        elif config.sources:
            self._take(record)
        if DEAD_LETTER in record.headers:
            self._note_letter(record)

    def _note_letter(self, record: Record) -> None:
        """Each has a subject of its own."""
        if record.subject in self.letters:
            raise Violation(f"{self.name} has {record.subject!r} again at {record.seq}")
        self.letters.add(record.subject)

    def _take(self, record: Record) -> None:
        """Of a source each message comes once, in its order."""
        header = nats_fields(record.headers).get(STREAM_SOURCE)
        if header is None:
            return
        origin, number, _, _, subject, identity = header.decode().split(" ")
        known = self.taken.setdefault((origin, identity), {})
        seq = int(number)
        if seq <= max(known, default=0) or subject.encode() != record.subject:
            raise Violation(f"{self.name} takes {seq} of {origin} behind {max(known)}")
        known[seq] = record.payload

    def acknowledged(self, seq: int, payload: bytes) -> int:
        """A publish was acknowledged: the index of its entry."""
        if seq not in self.values:
            raise Violation(f"{self.name} acknowledged {seq}, which is not committed")
        if seq not in self.skipped and self.values[seq] != payload:
            raise Violation(f"{self.name} acknowledged {seq}, which is another message")
        return self.indexes[seq]

    def fast_told(self, name: str, document: dict[str, Any], gaps: str) -> list[tuple[int, bytes]]:
        """A publisher is told of a fast batch: what that promises. Of what nobody was interested in
        nothing is known."""
        if self.stream.config.retention is Retention.INTEREST:
            return []
        return check_fast(self.name, name, document, gaps, self.fast)

    def due(self, now_ns: int) -> Iterator[str]:
        """What time has to bring about."""
        if self.model.mortal():
            yield f"{self.name} keeps what is to expire"
        late = self.plans.late(self.model.rows, now_ns)
        if late:
            yield f"{self.name} has not made what {late[:3]} are to make"

    def compare(self, server: str, unit: StreamReplica, may_lack: Collection[int] = ()) -> None:
        """A replica that stands at the same index is the same. What was damaged on its disk it
        may report as lost; even so it removed what the others removed."""
        mine, theirs = self.stream.store, unit.stream.store
        for what in ("retained_messages", "first_seq", "last_seq", "last_time_ns"):
            one, other = getattr(mine, what), getattr(theirs, what)
            if one != other:
                raise Violation(f"{server}: {what} of {self.name} is {other} instead of {one}")
        lost = lost_of(theirs)
        if not lost and mine.digest() != theirs.digest():
            raise Violation(f"{server}: other messages in {self.name}")
        if not lost <= set(may_lack):
            more = sorted(lost.difference(may_lack))[:9]
            raise Violation(f"{server}: {more} of {self.name} are lost, which were not damaged")
        if lost and mine.deleted() != theirs.deleted():
            raise Violation(f"{server}: other messages of {self.name} are removed")

    def compare_all(self, server: str, unit: StreamReplica, may_lack: Collection[int] = ()) -> None:
        """The same with everything that a replica knows."""
        self._compare_messages(server, unit)
        self.compare(server, unit, may_lack)
        unit.stream.store.check_totals()
        mine, theirs = self.stream, unit.stream
        if mine.dedupe.snapshot() != theirs.dedupe.snapshot():
            raise Violation(f"{server}: other ids in {self.name}")
        if mine.positions != theirs.positions:
            raise Violation(f"{server}: other positions of the sources of {self.name}")
        if mine.batches != theirs.batches:
            raise Violation(f"{server}: other fast batches in {self.name}")
        if planned(mine) != planned(theirs):
            raise Violation(f"{server}: other schedules in {self.name}")
        check_chain(server, mine, theirs)
        if mine.config != theirs.config:
            raise Violation(f"{server}: another config of {self.name}")
        if not all(map(mine.store.is_live, self.model.rows)):
            raise Violation(f"{server}: other messages in {self.name} than there should be")

    def _compare_messages(self, server: str, unit: StreamReplica) -> None:
        """Each message that can be read; a damaged one is found now, if not before."""
        theirs = unit.stream.store
        for seq in self.model.rows:
            try:
                found = theirs.load(seq)
            except Damaged:
                continue
            if found != self.stream.store.load(seq):
                raise Violation(f"{server}: another message {seq} in {self.name}")


def planned(stream: Stream) -> list[ScheduledMessage]:
    """The schedules of a stream whose messages are there."""
    known = stream.schedules
    found = [] if known is None else known.page(0, len(known))
    return [one for one in found if stream.store.is_live(one.seq)]


def lost_of(store: StreamStore) -> set[int]:
    """Messages whose bytes a replica reports as damaged."""
    if store.messages == store.retained_messages:
        return set()
    return {seq for low, high in store.state().lost for seq in range(low, high + 1)}
