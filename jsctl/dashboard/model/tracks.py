"""What is remembered of one server, stream or consumer between two replies.

A track takes documents of the system account or the JetStream API in, and gives views out. It
keeps what was known when nobody tells any more.
"""

from collections.abc import Set as AbstractSet
from dataclasses import replace

from jsctl.api.stream import SequenceRange
from jsctl.api.times import SECOND_NS, parse_time
from jsctl.dashboard.model.documents import (
    NOTHING,
    Document,
    flag,
    integer,
    real,
    section,
    sections,
    text,
    texts,
)
from jsctl.dashboard.model.history import Meter, Trail
from jsctl.dashboard.model.judge import judge_consumer, judge_server, judge_stream
from jsctl.dashboard.model.snapshot import (
    Consumer,
    Damage,
    Kind,
    Level,
    Peer,
    PeerState,
    Server,
    Source,
    Stream,
)
from jsctl.render.reports.stream.checks import ranges_text

KINDS = (("KV_", Kind.BUCKET), ("OBJ_", Kind.OBJECTS), ("$MQTT_", Kind.OTHER))


DAMAGE_SHOWN_NS = 5_000_000_000
"""So long damage is shown that was told of, if whoever is asked knows of none (any more)."""
NAMELESS = "Server name unknown"
"""How a leader that never heard of a peer's name calls it; its id is shorter."""


def kind_of(name: str) -> Kind:
    """What a stream is the store of, by its name."""
    return next((kind for prefix, kind in KINDS if name.startswith(prefix)), Kind.STREAM)


def time_of(found: str) -> int:
    """A time of a reply; 0 when it is missing or broken."""
    try:
        return parse_time(found)
    except ValueError:
        return 0


