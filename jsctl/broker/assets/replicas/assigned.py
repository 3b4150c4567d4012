"""What stream and consumer replicas have in common: the meta group assigned them.

Two things follow from an assignment. The asset's leader brings its configuration into the asset's
own log, where all replicas apply it at the same place. And it answers, once, the requests that
made or changed the asset, when it serves what was asked for last: many may ask for the same at
once. Both are for whoever leads by then, so every replica keeps them.
"""

from collections import deque
from dataclasses import field
from typing import Generic, TypeVar

from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.run_queue import Runner
from jsctl.broker.jetstream.consumers.state import ConsumerState
from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment, StreamAssignment
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.replication.group import RaftGroup
from jsctl.dataclass import dataclass

A = TypeVar("A", StreamAssignment, ConsumerAssignment)
OWED_NS = 5_000_000_000
"""Who asked for something does not wait longer than this: it was answered by whoever led then."""
OWED_MAX = 1_000
"""So many wait for an asset's answers; more are asked to try again, the first ones first."""


@dataclass(slots=True)
class Assigned(Generic[A]):
    """An asset's newest assignment, and what is still to be done for it."""

    context: ReplicaContext
    assignment: A
    group: RaftGroup
    config_refused: bool = False
    """The log did not take the newest config."""
    _owed: deque[tuple[A, ApiRequest, int]] = field(default_factory=lambda: deque(maxlen=OWED_MAX))
    """What was asked for, by whom, and until when he waits."""

    def __post_init__(self) -> None:
        assert self.context.me in self.assignment.group.members, "assigned to others"
        self.group.raft.expect(self.assignment.group.members)
        self._owe()

    @property
    def is_owed(self) -> bool:
        """Whether somebody may wait for an answer."""
        return bool(self._owed)

    def _owe(self) -> None:
        # The meta state names who waits for an answer; who waited before a restart does not.
        made, now_ns = self.assignment, self.context.now_ns
        if made.request is None or self.context.replaying:
            return
        while self._owed and self._owed[0][2] <= now_ns:
            self._owed.popleft()
        self._owed.append((made, made.request, now_ns + OWED_NS))

    def renew(self, assignment: A) -> None:
        """The meta state has another assignment for it."""
        assert assignment.group.name == self.group.name, "another group has another replica"
        before, self.assignment = self.assignment, assignment
        if assignment.request != before.request:
            self._owe()
        self.group.raft.expect(assignment.group.members)

    def propose_config(self, entry: bytes, runner: Runner) -> None:
        """Put the newest config into the asset's log: as soon as it takes something, else."""
        self.config_refused = self.context.groups.propose(self.group, [entry], None) is None
        if self.config_refused:
            self.context.queue.wake(self.group.name, runner)

    def take_requests(self) -> list[tuple[A, ApiRequest]]:
        """The requests to answer, each with what was asked for, as that is served; none of those
        who do not wait any more. Each is answered once."""
        owed, now_ns = list(self._owed), self.context.now_ns
        self._owed.clear()
        return [(made, request) for made, request, until_ns in owed if now_ns < until_ns]


@dataclass(slots=True)
class AwaitedAnswers:
    """Which answers have to leave before a consumer delivers: they tell how much is pending."""

    assigned: Assigned[ConsumerAssignment]
    _asked: list[ApiRequest] = field(default_factory=list)
    """Those that whoever answers has, and has not answered."""
    _behind: int = 0
    """The entry by which it begins again for who asked last."""

    def behind(self, index: int | None) -> None:
        """The next answer waits for an entry; None: the log did not take it."""
        self._behind = index or 0

    def is_due(self, applied: int) -> bool:
        """Whether somebody waits for an answer, and nothing has to be applied before."""
        return self.assigned.is_owed and applied >= self._behind

    def take(self) -> list[ApiRequest]:
        """The requests to answer, once."""
        requests = [request for _, request in self.assigned.take_requests()]
        self._asked += requests
        return requests

    def answered(self, request: ApiRequest) -> None:
        """An answer has left; of one that was asked of another replica nothing is known."""
        if request in self._asked:
            self._asked.remove(request)

    def hold(self, state: ConsumerState) -> bool:
        """Whether nothing may be delivered yet."""
        return bool(self._asked) or (self.assigned.is_owed and not state.delivered_seq)

    def forget(self) -> None:
        """Another leads: what was asked of this replica holds nothing any more."""
        self._asked.clear()
        self._behind = 0
