"""Audits: each replica of a stream reads its messages, and the leader compares what they are.

Theory of operation. The leader asks each peer for a digest of its messages, a portion at a time
from the first one on, once it has applied the entry at which the audit began. A portion that has
the leader's digest is the same. One with another digest is looked at message by message, as
`differences` does it, because either replica may be further in the log: what is found then differs,
and the audit of that peer ends with its name and the first messages that are not the same.

Nothing is "same" that was not compared up to the end: a peer that is away, does not answer, or has
messages that cannot be read is said to be that. Nothing is changed anywhere.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import field
from enum import Enum

from jsctl.broker.assets.repair.differences import TRIES_MAX, Differences, Outcome
from jsctl.broker.assets.repair.portions import ReadPortion, read_portion
from jsctl.broker.assets.repair.range_server import (
    ANSWER_BYTES_AIMED,
    ASKED_MAX,
    BYTES_PER_SECOND,
    NANOSECONDS,
)
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.peers.items import AuditAnswer, AuditRequest
from jsctl.broker.peers.outbox import PeerOutbox
from jsctl.broker.store.seqset import SeqSet
from jsctl.dataclass import dataclass

ASK_AGAIN_NS = 2_000_000_000
BEHIND_NS = 100_000_000
"""A peer that has not come as far as it should is asked again after so long."""
BEHIND_TRIES_MAX = 300
OWN_BYTES_MAX = 4 * ANSWER_BYTES_AIMED
AUDITS_MAX = 100
"""Audits that a leader remembers."""


OTHER_CHAIN = "the chain is not the leader's"
LATER_CHAIN = "the chain begins later than the leader's"


class AuditState(Enum):
    """How far the audit of a replica is, or how it ended; the values are those of answers."""

    COMPARING = "comparing"
    SAME = "same"
    LEADER = "leader"
    """Its own messages are what others are compared with; it has read all of them."""
    DIFFERENT = "different"
    PROVED = "proved"
    """All its messages fit into its chain, and that is the leader's."""
    BROKEN = "broken"
    DAMAGED = "damaged"
    """All that can be read is the same."""
    OFFLINE = "offline"
    UNANSWERED = "unanswered"
    """It can be reached, and did not say all that it was asked."""


@dataclass(slots=True)
class AuditedReplica:
    """The audit of one replica."""

    peer: str
    begin: int
    """All that lies before it was compared."""
    state: AuditState = AuditState.COMPARING
    token: int = 0
    tries: int = 0
    until_ns: int = 0
    messages: int = 0
    difference: tuple[int, int] = (0, 0)
    damaged: SeqSet = field(default_factory=SeqSet)
    """Could not be compared: cannot be read there, or at the leader."""
    breaks: list[tuple[int, str]] = field(default_factory=list)
    """What does not fit into the chain."""
    unproved: int = 0
    """Messages up to here can be read, and the chain has no leaves of them any more."""
    held: AuditAnswer | None = None
    """An answer that speaks of an entry to which the leader has not come."""
    searching: bool = False
    """A portion is looked at message by message."""


@dataclass(slots=True)
class Audit:
    """Of a stream that this server leads, or led."""

    replica: StreamReplica
    id: int
    entry: int
    """The entry of the stream's log that every replica must have applied."""
    first: int
    last: int
    chained: bool
    """Each replica's messages are compared with its chain, not with those of the leader."""
    replicas: dict[str, AuditedReplica]

    @property
    def is_done(self) -> bool:
        """Whether nothing more is to come."""
        return all(one.state is not AuditState.COMPARING for one in self.replicas.values())