class ServerTrack:
    """A server, by its STATSZ answers. `misses` counts rounds that it did not answer."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.server = NOTHING
        self.statsz = NOTHING
        self.seen_ns = 0
        self.rtt_ns = 0
        self.misses = 0
        self.up = True
        self.lame_duck = False
        self.cpu, self.mem, self.connections = Trail(), Trail(), Trail()
        self.received, self.sent, self.received_bytes, self.sent_bytes, self.api = (
            Meter(),
            Meter(),
            Meter(),
            Meter(),
            Meter(),
        )
        self.api_errors = Meter()

    def read(self, server: Document, statsz: Document, rtt_ns: int, now_ns: int) -> None:
        """An answer."""
        if text(statsz, "start") != text(self.statsz, "start"):
            self.lame_duck = False  # it was started again
        self.server, self.statsz, self.rtt_ns = server, statsz, rtt_ns
        self.seen_ns, self.misses, self.up = now_ns, 0, True
        at_ns = time_of(text(server, "time")) or now_ns
        received = section(statsz, "received_from_clients") or section(statsz, "received")
        sent = section(statsz, "sent_to_clients") or section(statsz, "sent")
        self.received.read(integer(received, "msgs"), at_ns)
        self.received_bytes.read(integer(received, "bytes"), at_ns)
        self.sent.read(integer(sent, "msgs"), at_ns)
        self.sent_bytes.read(integer(sent, "bytes"), at_ns)
        api = section(statsz, "jetstream", "stats", "api")
        self.api.read(integer(api, "total"), at_ns)
        self.api_errors.read(integer(api, "errors"), at_ns)
        self.cpu.add(real(statsz, "cpu"))
        self.mem.add(real(statsz, "mem"))
        self.connections.add(real(statsz, "connections"))

    @property
    def meta(self) -> Document:
        """The meta group as this server sees it."""
        return section(self.statsz, "jetstream", "meta")

    def view(self, now_ns: int, leaders: int, assets: int) -> Server:
        """The server; counts of assets come from the streams."""
        stats, config = (section(self.statsz, "jetstream", key) for key in ("stats", "config"))
        api = section(stats, "api")
        idle = not self.up
        found = Server(
            name=self.name,
            id=text(self.server, "id"),
            cluster=text(self.server, "cluster"),
            version=text(self.server, "ver"),
            host=text(self.server, "host"),
            up=self.up,
            age_ns=max(0, now_ns - self.seen_ns),
            lame_duck=self.lame_duck,
            jetstream=bool(stats),
            cpu=0.0 if idle else self.cpu.last,
            cores=integer(self.statsz, "cores"),
            mem=integer(self.statsz, "mem"),
            connections=integer(self.statsz, "connections"),
            subscriptions=integer(self.statsz, "subscriptions"),
            slow_consumers=integer(self.statsz, "slow_consumers"),
            routes=len({text(one, "name") for one in sections(self.statsz, "routes")}),
            in_msgs=0.0 if idle else self.received.rate,
            out_msgs=0.0 if idle else self.sent.rate,
            in_bytes=0.0 if idle else self.received_bytes.rate,
            out_bytes=0.0 if idle else self.sent_bytes.rate,
            store=integer(stats, "storage"),
            store_max=integer(config, "max_storage"),
            memory_store=integer(stats, "memory"),
            leaders=leaders,
            assets=assets,
            api_total=integer(api, "total"),
            api_errors=integer(api, "errors"),
            rtt_ns=self.rtt_ns,
            uptime_ns=self._uptime_ns(),
            cpu_trend=self.cpu.tuple(),
            in_trend=self.received.trail.tuple(),
            out_trend=self.sent.trail.tuple(),
            mem_trend=self.mem.tuple(),
            connections_trend=self.connections.tuple(),
        )
        level, why = judge_server(found)
        return replace(found, level=level, why=why)

    def _uptime_ns(self) -> int:
        return max(0, time_of(text(self.server, "time")) - time_of(text(self.statsz, "start")))


def peers_of(cluster: Document, host: str = "") -> tuple[Peer, ...]:
    """The members of a group as its leader tells, leader first.

    `host` is the server that told, in case it does not lead: it does not name itself.
    """
    leader = text(cluster, "leader")
    found = [Peer(leader, PeerState.LEADER)] if leader else []
    if host and host != leader:
        found.append(Peer(host, PeerState.CURRENT))
    told = {peer.name for peer in found}
    for one in sections(cluster, "replicas"):
        name = text(one, "name")
        if name.startswith(NAMELESS):
            name = text(one, "peer") or name
        if name in told:
            continue
        state = PeerState.CURRENT if flag(one, "current") else PeerState.BEHIND
        if flag(one, "offline"):
            state = PeerState.OFFLINE
        found.append(Peer(name, state, integer(one, "lag"), integer(one, "active")))
    head = found[:1] if leader else []
    return (*head, *sorted(found[len(head) :], key=lambda peer: peer.name))


def looked_at(peers: tuple[Peer, ...], down: AbstractSet[str]) -> tuple[Peer, ...]:
    """The members with what we know ourselves: servers that do not answer us are offline."""
    return tuple(
        replace(peer, state=PeerState.OFFLINE) if peer.name in down else peer for peer in peers
    )


def without_in_flight(peers: tuple[Peer, ...], rate: float) -> tuple[Peer, ...]:
    """The members where what is on its way does not count: a leader names everybody behind who has
    not yet what it has just committed, so that some are at any moment while messages come.

    `rate`: operations a second. A replica lacks less than a second of them, or it is behind.
    """
    return tuple(
        replace(peer, state=PeerState.CURRENT)
        if peer.state is PeerState.BEHIND and 0 < peer.lag <= rate and peer.active_ns < SECOND_NS
        else peer
        for peer in peers
    )


class GroupTrack:
    """What streams and consumers have in common: a group, and who told last."""

    def __init__(self) -> None:
        self.document = NOTHING
        self.host = ""
        self.peers: tuple[Peer, ...] = ()
        self.leader = ""
        self.group = ""
        self.read_ns = 0
        self.mentioned = 0
        """The round in which somebody told of it last."""

    def read_group(self, document: Document, host: str, now_ns: int) -> None:
        """What the leader says, or, without a leader, what a member says."""
        cluster = section(document, "cluster")
        self.document, self.host, self.read_ns = document, host, now_ns
        self.leader = text(cluster, "leader") or ("" if cluster else host)
        named = text(cluster, "raft_group") or text(document, "stream_raft_group")
        self.group = named or self.group
        self.peers = peers_of(cluster or {"leader": host}, host if not self.leader else "")

    def leader_now(self, down: AbstractSet[str]) -> str:
        """The leader, unless its server does not answer."""
        return "" if self.leader in down else self.leader

    def servers(self) -> set[str]:
        """Where it was last known to live."""
        return {peer.name for peer in self.peers}


class StreamTrack(GroupTrack):
    """A stream, by STREAM.LIST items or the details of JSZ."""

    def __init__(self, account: str, name: str) -> None:
        super().__init__()
        self.account, self.name = account, name
        self.stored = Meter()
        self.damage_told: Damage | None = None
        self.damage_told_ns = 0

    def read(self, document: Document, host: str, at_ns: int, now_ns: int) -> None:
        """What its leader says; `at_ns` is the server's clock."""
        self.read_group(document, host, now_ns)
        self.stored.read(integer(section(document, "state"), "last_seq"), at_ns)

    def view(self, now_ns: int, round_: int, down: AbstractSet[str], lag: int) -> Stream:
        """The stream; `lag` is the sum of its consumers'."""
        config, state = section(self.document, "config"), section(self.document, "state")
        rate = self.stored.rate
        peers = without_in_flight(looked_at(self.peers, down), rate)
        leader = self.leader_now(down)
        last_ns = time_of(text(state, "last_ts"))
        found = Stream(
            account=self.account,
            name=self.name,
            kind=kind_of(self.name),
            replicas=max(1, integer(config, "num_replicas")),
            subjects=texts(config, "subjects"),
            retention=text(config, "retention"),
            storage=text(config, "storage"),
            messages=integer(state, "messages"),
            bytes=integer(state, "bytes"),
            bytes_max=integer(config, "max_bytes") or -1,
            messages_max=integer(config, "max_msgs") or -1,
            first_seq=integer(state, "first_seq"),
            last_seq=integer(state, "last_seq"),
            last_ns=last_ns,
            idle_ns=max(0, now_ns - last_ns) if last_ns else -1,
            num_subjects=integer(state, "num_subjects"),
            deleted=integer(state, "num_deleted"),
            lost=_lost(state),
            damage=self._damage_now(now_ns),
            consumers=integer(state, "consumer_count"),
            sealed=flag(config, "sealed"),
            leader=leader,
            group=self.group,
            peers=peers,
            sources=_sources(self.document),
            lag=lag,
            rate=rate if leader else 0.0,
            trend=self.stored.trail.tuple(),
            stale_ns=0 if self.mentioned == round_ else now_ns - self.read_ns,
        )
        if not self.document:
            return replace(found, level=Level.BAD, why="no server that answers has it", stale_ns=0)
        level, why = judge_stream(found, discard_new=text(config, "discard") == "new")
        return replace(found, level=level, why=why)

    def hear_damage(self, document: Document, now_ns: int) -> None:
        """A server found some, and repairs it perhaps before it is asked the next time."""
        if text(document, "action") == "found":
            self.damage_told = replace(_damage(document), server=text(document, "server"))
            self.damage_told_ns = now_ns

    def _damage_now(self, now_ns: int) -> tuple[Damage, ...]:
        asked = tuple(map(_damage, sections(self.document, "jsctl_damage")))
        if not asked and self.damage_told and now_ns - self.damage_told_ns < DAMAGE_SHOWN_NS:
            return (self.damage_told,)
        return asked


