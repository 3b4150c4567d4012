"""What leaders do for their groups now and then: bring members to the wanted peers.

Stream and consumer leaders follow their assignment. The meta leader follows the servers it sees:
a JetStream server that is up and not a member joins, as a learner first; one that an operator
removed leaves.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

from jsctl.broker.assets.assets import Assets
from jsctl.broker.assets.membership import (
    HandOver,
    MembershipChange,
    Settled,
    Step,
    Waiting,
    next_step,
)
from jsctl.broker.assets.meta.replica import MetaReplica
from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment
from jsctl.broker.jetstream.meta.entries import (
    MetaServer,
    add_server,
    remove_consumer,
    settle_group,
)
from jsctl.broker.jetstream.meta.placement import ServerFacts
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import StandingKind
from jsctl.broker.turn import LogLevel
from jsctl.dataclass import dataclass

PERIOD_NS = 100_000_000
SETTLE_REPEAT_NS = 1_000_000_000
"""A report that a group settled is repeated when nothing came of it."""
REMOVE_REPEAT_NS = 2_000_000_000
"""The same for the removal of a consumer that is not used."""


@dataclass(slots=True)
class Reconfigurator:
    """One server's part in bringing groups to where they are to be."""

    context: ReplicaContext
    assets: Assets
    online: Callable[[str], bool]
    to_meta: Callable[[list[bytes]], None]
    """Hand entries to whoever leads the meta group."""
    consumers_of: Callable[[str, str], Iterable[ConsumerAssignment]]
    """All of a stream, wherever their replicas are."""
    status: dict[str, Waiting] = field(default_factory=dict)
    """What groups of this server wait for, by group name."""
    _told_ns: dict[str, int] = field(default_factory=dict)
    _removed_ns: dict[str, int] = field(default_factory=dict)
    """Group of an unused consumer -> when its removal was asked for."""
    _due_ns: int = 0

    def due(self, now_ns: int) -> bool:
        """Whether it is time to look again."""
        if now_ns < self._due_ns:
            return False
        self._due_ns = now_ns + PERIOD_NS
        return True

    def next_due_ns(self) -> int | None:
        """When to look again; None when every group is where it is to be."""
        return self._due_ns if self.assets.unsettled else None

    def steer(self) -> None:
        """One look at every group that is not settled.

        Not with assignments of the past, as after a restart: peers that were to join or to leave
        then have long been told otherwise.
        """
        if not self.assets.knows_all:
            return
        for name, replica in list(self.assets.unsettled.items()):
            if not replica.group.leading:
                if replica.assignment.group.settled and _at(replica):
                    self.assets.unsettled.pop(name, None)
                continue
            held = self._held_by_consumers(replica) if isinstance(replica, StreamReplica) else []
            # Who is not there keeps its replica, as long as the meta state names it, for a consumer
            # that has no quorum without it; but nobody waits for its vote in the stream's group.
            members = replica.group.raft.members
            staying = (peer for peer in held if peer in members and self.online(peer))
            wanted = (*replica.assignment.group.peers, *staying)
            step = next_step(replica.group.raft, wanted, self.online)
            self._do(replica.group.raft, step, name)
            if isinstance(step, Settled) and held:
                self.status[name] = Waiting("blocked", "waiting for consumers to migrate")
            elif isinstance(step, Settled):
                self._settled(replica)

    def _held_by_consumers(self, replica: StreamReplica) -> list[str]:
        """Peers that consumers have not left yet; their stream stays until they have.

        Also those of consumers that have no replica here: who drops a stream drops them with it.
        Consumers may be ahead of it: on peers that were to join the stream and did not get there.
        """
        wanted = replica.assignment.group.peers
        held: list[str] = []
        for consumer in self.consumers_of(*replica.key):
            group = consumer.group
            held += [peer for peer in group.former if peer not in wanted and peer not in held]
        return held

    def _do(self, raft: Raft, step: Step, name: str) -> None:
        self.status.pop(name, None)
        if isinstance(step, MembershipChange):
            why = raft.refusal(step.change)
            if why:
                self.status[name] = Waiting("membership", why)
            else:
                raft.propose_members(step.change)
                self.context.groups.touch(self.context.groups.by_name[name])
        elif isinstance(step, HandOver):
            raft.transfer(step.to)
            self.context.groups.touch(self.context.groups.by_name[name])
        elif isinstance(step, Waiting):
            self.status[name] = step

    def _settled(self, replica: StreamReplica | ConsumerReplica) -> None:
        name, now_ns = replica.group.name, self.context.now_ns
        assignment = replica.assignment
        if assignment.group.settled:
            self.assets.unsettled.pop(name, None)
            self._told_ns.pop(name, None)
            return
        if replica.group.raft.commit < replica.group.raft.membership.active_index:
            return
        if now_ns - self._told_ns.get(name, 0) > SETTLE_REPEAT_NS:
            self._told_ns[name] = now_ns
            self.to_meta([settle_group(assignment)])

    def remove_unused(self) -> None:
        """Have consumers deleted that their leaders here found unused."""
        now_ns = self.context.now_ns
        unused, self.context.unused = self.context.unused, []
        told = self._removed_ns
        for name in [name for name, at_ns in told.items() if now_ns - at_ns > REMOVE_REPEAT_NS]:
            del told[name]
        for made in unused:
            name = made.group.name
            if name not in told:
                told[name] = now_ns
                self.to_meta([remove_consumer(made.account, made.stream, made.name, name)])

    # The meta group

    def steer_meta(self, replica: MetaReplica, servers: Sequence[ServerFacts]) -> None:
        """One look at the servers; only the meta leader does something."""
        raft, meta = replica.group.raft, replica.meta
        if not replica.group.leading:
            return
        new: list[MetaServer] = []
        wanted: list[str] = []
        for facts in servers:
            known = meta.servers.get(facts.peer)
            if known is not None and known.removed and known.incarnation == facts.incarnation:
                continue
            seen = MetaServer(facts.peer, facts.name, facts.incarnation, facts.cluster)
            if known != seen:
                new.append(seen)
            wanted.append(facts.peer)
        wanted += [
            peer
            for peer in raft.members.all()
            if peer not in wanted and not (peer in meta.servers and meta.servers[peer].removed)
        ]
        if new and not meta.in_flight and replica.propose([add_server(one) for one in new], None):
            for one in new:
                self.context.log(LogLevel.INFO, f"JetStream server '{one.name}' joins the cluster")
        self._do(raft, next_step(raft, wanted, self.online), replica.group.name)


def _at(replica: StreamReplica | ConsumerReplica) -> bool:
    """Whether the members are the wanted peers, as far as a follower can tell."""
    raft = replica.group.raft
    whole = raft.standing.kind is StandingKind.WHOLE
    return whole and set(raft.members.voters) == set(replica.assignment.group.peers)
