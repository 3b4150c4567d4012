"""What this server tells its peers of itself: how full it is, and whether it is about to leave."""

from dataclasses import dataclass

from jsctl import __version__
from jsctl.broker.assets.assets import Assets
from jsctl.broker.assets.engine_options import EngineOptions, ServerCard
from jsctl.broker.jetstream.meta.placement import ServerFacts
from jsctl.broker.peers.items import ServerNews
from jsctl.broker.peers.liveness import Liveness
from jsctl.broker.replication.groups import Groups


@dataclass(slots=True)
class OwnNews:
    """Counted anew with each call."""

    options: EngineOptions
    groups: Groups
    assets: Assets
    liveness: Liveness
    card: ServerCard
    """A reload brings another one."""

    def now(self, *, removed: bool) -> ServerNews:
        """The news of this moment. `removed`: an operator removed this server."""
        options, card = self.options, self.card
        memory = store = reserved_memory = reserved_store = 0
        for replica in self.assets.streams.values():
            used = replica.store.size_bytes
            reserved = max(replica.stream.config.max_bytes, 0)
            if replica.volatile:
                memory += used
                reserved_memory += reserved
            else:
                store += used
                reserved_store += reserved
        replicated = sum(
            len(group.raft.members.voters) > 1 for group in self.groups.by_name.values()
        )
        facts = ServerFacts(
            peer=options.me,
            name=options.server_name,
            cluster=options.cluster,
            domain=options.domain,
            tags=card.tags,
            jetstream=not removed,
            store_max=card.store_max,
            store_used=store,
            store_reserved=reserved_store,
            memory_max=card.memory_max,
            memory_used=memory,
            memory_reserved=reserved_memory,
            streams=len(self.assets.streams),
            ha_assets=max(replicated - 1, 0),
            ha_assets_max=card.ha_assets_max,
            incarnation=options.life,
            boot=options.boot,
        )
        leaving = self.liveness.leaving
        return ServerNews(facts, card.server_id, card.host, __version__, lame_duck=leaving)
