"""JetStream of this server as facts for monitoring: use, limits, assets, raft groups."""

from collections.abc import Iterable, Mapping

from jsctl.api.account import ApiStats
from jsctl.api.monitoring.health import RaftzGroup, RaftzGroupPeer
from jsctl.api.monitoring.jsz import (
    JetStreamConfig,
    JetStreamLimits,
    JetStreamStats,
    MetaClusterInfo,
    MetaSnapshotStats,
)
from jsctl.api.stream import StreamInfo, StreamState
from jsctl.api.times import format_duration, format_time
from jsctl.broker.assets.cluster_view import NEVER_HEARD_NS
from jsctl.broker.assets.engine import Engine
from jsctl.broker.assets.meta.group_file import META_GROUP
from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.direct_consumers import DirectConsumer
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.handlers.answers import peer_info
from jsctl.broker.handlers.consumer_info import consumer_info
from jsctl.broker.handlers.streams import stream_info
from jsctl.broker.jetstream.quotas import ALL, TierLimits
from jsctl.broker.jsapi.live_view import ApiView, known_leader
from jsctl.broker.options import COMPATIBLE_API_LEVEL, Options, SyncMode
from jsctl.broker.raft.types import Role
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.routing.setup import system_account
from jsctl.broker.system.monitoring.scrub_facts import scrub
from jsctl.broker.system.monitoring.view import (
    ConsumerFacts,
    JetStreamFacts,
    JsAccountFacts,
    StreamFacts,
)
from jsctl.dataclass import dataclass, replace

_STATES = {
    Role.LEADER: "LEADER",
    Role.FOLLOWER: "FOLLOWER",
    Role.CANDIDATE: "CANDIDATE",
    Role.PRE_CANDIDATE: "CANDIDATE",
}
_NOTHING = TierLimits(memory_max=0, store_max=0)


def config(options: Options) -> JetStreamConfig:
    """How JetStream is set up."""
    jetstream = options.jetstream
    return JetStreamConfig(
        max_memory=jetstream.memory_bytes_max,
        max_storage=jetstream.store_bytes_max,
        store_dir=f"{jetstream.store_dir.rstrip('/')}/jetstream",
        sync_interval=jetstream.sync_interval_ns,
        sync_always=jetstream.sync is SyncMode.ALWAYS,
        domain=jetstream.domain,
        unique_tag=jetstream.unique_tag,
        strict=jetstream.strict,
    )


def limits(options: Options) -> JetStreamLimits:
    """Limits of the whole server; those that are not set are left out."""
    found = options.jetstream.limits
    return JetStreamLimits(
        max_request_batch=found.request_batch_max,
        max_ack_pending=found.ack_pending_max,
        max_ha_assets=found.ha_assets_max,
        max_duplicate_window=found.duplicate_window_ns,
        default_max_consumers=found.consumers_default_max,
    )


def _name_of(replica: StreamReplica) -> str:
    return replica.key[1]


