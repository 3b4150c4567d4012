"""What a server knows of the others: who is there, what they tell, who leads which group."""

from typing import Protocol

from jsctl.broker.assets.engine_options import TICK_NS, EngineOptions
from jsctl.broker.jetstream.meta.entries import MetaServer
from jsctl.broker.jetstream.meta.placement import ServerFacts
from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.peers.election_timeout import ElectionTimeout
from jsctl.broker.peers.items import (
    Announcement,
    DamagedReplica,
    DamagedReplicas,
    DiskRoom,
    ServerNews,
)
from jsctl.broker.peers.liveness import Liveness
from jsctl.broker.raft.types import Timing
from jsctl.dataclass import replace

NEVER_HEARD_NS = 365 * 24 * 3600 * 1_000_000_000


class NewsSource(Protocol):
    """Who knows what this server tells of itself."""

    def now(self, *, removed: bool) -> ServerNews:
        """The news of this moment. `removed`: an operator removed this server."""

    def damaged(self) -> DamagedReplicas:
        """Which of its replicas have damage."""

    def room(self) -> DiskRoom:
        """Whether there is room on its disk."""


class ClusterView:
    """Peers are peer ids; times in ns."""

    def __init__(
        self, options: EngineOptions, liveness: Liveness, news: NewsSource, meta: Meta
    ) -> None:
        self.options = options
        self.liveness = liveness
        self.now_ns = 0
        """The time of the turn."""
        self.servers: dict[str, ServerNews] = {}
        """What each server told last."""
        self.leaders: dict[str, Announcement] = {}
        """Group name -> who leads it."""
        self._damaged: dict[str, dict[str, DamagedReplica]] = {}
        """What each server told last of its replicas, by group."""
        self._full: set[str] = set()
        """Who told last that there is no room on its disk."""
        self.removed = False
        """An operator removed this server from the cluster."""
        self._own: tuple[ServerFacts, ServerFacts] | None = None
        """What this server told of itself last, and the same with the room on its disk."""
        self._news = news
        self._meta = meta
        self._patience = ElectionTimeout(options.timing.election_ticks * TICK_NS)

    def own_news(self) -> ServerNews:
        """What this server tells of itself."""
        return self._news.now(removed=self.removed)

    def own_damage(self) -> DamagedReplicas:
        """What this server tells of its replicas."""
        return self._news.damaged()

    def own_room(self) -> DiskRoom:
        """What this server tells of the room on its disk."""
        return self._news.room()

    def hear_room(self, peer: str, told: DiskRoom) -> None:
        """A server tells of the room on its disk."""
        (self._full.add if told.full else self._full.discard)(peer)

    def has_room(self, peer: str) -> bool:
        """Whether another server takes messages, as far as it told."""
        return peer not in self._full

    def is_damaged(self, group: str, peer: str) -> bool:
        """Whether a server told of damage in its replica of a group."""
        return group in self._damaged.get(peer, ())

    def hear_damage(self, peer: str, told: DamagedReplicas) -> None:
        """A server tells which of its replicas have damage."""
        self._damaged[peer] = {one.group: one for one in told.replicas}

    @property
    def knows_damage(self) -> bool:
        """Whether any server told of damage in any replica."""
        return bool(self._news.damaged().replicas) or any(self._damaged.values())

    def damage_of(self, group: str, peer: str) -> DamagedReplica | None:
        """What a server that is heard told of damage in its replica of a group."""
        if not self.online(peer):
            return None
        if peer == self.options.me:
            mine = self.own_damage().replicas
            return next((one for one in mine if one.group == group), None)
        return self._damaged.get(peer, {}).get(group)

    def pace(self) -> Timing:
        """What groups are to keep time by, as late as servers were lately."""
        self._patience.heard(self.liveness.late_ns)
        self.liveness.late_ns = 0
        timing = self.options.timing
        ticks = timing.election_ticks * self._patience.factor(self.now_ns)
        return timing if ticks == timing.election_ticks else replace(timing, election_ticks=ticks)

    def peers_up(self) -> list[str]:
        """Servers that are heard, known by their news or not yet."""
        return [life.peer for life in self.liveness.lives() if life.up]

    def online(self, peer: str) -> bool:
        """Whether a server is heard, or is this one."""
        return peer == self.options.me or self.liveness.is_up(peer)

    def known_servers(self) -> list[ServerFacts]:
        """All JetStream servers ever heard of, marked by whether they are online."""
        found = [self._own_facts(self.own_news().facts, full=self.own_room().full)]
        for peer, news in self.servers.items():
            if news.facts.jetstream and not self.is_removed(news.facts):
                online = self.liveness.is_up(peer) and not news.lame_duck
                full = not self.has_room(peer)
                found.append(replace(news.facts, online=online, disk_full=full))
        return found

    def _own_facts(self, facts: ServerFacts, *, full: bool) -> ServerFacts:
        known = self._own
        if known is None or known[0] is not facts or known[1].disk_full != full:
            known = self._own = facts, replace(facts, disk_full=full)
        return known[1]

    def is_removed(self, facts: ServerFacts) -> bool:
        """Whether an operator removed a server, in its present life."""
        known = self._meta.servers.get(facts.peer)
        return known is not None and known.removed and known.incarnation == facts.incarnation

    def is_life_of(self, server: MetaServer) -> bool:
        """Whether what was last heard of a server is of this very life of it."""
        news = self.servers.get(server.peer)
        return news is not None and news.facts.incarnation == server.incarnation

    def has_lost_memory(self, peer: str) -> bool:
        """Whether all is gone that a server held in memory: its process ended, or an operator
        removed it."""
        return self.was_removed(peer) or self.liveness.has_ended(peer, self.now_ns)

    def was_removed(self, peer: str) -> bool:
        """Whether an operator removed a server, and no other one came in its place."""
        known = self._meta.servers.get(peer)
        return known is not None and known.removed

    def name_of(self, peer: str) -> str:
        """The name of a server."""
        if peer == self.options.me:
            return self.options.server_name
        news = self.servers.get(peer)
        if news is not None:
            return news.facts.name
        known = self._meta.servers.get(peer)
        if known is not None:
            return known.name
        return f"Server name unknown at this time (peerID: {peer})"

    def silent_ns(self, peer: str) -> int:
        """How long a server has not been heard; a very long time when it never was.

        Who was heard in this turn was so a nanosecond ago: clients take 0 for never.
        """
        life = self.liveness.life(peer)
        if life is None or not life.heard_ns:
            return NEVER_HEARD_NS
        return max(self.now_ns - life.heard_ns, 1)

    def left(self, peer: str) -> bool:
        """Whether a server said that it goes, and is gone."""
        life = self.liveness.life(peer)
        return life is not None and life.leaving and not life.up

    def facts(self) -> list[ServerFacts]:
        """All JetStream servers that are heard, this one first."""
        mine = self.own_news().facts
        others = [self.servers[peer].facts for peer in self.peers_up() if peer in self.servers]
        return [facts for facts in (mine, *others) if facts.jetstream]

    def learn_leader(self, known: Announcement) -> None:
        """A server says that it leads a group."""
        before = self.leaders.get(known.group)
        if before is None or known.term >= before.term:
            self.leaders[known.group] = known

    def leader_of(self, group: str) -> str:
        """Peer id of a group's leader as far as known here; empty when not, or when it is down or
        removed.

        One that was not heard for a while is remembered: when it comes back and never missed
        this server, it has no reason to say again what it leads.
        """
        known = self.leaders.get(group)
        if known is None:
            return ""
        leader = known.leader
        if leader != self.options.me and not self.liveness.is_up(leader):
            return ""
        # One that an operator removed may live on, and leads nothing any more.
        return "" if self.was_removed(leader) else leader

    def forget_leader(self, peer: str) -> None:
        """A server restarted or left: it leads nothing any more."""
        for group, known in list(self.leaders.items()):
            if known.leader == peer:
                del self.leaders[group]

    def forget_group(self, group: str) -> None:
        """A group is no more, here and elsewhere."""
        self.leaders.pop(group, None)