def _lost(state: Document) -> int:
    found = section(state, "lost").get("msgs")
    return len(found) if isinstance(found, list) else 0


def _damage(found: Document) -> Damage:
    ranges = [
        SequenceRange(first=integer(one, "first"), last=integer(one, "last"))
        for one in sections(found, "ranges")
    ]
    return Damage(
        server=text(found, "name"),
        messages=integer(found, "messages"),
        lost=integer(found, "lost"),
        ranges=ranges_text(ranges),
    )


def _sources(document: Document) -> tuple[Source, ...]:
    config = section(document, "config")
    told = {text(one, "name"): one for one in sections(document, "sources")}
    mirror = section(document, "mirror")
    if mirror:
        told[text(mirror, "name")] = mirror
    wanted = [(one, False) for one in sections(config, "sources")]
    if section(config, "mirror"):
        wanted.append((section(config, "mirror"), True))
    found = []
    for one, is_mirror in wanted:
        name = text(one, "name")
        state = told.get(name, NOTHING)
        found.append(
            Source(
                name=name,
                mirror=is_mirror,
                lag=integer(state, "lag"),
                active_ns=integer(state, "active") if "active" in state else -1,
                error=text(section(state, "error"), "description"),
                external=text(section(one, "external"), "api"),
            )
        )
    return tuple(found)


