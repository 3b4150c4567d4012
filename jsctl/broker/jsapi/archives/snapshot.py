"""One stream on its way to whoever asked for a snapshot: read, packed, cut to chunks, sent.

Theory of operation. The store's view is read a portion at a time on the disk thread, which also
packs it. What is packed is cut to chunks, each sent with a subject for its acknowledgement; so
many may be unacknowledged. The next portion is read while the last ones are on their way, as long
as little waits to be sent. So a snapshot holds a few portions, however large the stream is.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from jsctl.api import status
from jsctl.api.consumer import ConsumerInfo
from jsctl.api.requests import StreamSnapshotRequest
from jsctl.backups import archive, s2
from jsctl.broker.accel.choice import archive_loops
from jsctl.broker.assets.replicas.listening import Listening
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.errors import Damaged
from jsctl.broker.interest.targets import Sink
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.jsapi.archives.archived_chain import document_of
from jsctl.broker.protocol.deliveries import OutgoingMessage
from jsctl.broker.store.record import Row
from jsctl.broker.store.views.view import Portion, StoreView
from jsctl.dataclass import dataclass

CHUNK_BYTES = 128 * 1024
CHUNK_BYTES_MIN, CHUNK_BYTES_MAX = 1024, 1024 * 1024
WINDOW_BYTES = 8 * 1024 * 1024
WINDOW_BYTES_MIN, WINDOW_BYTES_MAX = 1024, 32 * 1024 * 1024
PORTION_BYTES = 512 * 1024
AHEAD_BYTES = 512 * 1024
"""As long as less than this waits to be sent, the disk thread reads and packs on."""
ACK_NS = 5_000_000_000
"""So long after the last chunk somebody has to acknowledge one."""
INTEREST_NS = 2_000_000_000
"""So long it may take until whoever asked listens."""
REPAIR_NS = 5_000_000_000
"""So long a snapshot waits for messages that are damaged here, and perhaps are not elsewhere."""
LOOK_NS = 100_000_000
NAMED_MAX = 10
"""Ranges that an error names."""
END = b"NATS/1.0 204\r\n\r\n"


def clamped(asked: StreamSnapshotRequest) -> tuple[int, int]:
    """(bytes of a chunk, chunks that may be unacknowledged) for what somebody asked for."""
    chunk = asked.chunk_size or CHUNK_BYTES
    chunk = min(max(chunk, CHUNK_BYTES_MIN), CHUNK_BYTES_MAX)
    window = asked.window_size or WINDOW_BYTES
    window = min(max(window, WINDOW_BYTES_MIN), WINDOW_BYTES_MAX)
    return chunk, max(window, chunk) // chunk


def packed(rows: list[Row]) -> bytes:
    """Messages as they stand in an archive."""
    return s2.compressed(archive_loops().entries_bytes(rows))


@dataclass(slots=True)
class PortionReading:
    """One portion with the disk thread."""

    portion: Portion
    pack: bool
    out: bytes = b""

    def run(self) -> None:
        """Read and pack. Raises nothing."""
        self.portion.read()
        if self.portion.rows is not None and self.pack:
            self.out = packed(self.portion.rows)


@dataclass(slots=True)
class Snapshot:
    """See the module. `ended` is told once, with what went wrong or nothing."""

    context: ReplicaContext
    replica: StreamReplica
    request: ApiRequest
    asked: StreamSnapshotRequest
    ack_prefix: bytes
    """`$JS.SNAPSHOT.ACK.<stream>.<id>`."""
    ended: Callable[["Snapshot", str], None]
    answer: Callable[["Snapshot"], Iterator[bytes]]
    """Says what the archive begins with, when the checks are through; and that it begins."""
    began_ns: int
    infos: Mapping[str, ConsumerInfo] = field(default_factory=dict)
    """Of consumers that have no replica here."""
    sink: Sink = field(init=False)
    chain: dict[str, object] | None = field(init=False)
    """What the archive says of the stream's chain, if it has one."""
    _view: StoreView = field(init=False)
    _stream: Stream = field(init=False)
    _listening: Listening = field(init=False)
    _chunk: int = field(init=False)
    _window: int = field(init=False)
    _out: bytearray = field(default_factory=bytearray)
    _bad: list[tuple[int, int]] = field(default_factory=list)
    """Ranges that a check found damaged."""
    _checking: bool = False
    _portion: Portion | None = None
    """Is to be read, or was read and is damaged."""
    _reading: PortionReading | None = None
    _whole: bool = False
    """All is packed."""
    _over: bool = False
    _heard: bool = False
    """Whether somebody listened to the chunks yet."""
    _unacked: int = 0
    _index: int = 0
    _sent_ns: int = 0
    _repair_until_ns: int = 0

    def __post_init__(self) -> None:
        self.sink = Sink(self)
        self._stream = self.replica.stream
        self._view = self._stream.store.view()
        found = self._stream.chained.settled_with_gone(self._stream.applied)
        self.chain = None if found is None else document_of(*found)
        self._chunk, self._window = clamped(self.asked)
        self._listening = Listening(self.context, self.request.account)
        self._checking = self.asked.jsck
        if not self._checking:
            self._begin()

    @property
    def begun(self) -> bool:
        """Whether it was answered, so that chunks are expected."""
        return not self._checking

    @property
    def bounds(self) -> tuple[int, int]:
        """First and last sequence of what is shown."""
        return self._view.first_seq, self._view.last_seq

    def _begin(self) -> None:
        """The answer is out: chunks follow."""
        self._listening.to(self.ack_prefix + b".>", self.sink)
        self._out += s2.compressed(b"".join(self.answer(self)))
        self._sent_ns = self.context.now_ns

    # Once a turn

    def acked(self) -> None:
        """Acknowledgements came in."""
        self._unacked = max(self._unacked - len(self.sink.take()), 0)

    def work(self) -> None:
        """Send what may be sent, and see that more is read."""
        if self._over:
            return
        problem = self._problem()
        if problem:
            self.end(problem, status.header_block((500, problem)))
        elif self._checking:
            self._read_on()
        elif self._may_send():
            self._send()

    def _problem(self) -> str:
        replica = self.replica
        if replica.group.gone:
            return "stream not found"
        if replica.leading is None or replica.stream is not self._stream:
            return "leadership of the stream changed"
        return ""

    def _may_send(self) -> bool:
        now_ns, account = self.context.now_ns, self.request.account
        # Whoever asks may hear all of his inboxes by one pattern, and not listen to this one yet.
        if self.context.traffic.named(account, self.asked.deliver_subject.encode()):
            self._heard = True
        elif self._heard:
            self.end("no interest", status.header_block(status.NO_INTEREST))
            return False
        elif now_ns < self.began_ns + INTEREST_NS:
            return False
        if self._unacked >= self._window and now_ns >= self._sent_ns + ACK_NS:
            self.end("no flow response", status.header_block(status.NO_FLOW_RESPONSE))
            return False
        return True

    def _send(self) -> None:
        """Whole chunks as the window allows; the rest when there is no more."""
        said: list[OutgoingMessage] = []
        to, out, at = self.asked.deliver_subject.encode(), self._out, 0
        while len(out) - at >= self._chunk and self._unacked < self._window:
            self._index += 1
            self._unacked += 1
            reply = self.ack_prefix + b".%d.%d" % (self._chunk, self._index)
            said.append((to, reply, b"", bytes(out[at : at + self._chunk]), b""))
            at += self._chunk
        del out[:at]
        if said:
            self._sent_ns = self.context.now_ns
        if self._whole and len(out) < self._chunk:
            if out:
                said.append((to, b"", b"", bytes(out), b""))
            # As nats-server has it: an archive of less than one chunk ends without a status.
            self._say(said)
            self.end("", END if self._index else b"")
            return
        self._say(said)
        if len(out) < max(self._chunk, AHEAD_BYTES):
            self._read_on()

    def _say(self, said: list[OutgoingMessage]) -> None:
        if said:
            self.context.traffic.deliver(self.request.account, said)

    def end(self, problem: str, headers: bytes) -> None:
        """No more is sent; whoever listens is told so, and why."""
        self._over = True
        self._listening.end()
        self.sink = Sink()  # The former one holds this snapshot.
        self._view.close()
        if self.begun:
            self._say([(self.asked.deliver_subject.encode(), b"", headers, b"", b"")])
        self.ended(self, problem)

    # PortionReading

    def _read_on(self) -> None:
        """Have the next portion read, unless one is under way or all is read."""
        if self._reading is not None or self._whole:
            return
        try:
            if self._portion is None:
                self._portion = self._view.next_portion(PORTION_BYTES)
        except Damaged as damage:
            self._damaged(damage)
            return
        if self._portion is None:
            self._read_all()
            return
        self._reading = PortionReading(self._portion, not self._checking)
        self.context.groups.side_jobs.read(self._reading.run, self._read)

    def _read(self) -> None:
        """The disk thread is done with a portion."""
        reading, self._reading = self._reading, None
        if self._over or reading is None:
            return
        if reading.out:
            self._out += reading.out
        else:
            try:
                rows = self._view.settle(reading.portion)
            except Damaged as damage:
                self._damaged(damage)
                return
            if not self._checking:
                self._out += packed(rows)
        self._portion, self._repair_until_ns = None, 0
        if not self._checking and len(self._out) < AHEAD_BYTES:
            self._read_on()

    def _read_all(self) -> None:
        if not self._checking:
            self._whole = True
            self._out += s2.compressed(archive.end_bytes())
            self._send()
        elif self._bad:
            count = sum(last + 1 - first for first, last in self._bad)
            named = ", ".join(f"{first} to {last}" for first, last in self._bad[:NAMED_MAX])
            self.end(f"snapshot check detected {count} bad messages: {named}", b"")
        else:
            self._view.rewind()
            self._checking = False
            self._begin()
            self.work()

    def _damaged(self, damage: Damaged) -> None:
        """Wait until it is repaired from another replica; for so long. A check goes on behind."""
        now_ns, first, last = self.context.now_ns, damage.first_seq, damage.last_seq
        self._note_loss(first)
        if not self._repair_until_ns and self.replica.needs_message(first):
            self._repair_until_ns = now_ns + REPAIR_NS
        if now_ns < self._repair_until_ns:
            return
        self._repair_until_ns = 0
        if self._checking:
            self._bad.append((first, last))
            self._portion = None
            self._view.skip(last + 1)
            return
        text = f"messages {first} to {last} are damaged" if last > first else ""
        text = text or f"message {first} is damaged"
        self.end(text, status.header_block((500, "couldn't load next message: " + text)))

    def _note_loss(self, seq: int) -> None:
        """Have the store know of it, so that it is repaired."""
        try:
            self._stream.store.load(seq)
        except Damaged:
            pass

    def next_due_ns(self) -> int | None:
        """When `work` has something to do, though nothing happens."""
        if self._over or self._reading is not None:
            return None
        return self.context.now_ns + LOOK_NS
