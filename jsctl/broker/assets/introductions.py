"""A consumer of an interest stream or work queue begins when the stream's leader surely knows it.

That leader lets go of what no consumer needs that it knows. One that is an entry of the meta group
behind does not know who was just made, or what it is to get from now on. So the consumer's leader
asks it before a start is chosen and before anybody hears that it serves what was asked for
(decision 80): the stream's leader answers once it has applied what the meta group had decided as
the asker saw it, and has it confirmed then that it still leads. A question without an answer is
asked again, maybe of another leader. The leader of a work queue answers once its inquiry is over,
too (`WorkInquiries`).
"""

from collections.abc import Callable

from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.assets.work_inquiries import WorkInquiries
from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment
from jsctl.broker.peers.items import Introduced, Introduction, PeerFrame
from jsctl.broker.peers.outbox import PeerOutbox
from jsctl.dataclass import dataclass

ASK_NS = 100_000_000
"""After so long it is asked again."""
EARLY_MAX = 10_000
"""Questions of others that wait; more are dropped, and come again."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of this server that is open."""

    token: int
    assignment: ConsumerAssignment
    again_ns: int


class Introductions:
    """See the module. `leader_of`: peer id of a group's leader, as far as known here, or ""."""

    def __init__(
        self,
        context: ReplicaContext,
        outbox: PeerOutbox,
        leader_of: Callable[[str], str],
        inquiries: WorkInquiries,
    ) -> None:
        self._inquiries = inquiries
        self._context = context
        self._outbox = outbox
        self._leader_of = leader_of
        self._asked: dict[str, Asked] = {}
        """By the name of the consumer's group."""
        self._names: dict[int, str] = {}
        """Tokens of those -> that name: a server may ask for thousands when it begins to lead."""
        self.early: dict[tuple[str, int], tuple[Introduction, int]] = {}
        """(peer, token) -> (question, inquiry) that speak of what is not applied here yet, asked
        again or not; the inquiry is the one that is to be over, -1 as long as that is not known."""
        self._reading: dict[int, tuple[str, Introduction]] = {}
        """Token of a read of the stream's group -> who is answered when it is confirmed."""
        self._tokens = context.boot  # No answer to an earlier process is one to this.

    def _next_token(self) -> int:
        self._tokens += 1
        return self._tokens

    # At the consumer's leader

    def follow(self) -> None:
        """Ask for who waits, and go on with what others asked too early."""
        if self._context.strangers:
            strangers, self._context.strangers = self._context.strangers, {}
            for name in strangers:
                self._ask(name)
        if self.early:
            early, self.early = self.early, {}
            for (peer, _), (question, inquiry) in early.items():
                self._hear(peer, question, inquiry)

    def _waiting(self, name: str) -> ConsumerReplica | None:
        group = self._context.groups.by_name.get(name)
        replica = None if group is None else group.unit
        if isinstance(replica, ConsumerReplica) and replica.leader is not None:
            return replica
        return None

    def _ask(self, name: str) -> None:
        replica, asked, now_ns = self._waiting(name), self._asked.get(name), self._context.now_ns
        made = None if replica is None else replica.assignment
        if asked is not None and asked.assignment is not made:
            del self._asked[name], self._names[asked.token]
            asked = None
        if replica is None or made is None:
            return
        if asked is not None and now_ns < asked.again_ns:
            return
        # An answer to an earlier question about the same is as good, and may have to wait.
        token = self._next_token() if asked is None else asked.token
        stream = replica.stream.group
        self._asked[name], self._names[token] = Asked(token, made, now_ns + ASK_NS), name
        question = Introduction(stream.key, token, self._context.meta_applied)
        leader = self._leader_of(stream.name)
        if leader == self._context.me:
            self._hear(leader, question)
        elif leader:
            self._outbox.parcel(leader).introductions.append(question)

    def _answered(self, told: Introduced) -> None:
        name = self._names.pop(told.token, None)
        if name is None:
            return  # It was answered before, or is of no use any more.
        asked, replica = self._asked.pop(name), self._waiting(name)
        if replica is not None:
            replica.introduced(asked.assignment)

    def tick(self, now_ns: int) -> None:
        """Ask once more for who still waits."""
        for name, asked in list(self._asked.items()):
            if now_ns >= asked.again_ns:
                self._ask(name)

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        return min((one.again_ns for one in self._asked.values()), default=None)

    # At the stream's leader

    def receive(self, frame: PeerFrame) -> None:
        """What a peer asks and answers."""
        for question in frame.introductions:
            self._hear(frame.sender, question)
        for told in frame.introduced:
            self._answered(told)

    def _hear(self, peer: str, question: Introduction, inquiry: int = -1) -> None:
        group = self._context.groups.by_key(question.key)
        replica = None if group is None else group.unit
        if group is None or not isinstance(replica, StreamReplica) or replica.leading is None:
            return
        seen = self._context.meta_applied >= question.seen
        if seen and inquiry < 0:
            inquiry = self._inquiries.newest(group.name)
        if not seen or not self._inquiries.is_over(group.name, inquiry):
            if len(self.early) < EARLY_MAX:
                # Who asks again waits for no other inquiry than before.
                self.early.setdefault((peer, question.token), (question, inquiry))
            return
        # Those of requests count up from nothing.
        token = -self._next_token()
        self._reading[token] = peer, question
        self._context.groups.read(group, token)

    def confirmed(self, token: int, good: bool) -> bool:
        """A read of a group ended; False: it was not of these."""
        if token >= 0:
            return False
        peer, question = self._reading.pop(token)
        told = Introduced(question.token)
        if good and peer == self._context.me:
            self._answered(told)
        elif good:
            self._outbox.parcel(peer).introduced.append(told)
        return True