@dataclass(frozen=True, slots=True)
class JetStreamReport:
    """Reads the engine; nothing here changes anything."""

    engine: Engine
    view: ApiView
    options: Options
    accounts: Mapping[str, str]
    """Accounts that may use JetStream, and what people call them."""

    def facts(self, *, accounts: bool = True) -> JetStreamFacts:
        """All there is to tell but the infos of assets."""
        clustered = self.engine.options.clustered
        founded = self.engine.meta.founding is not None
        # A server that stands alone tells of its meta group where an operator has to help.
        told = founded and (clustered or bool(standing_text(self.engine.meta.group)))
        return JetStreamFacts(
            config=config(self.options),
            limits=limits(self.options),
            stats=self._stats(),
            accounts=self._accounts() if accounts else (),
            meta=self._meta() if told else None,
            leads_meta=not clustered or (founded and self.engine.meta.group.leading),
            scrub=scrub(self.engine),
        )

    # Use

    def _stats(self) -> JetStreamStats:
        memory, store = self._used(self.engine.assets.streams.values())
        reserved_memory, reserved_store = self._reserved()
        counts = self.view.usage.counts.values()
        return JetStreamStats(
            memory=memory,
            storage=store,
            reserved_memory=reserved_memory,
            reserved_storage=reserved_store,
            accounts=len(self.accounts),
            ha_assets=sum(
                len(group.raft.members.voters) > 1 for group in self.engine.groups.by_name.values()
            ),
            api=ApiStats(
                level=COMPATIBLE_API_LEVEL,
                total=sum(count.total for count in counts),
                errors=sum(count.errors for count in counts),
            ),
        )

    @staticmethod
    def _used(replicas: Iterable[StreamReplica]) -> tuple[int, int]:
        """(memory, file) in bytes."""
        used = [0, 0]
        for replica in replicas:
            used[not replica.volatile] += replica.store.size_bytes
        return used[0], used[1]

    def _reserved(self) -> tuple[int, int]:
        reserved = [0, 0]
        for replica in self.engine.assets.streams.values():
            reserved[not replica.volatile] += max(replica.stream.config.max_bytes, 0)
        return reserved[0], reserved[1]

    def _accounts(self) -> list[JsAccountFacts]:
        replicas: dict[str, list[StreamReplica]] = {name: [] for name in self.accounts}
        for (account, _), replica in self.engine.assets.streams.items():
            if account in replicas:
                replicas[account].append(replica)
        return [self._account(name, some) for name, some in replicas.items()]

    def _account(self, name: str, replicas: list[StreamReplica]) -> JsAccountFacts:
        memory, store = self._used(replicas)
        quota = self.view.account(name)
        # What tiers may have is told nowhere here.
        whole = None if quota is None else quota.tiers.get(ALL, _NOTHING)
        counts = self.view.usage.counts.get(name)
        return JsAccountFacts(
            name=name,
            tag=self.accounts[name],
            memory=memory,
            store=store,
            memory_reserved=whole.memory_max if whole is not None else -1,
            store_reserved=whole.store_max if whole is not None else -1,
            api_total=counts.total if counts is not None else 0,
            api_errors=counts.errors if counts is not None else 0,
            streams=[self._stream(one) for one in sorted(replicas, key=_name_of)],
        )

    def _stream(self, replica: StreamReplica) -> StreamFacts:
        store = replica.store
        return StreamFacts(
            name=replica.key[1],
            messages=store.messages,
            bytes=store.size_bytes,
            consumers=len(replica.watchers),
            leads=replica.group.leading,
            consumers_led=sum(watcher.leading for watcher in replica.watchers.values()),
            raft_group=replica.group.name if self.view.clustered else "",
        )

    # The meta group

    def _meta(self) -> MetaClusterInfo:
        group = self.engine.meta.group
        shown = self.view.group(META_GROUP)
        voters = len(group.raft.members.voters)
        leader = known_leader(self.engine, group)
        replicas = shown.replicas if shown is not None else []
        return MetaClusterInfo(
            name=self.view.cluster or self.view.server_name,
            leader=self.engine.cluster.name_of(leader) if leader else "",
            peer=leader,
            replicas=tuple(map(peer_info, replicas)),
            cluster_size=voters,
            quorum_needed=group.raft.needed(voters),
            rescue=bool(group.raft.lowered),
            pending=self.engine.meta.state.in_flight,
            snapshot=MetaSnapshotStats(
                pending_entries=max(group.raft.last_index - group.checkpointed, 0),
                pending_size=group.log_bytes,
            ),
        )

    # Assets

    def stream_info(self, account: str, stream: str) -> StreamInfo | None:
        """Info of a local replica, with the config as it is stored."""
        replica = self.view.stream_replica(account, stream)
        if replica is None:
            return None
        return stream_info(self.view, replica.assignment, replica.stream, bare=True)

    def consumers(self, account: str, stream: str) -> list[ConsumerFacts]:
        """Local replicas of a stream's consumers."""
        replica = self.view.stream_replica(account, stream)
        if replica is None:
            return []
        found = [
            self.view.consumer_replica(account, stream, name) for name in sorted(replica.watchers)
        ]
        shown = [self._consumer(consumer) for consumer in found if consumer is not None]
        direct = () if replica.leading is None else replica.leading.direct
        return shown + [self._direct(consumer) for consumer in direct]

    def _direct(self, found: DirectConsumer) -> ConsumerFacts:
        info = consumer_info(self.view, found.consumer, found.leader, None, bare=True)
        return ConsumerFacts(replace(info, cluster=None), raft_group="", direct=True)

    def _consumer(self, replica: ConsumerReplica) -> ConsumerFacts:
        view, name = self.view, replica.group.name
        group = view.group(name) if view.clustered else None
        return ConsumerFacts(
            consumer_info(view, replica.consumer, replica.leader, group, bare=True),
            raft_group=name if view.clustered else "",
            direct=replica.consumer.config.direct,
        )

    # Raft

    def raft_groups(self) -> list[tuple[str, str, RaftzGroup]]:
        """(account, name, state) of every group with a replica here."""
        return [
            (self._owner(group), group.name, self._raft_group(group))
            for group in self.engine.groups.by_name.values()
        ]

    def _owner(self, group: RaftGroup) -> str:
        replica = group.unit
        if isinstance(replica, StreamReplica | ConsumerReplica):
            return replica.assignment.account
        return system_account(self.view.options)

    def _raft_group(self, group: RaftGroup) -> RaftzGroup:
        raft, me = group.raft, self.engine.options.me
        voters = len(raft.members.voters)
        first, last = raft.base_index + 1, raft.last_index
        leader = group.leader
        return RaftzGroup(
            id=me,
            state=_STATES[raft.role],
            size=voters,
            quorum_needed=raft.needed(voters),
            observer=me not in raft.members.voters,
            committed=raft.commit,
            applied=raft.applied,
            catching_up=raft.leader_commit > raft.commit,
            leader=leader,
            leader_since=format_time(group.leader_since_ns) if group.leader_since_ns else "",
            ever_had_leader=bool(leader) or raft.commit > 0,
            term=raft.term,
            voted_for=raft.vote,
            pterm=raft.log.last_term,
            pindex=last,
            system_account=True,
            traffic_account=system_account(self.view.options),
            wal=StreamState(
                messages=max(last - raft.base_index, 0),
                bytes=group.log_bytes,
                first_seq=first,
                last_seq=last,
            ),
            wal_error=standing_text(group),
            peers=self._raft_peers(group),
        )

    def _raft_peers(self, group: RaftGroup) -> dict[str, RaftzGroupPeer]:
        raft, me = group.raft, self.engine.options.me
        matches = {one.peer: one.match for one in raft.progress()} if group.leading else {}
        peers: dict[str, RaftzGroupPeer] = {}
        for peer in raft.members.all():
            if peer == me:
                continue
            silent_ns = self.engine.cluster.silent_ns(peer)
            peers[peer] = RaftzGroupPeer(
                name=self.engine.cluster.name_of(peer),
                known=peer in self.engine.cluster.servers,
                last_replicated_index=matches.get(peer, 0),
                last_seen="" if silent_ns >= NEVER_HEARD_NS else format_duration(silent_ns),
            )
        return peers

    def queues(self) -> dict[str, tuple[int, int]]:
        """(waiting, 0) by queue: requests in groups' logs, and captured messages."""
        found: dict[str, tuple[int, int]] = {
            "JetStream log batch bytes": (self.engine.groups.wal.pending_bytes, 0)
        }
        for group in self.engine.groups.by_name.values():
            name = f"[ACC:{self._owner(group)}] RAFT '{group.name}' proposals"
            found[name] = (len(group.waiting), 0)
        for (account, stream), replica in self.engine.assets.streams.items():
            found[f"[ACC:{account}] stream '{stream}' messages"] = (len(replica.sink.messages), 0)
        return found


def standing_text(group: RaftGroup) -> str:
    """What is wrong with this server's own log of a group; empty when nothing is."""
    standing = group.raft.standing
    name = standing.kind.name.lower()
    if name == "whole":
        return ""
    if name == "suspect":
        return (
            "the log is damaged on this server and waits to be repaired"
            f" (was promised up to {standing.index})"
        )
    return "the log was lost on this server and waits to be repaired"
