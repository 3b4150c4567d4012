"""The broker as API handlers see it."""

from collections.abc import Iterable, Sequence

from jsctl.api.stream import ReplicaDamage, SequenceRange, SourceInfo
from jsctl.broker.assets.engine import Engine
from jsctl.broker.assets.meta.group_file import META_GROUP
from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.handlers.view import AccountUsage, GroupView, PeerView
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.leader import ConsumerLeader
from jsctl.broker.jetstream.meta.assignments import GroupAssignment
from jsctl.broker.jetstream.meta.placement import ServerFacts
from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.jetstream.quotas import AccountQuota
from jsctl.broker.jetstream.streams.admission import StreamLeader
from jsctl.broker.jetstream.streams.config import ConfigLimits
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.jsapi.usage import Usage
from jsctl.broker.options import Options
from jsctl.broker.raft.types import StandingKind
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.routing.setup import cluster_name, random_name, system_account
from jsctl.broker.turn import Jitter
from jsctl.dataclass import dataclass

CURRENT_NS = 2_000_000_000
"""A peer not heard for this long is not current."""
OFFLINE_NS = 5_000_000_000
"""A peer not heard for this long is offline."""


@dataclass(slots=True)
class ApiView:
    """Implements `handlers.consumer_info.ConsumersView`; one for the node's life."""

    engine: Engine
    options: Options
    usage: Usage
    jitter: Jitter

    @property
    def config_limits(self) -> ConfigLimits:
        """What the configuration of this server limits."""
        limits = self.options.jetstream.limits
        return ConfigLimits(
            duplicate_window_max_ns=limits.duplicate_window_ns,
            ack_pending_max=limits.ack_pending_max,
            request_batch_max=limits.request_batch_max,
            consumers_default_max=limits.consumers_default_max,
        )

    @property
    def now_ns(self) -> int:
        """The time of this turn."""
        return self.engine.context.now_ns

    @property
    def me(self) -> str:
        """This server's peer id."""
        return self.engine.options.me

    @property
    def server_name(self) -> str:
        """This server's name."""
        return self.engine.options.server_name

    @property
    def cluster(self) -> str:
        """The cluster's name; empty for a single server."""
        return self.options.cluster.name if self.clustered else ""

    @property
    def _own_cluster(self) -> str:
        """What a server alone that hangs on a hub says as its cluster."""
        return cluster_name(self.options, self.server_name)

    @property
    def domain(self) -> str:
        """The JetStream domain."""
        return self.options.jetstream.domain

    @property
    def clustered(self) -> bool:
        """Whether this server is a member of a cluster."""
        return self.engine.options.clustered

    @property
    def unique_tag(self) -> str:
        """Replicas go to servers with distinct tags of this prefix."""
        return self.options.jetstream.unique_tag

    @property
    def meta(self) -> Meta:
        """The meta state."""
        return self.engine.meta.state

    def servers(self) -> list[ServerFacts]:
        """All JetStream servers known, online or not."""
        return self.engine.cluster.known_servers()

    def account(self, name: str) -> AccountQuota | None:
        """Limits of an account."""
        return self.usage.account(name)

    def account_usage(self, name: str) -> AccountUsage:
        """What an account uses."""
        return self.usage.of_account(name)

    def stream(self, account: str, name: str) -> Stream | None:
        """The replica on this server."""
        replica = self.stream_replica(account, name)
        return None if replica is None else replica.stream

    def stream_replica(self, account: str, name: str) -> StreamReplica | None:
        """The replica of a stream on this server."""
        return self.engine.assets.streams.get((account, name))

    def consumer(self, account: str, stream: str, name: str) -> Consumer | None:
        """The replica on this server."""
        replica = self.consumer_replica(account, stream, name)
        return None if replica is None else replica.consumer

    def consumer_replica(self, account: str, stream: str, name: str) -> ConsumerReplica | None:
        """The replica of a consumer on this server."""
        return self.engine.assets.consumers.get((account, stream, name))

    def stream_leader(self, account: str, name: str) -> StreamLeader | None:
        """The admission of a stream that this server leads."""
        replica = self.stream_replica(account, name)
        return None if replica is None else replica.leader

    def upstreams(self, account: str, name: str) -> Sequence[SourceInfo]:
        """How far a stream that this server leads has its mirror's origin, or its sources."""
        replica = self.stream_replica(account, name)
        return () if replica is None or replica.leading is None else replica.leading.inbound.infos()

    def consumer_leader(self, account: str, stream: str, name: str) -> ConsumerLeader | None:
        """The deliveries of a consumer that this server leads."""
        replica = self.consumer_replica(account, stream, name)
        return None if replica is None else replica.leader

    def wake_consumer(self, account: str, stream: str, name: str) -> None:
        """Give a consumer that this server leads a turn."""
        replica = self.consumer_replica(account, stream, name)
        if replica is not None:
            replica.wake()

    def leader_of(self, group: str) -> str:
        """Peer id of a group's leader as announced."""
        return self.engine.cluster.leader_of(group)

    def has_interest(self, account: str, subject: bytes) -> bool:
        """Whether anybody listens."""
        return self.engine.context.traffic.wanted(account, subject)

    def new_name(self, length: int) -> str:
        """A fresh random name."""
        return random_name(self.jitter, length)

    def name_of(self, peer: str) -> str:
        """The name of a server by its peer id."""
        return self.engine.cluster.name_of(peer)

    # Groups

    def group(self, name: str) -> GroupView | None:
        """A group as seen here; None when this server is not a member."""
        group = self.engine.groups.by_name.get(name)
        if group is None:
            return None
        leader = group.leader or self.engine.cluster.leader_of(name)
        assigned = self._assigned(group)
        peers = self._peers(group, assigned)
        if leader:
            peers = [peer for peer in peers if peer != self.me]
        replicas = [self._peer(group, peer, assigned) for peer in peers]
        cluster = assigned.cluster if assigned is not None else self.cluster
        return GroupView(
            name=name,
            cluster=cluster or self.cluster or self._own_cluster,
            leader=self.name_of(leader) if leader else "",
            leader_since_ns=group.leader_since_ns,
            replicas=sorted(replicas, key=lambda peer: peer.name),
            is_leader=group.leading,
            traffic_account=system_account(self.options),
            is_whole=group.raft.standing.kind is StandingKind.WHOLE,
            log_index=group.raft.last_index,
        )

    def damage(self, assigned: GroupAssignment) -> tuple[ReplicaDamage, ...]:
        """Replicas with messages that cannot be read, by the names of their servers."""
        cluster = self.engine.cluster
        if not cluster.knows_damage:
            return ()
        found = [
            ReplicaDamage(
                name=self.name_of(peer),
                messages=one.messages,
                lost=one.lost,
                ranges=sequence_ranges(one.ranges),
            )
            for peer in assigned.members
            if (one := cluster.damage_of(assigned.name, peer)) is not None
        ]
        return tuple(sorted(found, key=lambda one: one.name))

    @staticmethod
    def _assigned(group: RaftGroup) -> GroupAssignment | None:
        replica = group.unit
        if isinstance(replica, StreamReplica | ConsumerReplica):
            return replica.assignment.group
        return None

    def _peers(self, group: RaftGroup, assigned: GroupAssignment | None) -> list[str]:
        members = group.raft.members.all()
        if group.name == META_GROUP or assigned is None:
            return list(members)
        wanted = assigned.peers
        return [*wanted, *(peer for peer in members if peer not in wanted)]

    def _peer(self, group: RaftGroup, peer: str, assigned: GroupAssignment | None) -> PeerView:
        engine, raft = self.engine, group.raft
        is_me = peer == self.me
        silent_ns = 0 if is_me else engine.cluster.silent_ns(peer)
        current, lag = is_me, 0
        if group.leading and not is_me:
            progress = next((p for p in raft.progress() if p.peer == peer), None)
            lag = raft.commit - progress.match if progress is not None else raft.commit
            lag = max(lag, 0)
            whole = progress is not None and progress.standing is StandingKind.WHOLE
            current = whole and lag == 0 and silent_ns < CURRENT_NS
        elif not is_me and peer == group.leader:
            current = silent_ns < CURRENT_NS
        return PeerView(
            peer=peer,
            name=self.name_of(peer),
            current=current,
            offline=silent_ns >= OFFLINE_NS or (not is_me and engine.cluster.left(peer)),
            active_ns=silent_ns,
            lag=lag,
            pending=assigned is not None and peer not in raft.members,
        )


def sequence_ranges(ranges: Iterable[tuple[int, int]]) -> tuple[SequenceRange, ...]:
    """Ranges as answers name them."""
    return tuple(SequenceRange(first=first, last=last) for first, last in ranges)


def known_leader(engine: Engine, group: RaftGroup) -> str:
    """Peer id of a group's leader, empty when none is known.

    A server that does not lead any more may still be named by what it last announced itself.
    """
    announced = engine.cluster.leader_of(group.name)
    return group.leader or ("" if announced == engine.options.me else announced)
