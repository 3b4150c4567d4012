"""What stream and consumer replicas have in common: the meta group assigned them.

Two things follow from an assignment. The asset's leader brings its configuration into the asset's
own log, where all replicas apply it at the same place. And it answers, once, the request that
made or changed the asset, when it serves what was asked for. Both are for whoever leads by then,
so every replica keeps them.
"""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.run_queue import Runner
from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment, StreamAssignment
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.replication.group import RaftGroup

A = TypeVar("A", StreamAssignment, ConsumerAssignment)
OWED_NS = 5_000_000_000
"""Who asked for something does not wait longer than this."""


@dataclass(slots=True)
class PendingReply:
    """The answer to the request that made or changed an asset; its leader gives it, once.

    After a while it has been given, by whoever led then.
    """

    request: ApiRequest | None = None
    until_ns: int = 0

    def note(self, request: ApiRequest | None, now_ns: int) -> None:
        """Somebody waits for an answer."""
        self.request, self.until_ns = request, now_ns + OWED_NS

    def take(self, now_ns: int) -> ApiRequest | None:
        """The request to answer now; None when nobody waits (any more)."""
        request, self.request = self.request, None
        return request if now_ns < self.until_ns else None


@dataclass(slots=True)
class Assigned(Generic[A]):
    """An asset's newest assignment, and what is still to be done for it."""

    env: ReplicaContext
    assignment: A
    group: RaftGroup
    config_refused: bool = False
    """The log did not take the newest config."""
    _owed: PendingReply = field(default_factory=PendingReply)

    def __post_init__(self) -> None:
        assert self.env.me in self.assignment.group.members, "assigned to others"
        self._owe(self.assignment.request)

    def _owe(self, request: ApiRequest | None) -> None:
        # The meta state names who waits for an answer; who waited before a restart does not.
        if not self.env.replaying:
            self._owed.note(request, self.env.now_ns)

    def renew(self, assignment: A) -> None:
        """The meta state has another assignment for it."""
        assert assignment.group.name == self.group.name, "another group has another replica"
        if assignment.request != self.assignment.request:
            self._owe(assignment.request)
        self.assignment = assignment
        self.group.raft.expect(assignment.group.members)

    def propose_config(self, entry: bytes, runner: Runner) -> None:
        """Put the newest config into the asset's log: as soon as it takes something, else."""
        self.config_refused = self.env.groups.propose(self.group, [entry], None) is None
        if self.config_refused:
            self.env.queue.wake(self.group.name, runner)

    def take_request(self) -> ApiRequest | None:
        """The request to answer, as what it asked for is served; None when nobody waits."""
        return self._owed.take(self.env.now_ns)