class Audits:
    """See the module. `online`: whether a peer can be reached."""

    def __init__(
        self,
        context: ReplicaContext,
        outbox: PeerOutbox,
        differences: Differences,
        online: Callable[[str], bool],
    ) -> None:
        self.audits: dict[tuple[str, bool], Audit] = {}
        """By the name of the group, and whether the chain is verified."""
        self._context = context
        self._outbox = outbox
        self._differences = differences
        self._online = online
        self._asked: deque[tuple[str, AuditRequest]] = deque()
        self._next_ns = 0
        self._token = 0

    # At the leader

    def start(self, replica: StreamReplica, *, chained: bool = False) -> Audit:
        """Begin an audit, or a verification of the chain; or return the one that goes on."""
        place, now_ns = (replica.group.name, chained), self._context.now_ns
        known = self.audits.pop(place, None)
        if known is None or known.is_done or known.replica is not replica:
            store, chain = replica.store, replica.stream.chained.chain
            # What is missing at the front breaks a chain, too.
            first = chain.since + 1 if chained and chain is not None else store.first_seq
            known = Audit(
                replica, now_ns, replica.standing_index, first, store.last_seq, chained, {}
            )
            for peer in replica.group.raft.members.all():
                known.replicas[peer] = AuditedReplica(peer, known.first)
            while len(self.audits) >= AUDITS_MAX:
                del self.audits[next(iter(self.audits))]
            for side in known.replicas.values():
                self._go_on(known, side)
        self.audits[place] = known
        return known

    def told(self, peer: str, answer: AuditAnswer) -> None:
        """A replica has read a portion."""
        group = self._context.groups.by_key(answer.key)
        for chained in (False, True):
            audit = None if group is None else self.audits.get((group.name, chained))
            side = None if audit is None else audit.replicas.get(peer)
            if audit is not None and side is not None and side.token == answer.token:
                self._take(audit, side, answer)
                return

    def _take(self, audit: Audit, side: AuditedReplica, answer: AuditAnswer) -> None:
        side.token = 0
        if not answer.up_to:
            side.until_ns = self._context.now_ns + BEHIND_NS
            return
        side.held, side.tries = answer, 0
        self._judge(audit, side)

    def _go_on(self, audit: Audit, side: AuditedReplica) -> None:
        """Ask for the next portion, or end."""
        if side.begin > audit.last or side.breaks:
            self._end(audit, side)
            return
        side.tries += 1
        now_ns = self._context.now_ns
        if not self._online(side.peer) and side.peer != self._context.me:
            side.state = AuditState.OFFLINE
            return
        if side.tries > (BEHIND_TRIES_MAX if not side.token else TRIES_MAX):
            side.state = AuditState.UNANSWERED
            return
        side.until_ns = now_ns + ASK_AGAIN_NS
        self._token += 1
        side.token = self._token
        group = audit.replica.group
        request = AuditRequest(
            group.key, side.token, audit.entry, side.begin, audit.last, audit.chained
        )
        if side.peer == self._context.me:
            self.asked(side.peer, request)
        else:
            self._outbox.parcel(side.peer).audits.append(request)

    def _end(self, audit: Audit, side: AuditedReplica) -> None:
        if side.breaks:
            side.state = AuditState.BROKEN
        elif side.damaged:
            side.state = AuditState.DAMAGED
        elif audit.chained:
            side.state = AuditState.PROVED
        elif side.peer == self._context.me:
            side.state = AuditState.LEADER
        else:
            side.state = AuditState.SAME

    def _judge(self, audit: Audit, side: AuditedReplica) -> None:
        answer, replica = side.held, audit.replica
        assert answer is not None, "there is something to judge"
        if answer.index > replica.standing_index:
            side.until_ns = self._context.now_ns + BEHIND_NS
            return
        side.held = None
        for first, last in answer.damaged:
            side.damaged.add_range(first, last)
        if audit.chained:
            self._compare_links(audit, side, answer)
        if audit.chained or side.peer == self._context.me:
            self._same(audit, side, answer)
            return
        if answer.end > replica.store.last_seq:
            self._differ(side, replica.store.last_seq + 1, answer.end)
            return
        own = read_portion(replica.stream, side.begin, answer.up_to, OWN_BYTES_MAX)
        for first, last in own.damaged.ranges():
            side.damaged.add_range(first, last)
        whole = not answer.damaged and not own.damaged and own.up_to == answer.up_to
        if whole and own.digest == answer.digest:
            self._same(audit, side, answer)
        else:
            self._look(audit, side, answer, own)

    def _compare_links(self, audit: Audit, side: AuditedReplica, answer: AuditAnswer) -> None:
        stream = audit.replica.stream
        # Settled, it has let go of all that a replica that is not further has let go of.
        chain = stream.chained.settled(stream.applied)
        is_known = chain is not None and answer.up_to > chain.anchor_seq
        own = chain.link_behind(answer.up_to) if chain is not None and is_known else b""
        side.breaks += answer.breaks
        if answer.link:
            if own and own != answer.link:
                side.breaks.append((side.begin, OTHER_CHAIN))
        elif answer.count and is_known:
            side.breaks.append((side.begin, LATER_CHAIN))
        elif answer.count:
            side.unproved = answer.up_to

    def _same(self, audit: Audit, side: AuditedReplica, answer: AuditAnswer) -> None:
        side.messages += answer.count
        side.begin = answer.up_to + 1
        self._go_on(audit, side)

    def _differ(self, side: AuditedReplica, first: int, last: int) -> None:
        side.state, side.difference = AuditState.DIFFERENT, (first, last)

    def _look(
        self, audit: Audit, side: AuditedReplica, answer: AuditAnswer, own: ReadPortion
    ) -> None:
        """The digests are not the same: find out whether, and where, the messages are not."""
        replica, up_to = audit.replica, min(answer.up_to, own.up_to)
        stop = min(up_to, answer.end)
        if stop < side.begin:
            # The peer had to have what the leader has behind its end.
            seqs = replica.store.live_seqs(side.begin, up_to, 1)
            if seqs:
                self._differ(side, seqs[0], up_to)
            else:
                self._same(audit, side, answer)
            return
        side.searching = True

        def wanted() -> bool:
            return self.audits.get((replica.group.name, False)) is audit

        def ended(outcome: Outcome) -> None:
            side.searching = False
            if outcome.first:
                self._differ(side, outcome.first, outcome.last)
            elif outcome.is_known:
                side.messages += answer.count
                side.begin = stop + 1
                self._go_on(audit, side)
            else:
                side.state = AuditState.UNANSWERED

        bounds = side.begin, stop
        self._differences.look_between(replica, side.peer, bounds, wanted, ended)

    # At a replica

    def asked(self, peer: str, request: AuditRequest) -> None:
        """A leader wants to know what this replica has."""
        if len(self._asked) < ASKED_MAX:
            self._asked.append((peer, request))

    def _answer_next(self, now_ns: int) -> None:
        peer, request = self._asked.popleft()
        group = self._context.groups.by_key(request.key)
        replica = None if group is None else group.unit
        if not isinstance(replica, StreamReplica):
            return
        index, end = replica.standing_index, replica.store.last_seq
        answer = AuditAnswer(request.key, request.token, index, 0, end, 0, b"", [], b"", [])
        # A chain follows the log alone: messages may be ahead of it, and would seem to be put in.
        is_behind = request.chained and replica.group.raft.applied < index
        if index >= request.entry and not is_behind:
            found = read_portion(
                replica.stream,
                request.first,
                request.last,
                ANSWER_BYTES_AIMED,
                chained=request.chained,
            )
            # Each answer costs a portion, even where few bytes were read.
            self._next_ns = now_ns + ANSWER_BYTES_AIMED * NANOSECONDS // BYTES_PER_SECOND
            damaged = list(found.damaged.ranges())
            answer = AuditAnswer(
                request.key,
                request.token,
                index,
                found.up_to,
                end,
                found.count,
                found.digest,
                damaged,
                found.link,
                list(found.breaks),
            )
        if peer == self._context.me:
            self.told(peer, answer)
        else:
            self._outbox.parcel(peer).audited.append(answer)

    # In a turn

    def tick(self, now_ns: int) -> None:
        """Answer one question, and go on with what waits."""
        if self._asked and now_ns >= self._next_ns:
            self._answer_next(now_ns)
        over = [place for place, audit in self.audits.items() if audit.replica.group.gone]
        for place in over:
            del self.audits[place]
        for audit in self.audits.values():
            for side in audit.replicas.values():
                if side.state is not AuditState.COMPARING or side.searching:
                    continue
                if audit.replica.leading is None:
                    side.state = AuditState.UNANSWERED
                elif side.held is not None:
                    self._judge(audit, side)
                elif now_ns >= side.until_ns:
                    self._go_on(audit, side)

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        due = [self._next_ns] if self._asked else []
        due += [
            side.until_ns
            for audit in self.audits.values()
            for side in audit.replicas.values()
            if side.state is AuditState.COMPARING and not side.searching
        ]
        return min(due, default=None)
