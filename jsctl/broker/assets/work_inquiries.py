"""The leader of a work queue asks what consumers were done with that are deleted.

An acknowledgement counts when a majority of its consumer's replicas has it in their logs. The
queue's leader may not be among them, and is not told any more once the consumer is gone. Whoever is
made in its place would be given such messages a second time. So the leader asks all servers with a
replica of the queue, when a consumer has gone and when it begins to lead, and they answer once they
have let go of the consumer, too. Until all have answered that can be reached, and what they know
of is removed, no consumer is introduced (decision 80).
"""

from collections.abc import Callable
from itertools import islice

from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.peers.items import PeerFrame
from jsctl.broker.peers.outbox import PeerOutbox
from jsctl.broker.peers.work_items import FinishedSeqs, WorkQuestion
from jsctl.broker.store.seqset import SeqSet
from jsctl.dataclass import dataclass

ASK_NS = 100_000_000
"""After so long it is asked again."""
WAIT_NS = 2_000_000_000
"""Who has not answered by then is waited for no longer."""
EARLY_MAX = 10_000
"""Questions of others that wait; more are dropped, and come again."""
RANGES_MAX = 50_000
"""Of one answer; the last messages are left out, as the first ones are given out first."""


@dataclass(slots=True)
class Inquiry:
    """Of one queue."""

    token: int
    waiting: set[str]
    """Servers that have not answered."""
    again_ns: int
    until_ns: int
    behind: int | None = None
    """The entry that is to be applied before it is over; None: that is not known yet."""
    next: int = 0
    """The token of the one that follows, as more consumers have gone meanwhile; 0: none does."""


class WorkInquiries:
    """See the module. `online`: whether a server can be reached, as far as known here."""

    def __init__(
        self,
        context: ReplicaContext,
        outbox: PeerOutbox,
        online: Callable[[str], bool],
    ) -> None:
        self._context = context
        self._outbox = outbox
        self._online = online
        self._open: dict[str, Inquiry] = {}
        """By the name of the queue's group."""
        self._queues: dict[int, str] = {}
        """Tokens of those -> that name: a server may lead thousands when it begins to."""
        self._early: list[tuple[str, WorkQuestion]] = []
        """(peer, question) that speak of what is not applied here yet."""
        self._tokens = context.boot  # No answer to an earlier process is one to this.

    def newest(self, name: str) -> int:
        """The last inquiry of a queue that there is now, begun or not; 0: there is none."""
        self._begin_all()
        inquiry = self._open.get(name)
        return 0 if inquiry is None else inquiry.next or inquiry.token

    def is_over(self, name: str, token: int) -> bool:
        """Whether all is removed that came of an inquiry, and of those before it. Others may have
        begun: consumers may come and go all the time."""
        inquiry = self._open.get(name)
        return inquiry is None or inquiry.token > token

    @property
    def busy(self) -> bool:
        """Whether there may be something to go on with."""
        return bool(self._open or self._early)

    def follow(self) -> None:
        """Ask for queues that lost a consumer; go on with what waited."""
        self._begin_all()
        for name in list(self._open):
            self._go_on(name)
        if self._early:
            early, self._early = self._early, []
            for peer, question in early:
                self._hear(peer, question)

    # At the queue's leader

    def _queue(self, name: str) -> StreamReplica | None:
        group = self._context.groups.by_name.get(name)
        replica = None if group is None else group.unit
        if isinstance(replica, StreamReplica) and replica.leading is not None:
            return replica
        return None

    def _begin_all(self) -> None:
        bereaved, self._context.bereaved = self._context.bereaved, {}
        for name in bereaved:
            inquiry, replica = self._open.get(name), self._queue(name)
            self._tokens += 1
            if inquiry is not None:
                inquiry.next = inquiry.next or self._tokens
            elif replica is not None:
                self._begin(name, replica, self._tokens)

    def _begin(self, name: str, replica: StreamReplica, token: int) -> None:
        now_ns = self._context.now_ns
        waiting = set(replica.assignment.group.members) - {self._context.me}
        inquiry = Inquiry(token, waiting, now_ns + ASK_NS, now_ns + WAIT_NS)
        self._open[name] = inquiry
        self._queues[token] = name
        self._ask(name, inquiry)

    def _end(self, name: str) -> int:
        """The token of the one that follows, if any."""
        inquiry = self._open.pop(name)
        del self._queues[inquiry.token]
        return inquiry.next

    def _ask(self, name: str, inquiry: Inquiry) -> None:
        question = WorkQuestion(name.encode(), inquiry.token, self._context.meta_applied)
        for peer in sorted(inquiry.waiting):
            if self._online(peer):
                self._outbox.parcel(peer).work_questions.append(question)

    def _go_on(self, name: str) -> None:
        replica, inquiry = self._queue(name), self._open[name]
        if replica is None:
            self._end(name)
            return
        in_time = self._context.now_ns < inquiry.until_ns
        inquiry.waiting = {peer for peer in inquiry.waiting if in_time and self._online(peer)}
        if inquiry.waiting:
            return
        if inquiry.behind is None:
            inquiry.behind = replica.finish_work()
        if inquiry.behind is not None and replica.group.raft.applied >= inquiry.behind:
            follower = self._end(name)
            if follower:
                self._begin(name, replica, follower)

    def _answered(self, peer: str, told: FinishedSeqs) -> None:
        name = self._queues.get(told.token)
        if name is None:
            return  # It is over: this comes too late.
        self._open[name].waiting.discard(peer)
        replica = self._queue(name)
        if replica is not None:
            replica.finished(told.ranges)

    def tick(self, now_ns: int) -> None:
        """Ask once more who has not answered."""
        for name, inquiry in list(self._open.items()):
            if now_ns >= inquiry.again_ns:
                inquiry.again_ns = now_ns + ASK_NS
                self._ask(name, inquiry)
                self._go_on(name)

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        return min((one.again_ns for one in self._open.values()), default=None)

    # At the others

    def receive(self, frame: PeerFrame) -> None:
        """What a peer asks and answers."""
        for question in frame.work_questions:
            self._hear(frame.sender, question)
        for told in frame.finished_work:
            self._answered(frame.sender, told)

    def _hear(self, peer: str, question: WorkQuestion) -> None:
        if self._context.meta_applied < question.seen:
            if len(self._early) < EARLY_MAX:
                self._early.append((peer, question))
            return
        group = self._context.groups.by_key(question.key)
        replica = None if group is None else group.unit
        left = replica.finished_work() if isinstance(replica, StreamReplica) else SeqSet()
        told = FinishedSeqs(question.token, list(islice(left.ranges(), RANGES_MAX)))
        self._outbox.parcel(peer).finished_work.append(told)
