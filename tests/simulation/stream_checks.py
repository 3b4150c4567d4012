"""What a stream holds, kept beside all servers from the entries that were committed.

The books are a replica of their own, in memory: servers that restart, catch up or take over whole
states must stand where it stands at the same index.
"""

from collections.abc import Collection

from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.meta.assignments import StreamAssignment
from jsctl.broker.jetstream.streams.entries import Messages, decode
from jsctl.broker.jetstream.streams.publish_headers import MSG_ID, STREAM_SOURCE, nats_fields
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.store.memory_store import MemoryStore
from jsctl.broker.store.record import Record
from jsctl.broker.store.stream_store import StreamStore
from tests.simulation.stream_model import StreamModel
from tests.simulation.violation import Violation
from tests.support.frames import decode_frame


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
        self.last = assignment.config.first_seq - 1 if assignment.config.first_seq > 1 else 0

    def apply(self, index: int, data: bytes) -> None:
        """Take one committed entry, once."""
        entry = decode(data)
        if isinstance(entry, Messages):
            self._messages(index, entry)
        self.model.apply(index, entry)
        self.stream.apply(index, entry)
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
        self.skipped.update(entry.skipped)
        for record in decode_frame(bytes(entry.frame.view)):
            mirrors = self.stream.config.mirror is not None
            if record.seq != self.last + 1 and not (mirrors and record.seq > self.last):
                raise Violation(f"{self.name} has {record.seq} behind {self.last}")
            self._take(record)
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


def lost_of(store: StreamStore) -> set[int]:
    """Messages whose bytes a replica reports as damaged."""
    if store.messages == store.retained_messages:
        return set()
    return {seq for low, high in store.state().lost for seq in range(low, high + 1)}