class ConsumerTrack(GroupTrack):
    """A consumer, by CONSUMER.LIST items or the details of JSZ."""

    def __init__(self, account: str, stream: str, name: str) -> None:
        super().__init__()
        self.account, self.stream, self.name = account, stream, name
        self.delivered = Meter()
        self.lag = Trail()
        self.lag_rate = 0.0
        self._at_ns = 0

    def read(self, document: Document, host: str, at_ns: int, now_ns: int) -> None:
        """What its leader says; `at_ns` is the server's clock."""
        self.read_group(document, host, now_ns)
        self.delivered.read(integer(section(document, "delivered"), "consumer_seq"), at_ns)
        lag = float(integer(document, "num_pending"))
        if self._at_ns and at_ns > self._at_ns:
            self.lag_rate = (lag - self.lag.last) * 1e9 / (at_ns - self._at_ns)
        self._at_ns = at_ns
        self.lag.add(lag)

    def view(self, now_ns: int, round_: int, down: AbstractSet[str]) -> Consumer:
        """The consumer."""
        doc, config = self.document, section(self.document, "config")
        leader, rate = self.leader_now(down), self.delivered.rate
        # A delivery and its acknowledgement are two operations.
        peers = without_in_flight(looked_at(self.peers, down), 2 * rate)
        filters = texts(config, "filter_subjects") or tuple(
            one for one in (text(config, "filter_subject"),) if one
        )
        found = Consumer(
            account=self.account,
            stream=self.stream,
            name=self.name,
            push=bool(text(config, "deliver_subject")),
            bound=flag(doc, "push_bound"),
            ack=text(config, "ack_policy"),
            filters=filters,
            lag=integer(doc, "num_pending"),
            lag_rate=self.lag_rate if leader else 0.0,
            ack_pending=integer(doc, "num_ack_pending"),
            ack_pending_max=integer(config, "max_ack_pending"),
            ack_wait_ns=integer(config, "ack_wait"),
            redelivered=integer(doc, "num_redelivered"),
            waiting=integer(doc, "num_waiting"),
            delivered_seq=integer(section(doc, "delivered"), "stream_seq"),
            floor_seq=integer(section(doc, "ack_floor"), "stream_seq"),
            paused=flag(doc, "paused"),
            pause_left_ns=integer(doc, "pause_remaining"),
            pinned=tuple(
                (text(one, "group"), text(one, "pinned_client_id"))
                for one in sections(doc, "priority_groups")
            ),
            leader=leader,
            group=self.group,
            peers=peers,
            rate=rate if leader else 0.0,
            trend=self.delivered.trail.tuple(),
            stale_ns=0 if self.mentioned == round_ else now_ns - self.read_ns,
        )
        level, why = judge_consumer(found)
        return replace(found, level=level, why=why)
