"""Direct gets: any replica that is fresh answers, on its own subscription in one queue group."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.assets.assets import StreamKey
from jsctl.broker.assets.engine import Engine
from jsctl.broker.assets.replicas.listening import Listening
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.errors import Damaged
from jsctl.broker.handlers.decisions import Reply
from jsctl.broker.interest.targets import Captured, Sink
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.jsapi.deciding.damaged_reads import DamagedReads
from jsctl.broker.jsapi.direct_responder import DirectGetResponder, ReplicaSink
from jsctl.broker.raft.types import StandingKind
from jsctl.broker.sessions.last_line import LastLine, client_of
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.broker.handlers import direct
else:
    direct = lazy.module("jsctl.broker.handlers.direct")

FRESH_NS = 1_000_000_000
"""A replica that has not heard its leader for this long does not answer."""
PIECES_PER_TURN = 4
"""Of batches that are under way; a piece is some hundred messages."""
BATCHES_MAX = 1_000
"""Batches under way; what is asked for beyond them ends with its first piece."""
LATE_MAX = 10_000
"""Gets that wait for what is committed to be applied, and those that wait for a leader; beyond them
nobody is answered."""
LEADERLESS_NS = 2_000_000_000
"""So long a get waits for its replica to hear a leader, and what it says."""
LOOK_NS = 50_000_000
"""So often it is looked whether it does."""
UNANSWERED = b"NATS/1.0 503\r\n\r\n"
"""What clients get where nobody listens: no replica can answer for now."""
DIRECT_QUEUE = b"_sys_"
WORDS = b"DIRECT.GET."
"""What follows the prefix of the API in subjects."""


@dataclass(slots=True)
class OpenBatch:
    """An answer that goes on in the next turns."""

    replica: StreamReplica
    stream: Stream
    reply: bytes
    client: int
    pieces: "Iterator[direct.Piece]"


@dataclass(slots=True)
class LateGet:
    """A get that waits for its replica."""

    responder: DirectGetResponder
    captured: Captured
    index: int | None
    """What has to be applied first; None: all that the log has at the end of this turn."""
    until_ns: int
    """So long it waits for a leader, or to hear that an entry is committed."""


@dataclass(slots=True)
class DirectGets:
    """All streams of this server."""

    engine: Engine
    _dropped: int = 0
    """Rests of batches that nobody gets, and gets, because too many were under way."""
    _responders: dict[tuple[StreamKey, str], DirectGetResponder] = field(default_factory=dict)
    """By the stream that answers and the one that is asked."""
    batches: deque[OpenBatch] = field(default_factory=deque)
    """What the next turn has to go on with. Only changed here."""
    late: list[LateGet] = field(default_factory=list)
    """Gets for replicas that know of more than they have applied: what a client was told to be
    stored, here or at the origin of a mirror, may be among it. Only changed here."""
    leaderless: list[LateGet] = field(default_factory=list)
    """Gets that came while their replica had no leader, as another one is elected."""
    _look_ns: int = 0
    """When it is looked whether these have one."""
    damaged: DamagedReads = field(init=False)
    """Reads that wait for a repair."""

    def __post_init__(self) -> None:
        self.damaged = DamagedReads(self.engine.context)

    @property
    def waits(self) -> bool:
        """Whether gets wait for anything."""
        return bool(self.batches or self.late or self.leaderless or self.damaged.waiting)

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do, if nothing is repaired before."""
        due_ns = self.damaged.next_due_ns()
        if not self.leaderless:
            return due_ns
        return self._look_ns if due_ns is None else min(self._look_ns, due_ns)

    def take_dropped(self) -> int:
        """How many batches ended early, and gets have no answer, since the last call."""
        dropped, self._dropped = self._dropped, 0
        return dropped

    def go_on(self, line: LastLine) -> None:
        """The next pieces of batches, of each in turn; a turn is kept short."""
        for _ in range(min(PIECES_PER_TURN, len(self.batches))):
            batch = self.batches.popleft()
            line.run(batch.client, self._piece, batch)

    def _piece(self, batch: OpenBatch) -> None:
        replica = batch.replica
        # A stream that was deleted, or replaced by a received state, has closed its files.
        if replica.group.gone or replica.stream is not batch.stream or not self._hears(replica):
            return
        some = next(batch.pieces, None)
        if isinstance(some, Damaged):
            self._await_repair(batch, some)
        elif some is not None:
            self._say(replica, batch.reply, some)
            self.batches.append(batch)

    def _await_repair(self, batch: OpenBatch, damage: Damaged) -> None:
        """A batch goes on when what it stands in front of is repaired, or ends there."""

        def again(final: bool) -> None:
            if final:
                self._say(batch.replica, batch.reply, (direct.refusal(damage),))
            else:
                self.batches.append(batch)

        self.damaged.wait(batch.replica, damage, again)

    def tick(self, line: LastLine) -> None:
        """Take up what waited for a repair, or for a leader."""
        self.damaged.tick()
        if self.leaderless and self.engine.context.now_ns >= self._look_ns:
            leaderless, self.leaderless = self.leaderless, []
            for get in leaderless:
                self._serve_late(get, line)

    def refresh(self) -> None:
        """Listen for fresh replicas, no longer for others."""
        wanted: dict[tuple[StreamKey, str], StreamReplica] = {}
        for key, replica in self.engine.assets.streams.items():
            config = replica.stream.config
            if config.allow_direct and self.fresh(replica):
                wanted[key, key[1]] = replica
            if config.mirror_direct and config.mirror is not None and _mirrors_well(replica):
                wanted[key, config.mirror.name] = replica
        for at in [at for at, one in self._responders.items() if wanted.get(at) is not one.replica]:
            self._close(at)
        for at, replica in wanted.items():
            if at not in self._responders:
                self._open(at, replica)

    def serves(self, key: StreamKey) -> None:
        """The leader of a stream is about to answer its creation: listen by then."""
        replica = self.engine.assets.streams.get(key)
        if replica is None or not replica.stream.config.allow_direct:
            return
        if (key, key[1]) not in self._responders:
            self._open((key, key[1]), replica)

    def let_go(self, key: StreamKey) -> None:
        """A stream may be gone: another one of its name must not share its gets with it."""
        responder = self._responders.get((key, key[1]))
        if responder is not None and self.engine.assets.streams.get(key) is not responder.replica:
            self._close((key, key[1]))

    def fresh(self, replica: StreamReplica) -> bool:
        """Whether a replica may answer: whole, hearing its leader, and with all that it said."""
        raft = replica.group.raft
        return replica.group.leading or (raft.applied >= raft.commit and self._hears(replica))

    def _hears(self, replica: StreamReplica) -> bool:
        """Whether it leads, or is whole and hears its leader."""
        group = replica.group
        if group.leading:
            return True
        if group.raft.standing.kind is not StandingKind.WHOLE or not group.leader:
            return False
        near = self.engine.cluster.silent_ns(group.leader) < FRESH_NS
        return near and self.engine.context.me in group.raft.members.voters

    def listen_anew(self, account: str) -> None:
        """An account has come, or is gone, or its JetStream: the next look opens its responders
        anew."""
        for at, responder in list(self._responders.items()):
            if responder.replica.key[0] == account:
                self._close(at)

    def _open(self, at: tuple[StreamKey, str], replica: StreamReplica) -> None:
        key, asked = at
        listening = Listening(self.engine.context, key[0])
        responder = DirectGetResponder(replica, listening, asked)
        for get in (*self.late, *self.leaderless):
            # It has listened before: those who ask from now on wait no longer than these.
            if get.responder.replica is replica:
                responder.doubts_like(get.responder)
        # A mirror is not asked first: it may lack what those who ask have just stored.
        sink = ReplicaSink(responder) if asked == key[1] else Sink(responder)
        for prefix in self.engine.context.api_prefixes:
            head = prefix + WORDS + asked.encode()
            for pattern in (head, head + b".>"):
                listening.to(pattern, sink, DIRECT_QUEUE)
        self._responders[at] = responder

    def _close(self, at: tuple[StreamKey, str]) -> None:
        self._responders.pop(at).listening.end()

    def take(self, sink: Sink, line: LastLine) -> bool:
        """Answer what a responder captured; False if the sink is not a responder's."""
        responder = sink.owner
        if not isinstance(responder, DirectGetResponder):
            return False
        self.answer(responder, sink, line)
        return True

    def answer(self, responder: DirectGetResponder, sink: Sink, line: LastLine) -> None:
        """Answer what a responder captured."""
        for captured in sink.take():
            if captured[1]:
                self._serve(responder, captured, line)

    def answer_late(self, line: LastLine) -> None:
        """What was committed is applied, as far as it can be: answer who waited for that."""
        late, self.late = self.late, []
        for get in late:
            if get.index is None:
                get.index = get.responder.replica.group.raft.last_index
            self._serve_late(get, line)

    def _serve(self, responder: DirectGetResponder, captured: Captured, line: LastLine) -> None:
        replica = responder.replica
        until_ns = self.engine.context.now_ns + LEADERLESS_NS
        if replica.leading is not None and replica.stream.config.mirror is not None:
            self._keep(LateGet(responder, captured, None, until_ns), self.late)
            return
        group, index = replica.group, 0
        if not group.leading and group.raft.last_index > group.raft.commit:
            # Of what is here some may be acknowledged to the one who reads, by the leader.
            index = group.raft.last_index
            if responder.doubtful != index:
                responder.doubtful, responder.doubted_until_ns = index, until_ns
                self.engine.groups.ask(group)
            until_ns = responder.doubted_until_ns
        self._serve_late(LateGet(responder, captured, index, until_ns), line)

    def _serve_late(self, get: LateGet, line: LastLine) -> None:
        replica = get.responder.replica
        if replica.group.gone or not self._hears(replica):
            self._await_leader(get)
            return
        raft = replica.group.raft
        # A log may have become shorter, with another leader.
        has_all = raft.applied >= min(get.index or 0, raft.last_index)
        # Without a quorum none is told for now; what is committed is committed.
        given_up = not replica.group.leading and self.engine.context.now_ns >= get.until_ns
        if self.fresh(replica) and (has_all or given_up):
            client = client_of(get.captured[4])
            line.run(client, self._answer_one, get.responder, get.captured)
        else:
            self._keep(get, self.late)

    def _await_leader(self, get: LateGet) -> None:
        """Whoever is told that nobody can answer may ask again; who hears nothing waits in vain."""
        replica, now_ns = get.responder.replica, self.engine.context.now_ns
        if replica.group.gone or now_ns >= get.until_ns:
            self._say(replica, get.captured[1], (Reply(b"", UNANSWERED),))
            return
        if not self.leaderless:
            self._look_ns = now_ns + LOOK_NS
        self._keep(get, self.leaderless)

    def _keep(self, get: LateGet, where: list[LateGet]) -> None:
        if len(where) < LATE_MAX:
            where.append(get)
        else:
            self._dropped += 1

    def _answer_one(
        self, responder: DirectGetResponder, captured: Captured, final: bool = False
    ) -> None:
        subject, reply, headers, payload, _ = captured
        replica = responder.replica
        wanted = subject.partition(WORDS + responder.asked.encode())[2][1:]
        try:
            first, pieces = direct.begin(replica.stream, payload, wanted, headers)
        except Damaged as damage:
            if final:
                self._say(replica, reply, (direct.refusal(damage),))
            else:
                again = partial(self._answer_one, responder, captured)
                self.damaged.wait(replica, damage, again)
            return
        self._say(replica, reply, first.messages)
        if pieces is None:
            return
        if len(self.batches) >= BATCHES_MAX:
            self._dropped += 1
            return
        self.batches.append(
            OpenBatch(replica, replica.stream, reply, client_of(captured[4]), pieces)
        )

    def _say(self, replica: StreamReplica, reply: bytes, answers: Iterable[Reply]) -> None:
        said = [(reply, b"", one.headers, one.payload, b"") for one in answers]
        self.engine.context.traffic.deliver(replica.key[0], said)


def _mirrors_well(replica: StreamReplica) -> bool:
    """Whether a mirror is led here and has nearly all of its origin: others would answer with what
    is long over, and cannot tell."""
    return replica.leading is not None and replica.leading.inbound.is_caught_up
