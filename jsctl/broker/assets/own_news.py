"""What this server tells its peers of itself: how full it is, and whether it is about to leave."""

from jsctl import __version__
from jsctl.broker.assets.assets import Assets
from jsctl.broker.assets.engine_options import EngineOptions, ServerCard
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.jetstream.meta.placement import ServerFacts
from jsctl.broker.peers.items import DamagedReplica, DamagedReplicas, DiskRoom, ServerNews
from jsctl.broker.peers.liveness import Liveness
from jsctl.broker.replication.groups import Groups
from jsctl.dataclass import dataclass

DAMAGED_MAX = 1000
"""Damaged replicas that are named; what is not is taken for whole."""
RANGES_MAX = 8
"""Ranges of a damaged replica that are named."""
COUNT_NS = 250_000_000
"""How old may be what every stream has to be asked for: others hear of it more seldom."""
COUNT_EACH_NS = 100_000
"""So much older for each stream, so that counting stays a hundredth of the time."""


@dataclass(frozen=True, slots=True)
class _Held:
    """What the replicas on this server hold, in bytes."""

    at_ns: int
    memory: int = 0
    memory_reserved: int = 0
    store: int = 0
    store_reserved: int = 0
    replicated: int = 0
    """Groups that have more than one member."""
    damaged: DamagedReplicas = DamagedReplicas(())


@dataclass(slots=True)
class OwnNews:
    """See the module."""

    options: EngineOptions
    groups: Groups
    assets: Assets
    liveness: Liveness
    card: ServerCard
    """A reload brings another one."""
    _held: _Held | None = None
    _told: tuple[tuple[object, ...], ServerNews] | None = None
    """What was told last, and all that it rests on: requests of one turn ask several times."""

    def now(self, *, removed: bool) -> ServerNews:
        """The news of this moment. `removed`: an operator removed this server."""
        options, card, held = self.options, self.card, self._newest()
        streams, leaving = len(self.assets.streams), self.liveness.leaving
        rests_on = held, streams, removed, leaving, card
        if self._told is not None and self._told[0] == rests_on:
            return self._told[1]
        facts = ServerFacts(
            peer=options.me,
            name=options.server_name,
            cluster=options.cluster,
            domain=options.domain,
            tags=card.tags,
            jetstream=not removed,
            store_max=card.store_max,
            store_used=held.store,
            store_reserved=held.store_reserved,
            memory_max=card.memory_max,
            memory_used=held.memory,
            memory_reserved=held.memory_reserved,
            streams=streams,
            ha_assets=max(held.replicated - 1, 0),
            ha_assets_max=card.ha_assets_max,
            incarnation=options.life,
            boot=options.boot,
        )
        news = ServerNews(facts, card.server_id, card.host, __version__, lame_duck=leaving)
        self._told = rests_on, news
        return news

    def damaged(self) -> DamagedReplicas:
        """What others have to know before they leave a group's leadership to this server, and
        what leaders tell operators."""
        return self._newest().damaged

    def room(self) -> DiskRoom:
        """What others have to know before they leave a stream to this server."""
        return DiskRoom(self.assets.context.disk_full)

    def _newest(self) -> _Held:
        held = self._held
        age_ns = COUNT_NS + COUNT_EACH_NS * len(self.assets.streams)
        if held is None or self.groups.now_ns >= held.at_ns + age_ns:
            held = self._held = self._count()
        return held

    def _count(self) -> _Held:
        memory = store = memory_reserved = store_reserved = 0
        damaged: list[DamagedReplica] = []
        for replica in self.assets.streams.values():
            if replica.store.is_damaged and len(damaged) < DAMAGED_MAX:
                damaged.append(damage_of(replica))
            used = replica.store.size_bytes
            reserved = max(replica.stream.config.max_bytes, 0)
            if replica.volatile:
                memory += used
                memory_reserved += reserved
            else:
                store += used
                store_reserved += reserved
        groups = self.groups.by_name.values()
        replicated = sum(len(group.raft.members.voters) > 1 for group in groups)
        return _Held(
            self.groups.now_ns,
            memory,
            memory_reserved,
            store,
            store_reserved,
            replicated,
            DamagedReplicas(tuple(damaged)),
        )


def damage_of(replica: StreamReplica) -> DamagedReplica:
    """What is known of the damage in a replica."""
    seqs = replica.store.lost
    ranges = [one for _, one in zip(range(RANGES_MAX), seqs.ranges(), strict=False)]
    # What is gone meanwhile may still be named there.
    lost = min(len(replica.hopeless), len(seqs))
    return DamagedReplica(replica.group.name, len(seqs), lost, ranges)
