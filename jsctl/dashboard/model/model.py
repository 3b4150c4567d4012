"""All tracks together: replies in, snapshots out.

Rounds: every gathering of details has a number. An asset that nobody mentions in a round is
deleted if everybody who could tell has answered; if a server that had it is away, it stays and is
shown as offline. A server is away when it missed `MISSES_MAX` rounds of pings that others
answered: rounds that nobody answered tell about our own connection, not about servers.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from jsctl.dashboard.model.advisories import event_of
from jsctl.dashboard.model.documents import Document, integer, section, sections, text
from jsctl.dashboard.model.history import Meter, Trail
from jsctl.dashboard.model.judge import alerts_of, badge_of
from jsctl.dashboard.model.raft import groups_of
from jsctl.dashboard.model.snapshot import (
    EVENTS_MAX,
    STALE_NS,
    Badge,
    Card,
    Consumer,
    Event,
    Level,
    Meta,
    RaftGroup,
    Server,
    Snapshot,
    Stream,
)
from jsctl.dashboard.model.tracks import (
    ConsumerTrack,
    GroupTrack,
    ServerTrack,
    StreamTrack,
    looked_at,
    peers_of,
    time_of,
)
from jsctl.dataclass import dataclass

MISSES_MAX = 2
STEP = 50
"""Streams of a report that are read at once."""
SEEN_MAX = 500
"""Ids of events kept, because two connections hear many events twice."""


@dataclass(frozen=True, slots=True)
class Told:
    """One server's reply to a system request."""

    server: Document
    data: Document
    rtt_ns: int = 0

    @property
    def name(self) -> str:
        """Who told."""
        return text(self.server, "name")


class Model:
    """Everything known. Methods take the time, and never wait."""

    def __init__(self, context: str = "") -> None:
        self.context = context
        self.account = ""
        self.connected = False
        self.system = False
        self.jetstream = False
        self.note = ""
        self.rtt_ns = 0
        self.heard_ns = 0
        """When anybody told anything."""
        self.pause_ns = 0
        """How long nobody is asked in between: data so old are still of now."""
        self.servers: dict[str, ServerTrack] = {}
        self.streams: dict[tuple[str, str], StreamTrack] = {}
        self.consumers: dict[tuple[str, str, str], ConsumerTrack] = {}
        self.groups: tuple[RaftGroup, ...] = ()
        self.events: deque[Event] = deque(maxlen=EVENTS_MAX)
        self._raft_meta: list[Told] = []
        self._round = 0
        self._serial = 0
        self._seen: deque[str] = deque(maxlen=SEEN_MAX)
        self._unseen: set[str] = set()
        self._badge = Badge.CONNECTING
        self._views: tuple[tuple[Stream, ...], tuple[Consumer, ...]] = ((), ())
        self._reading = False
        self._views_of: tuple[int, frozenset[str]] = (-1, frozenset())
        self._publish, self._deliver, self._lag, self._api, self._errors = (
            Trail(),
            Trail(),
            Trail(),
            Trail(),
            Trail(),
        )
        self._account_api = Meter()

    # Servers

    def read_servers(self, told: Sequence[Told], now_ns: int) -> None:
        """The answers to one round of STATSZ."""
        if not told:
            return
        self.heard_ns = now_ns
        for one in told:
            track = self.servers.setdefault(one.name, ServerTrack(one.name))
            if not track.up:
                self.say(now_ns, Level.OK, "server", one.name, "answers again")
            track.read(one.server, one.data, one.rtt_ns, now_ns)
        names = {one.name for one in told}
        for name, track in self.servers.items():
            if name in names:
                continue
            track.misses += 1
            if track.up and track.misses >= MISSES_MAX:
                track.up = False
                silent = (now_ns - track.seen_ns) / 1e9
                self.say(now_ns, Level.BAD, "server", name, f"no STATSZ reply for {silent:.1f} s")
        self._give_up(now_ns)
        up = [track for track in self.servers.values() if track.up]
        self._publish.add(sum(track.received.rate for track in up))
        self._deliver.add(sum(track.sent.rate for track in up))
        self._api.add(sum(track.api.rate for track in up))
        self._errors.add(sum(track.api_errors.rate for track in up))

    def expected_servers(self) -> int:
        """How many should answer a ping; 0 before anybody has."""
        told = [integer(one.statsz, "active_servers") for one in self.servers.values() if one.up]
        return max(told, default=0)

    def _give_up(self, now_ns: int) -> None:
        """A server that the meta group does not count any more is no longer missed."""
        down = self.down()
        meta = self._meta(now_ns, frozenset())
        if not down or not meta.leader:
            return
        members = {peer.name for peer in meta.peers}
        for name in down - members:
            if self.servers[name].meta:
                del self.servers[name]
                self.say(now_ns, Level.NOTE, "server", name, "is not in the meta group any more")

    def down(self) -> frozenset[str]:
        """Servers that do not answer."""
        return frozenset(name for name, track in self.servers.items() if not track.up)

    def read_raft_meta(self, told: Sequence[Told]) -> None:
        """The answers to RAFTZ about the meta group."""
        if told:
            self._raft_meta = list(told)

    def read_raft(self, told: Sequence[Told]) -> None:
        """The answers to RAFTZ about an account's groups."""
        names = {track.group: track.name for track in self.streams.values() if track.group}
        for consumer in self.consumers.values():
            if consumer.group:
                names[consumer.group] = f"{consumer.stream} > {consumer.name}"
        found = groups_of([*told, *self._raft_meta], names, self.down())
        if found:
            self.groups = found

    # Streams and consumers

    def read_details(
        self, told: Sequence[Told], names: Iterable[str] | None, now_ns: int, *, whole: bool
    ) -> None:
        """The answers to JSZ with accounts, streams and consumers.

        `names` are the streams of our own account as the meta leader knows them, also those that
        cannot answer; None if unknown. `whole` says that every server known to be up answered.
        """
        for _ in self.details_in_steps(told, names, now_ns, whole=whole):
            pass

    def details_in_steps(
        self, told: Sequence[Told], names: Iterable[str] | None, now_ns: int, *, whole: bool
    ) -> Iterator[None]:
        """The same, with pauses: a report of thousands takes longer than a key press may.

        Snapshots made in a pause show streams and consumers as they were before.
        """
        if not told:
            return
        self._reading = True
        self.heard_ns = now_ns
        self._round += 1
        try:
            for count, one in enumerate(_details(told)):
                at_ns = time_of(text(one.told.data, "now")) or now_ns
                self._read_stream(one.account, one.stream, one.told.name, at_ns, now_ns)
                if count % STEP == STEP - 1:
                    yield
        finally:
            self._reading = False
        self._forget({one.name for one in told} if whole else None, names)
        if whole:
            self._name_the_unseen(names)
        self._lag.add(sum(track.lag.last for track in self.consumers.values()))

    def read_lists(
        self,
        streams: Sequence[Document],
        consumers: Sequence[Document],
        unreachable: Iterable[str],
        now_ns: int,
    ) -> None:
        """The same from the lists of the JetStream API, which are complete.

        `unreachable` are streams that the lists name but do not describe.
        """
        self.heard_ns = now_ns
        self._round += 1
        before = sum(track.stored.rate for track in self.streams.values())
        for one in streams:
            self._read_stream(self.account, one, "", time_of(text(one, "ts")) or now_ns, now_ns)
        for name in unreachable:
            track = self._stream(self.account, name)
            track.leader, track.mentioned = "", self._round
            track.peers = looked_at(track.peers, track.servers())
        for one in consumers:
            at_ns = time_of(text(one, "ts")) or now_ns
            self._read_consumer(self.account, text(one, "stream_name"), one, "", at_ns, now_ns)
        known = {name for account, name in self.streams if account == self.account}
        self._forget(set(), known - {k for k in known if self._is_old(k)})
        self._lag.add(sum(track.lag.last for track in self.consumers.values()))
        if not self.system and before:
            self._publish.add(sum(track.stored.rate for track in self.streams.values()))
            self._deliver.add(sum(track.delivered.rate for track in self.consumers.values()))

    def read_account(self, document: Document, now_ns: int) -> None:
        """INFO of our own account: without system rights it is what is known of the API."""
        api = section(document, "api")
        self._account_api.read(integer(api, "total"), now_ns)
        if not self.system:
            self._api.add(self._account_api.rate)

    def _is_old(self, name: str) -> bool:
        return self.streams[self.account, name].mentioned != self._round

    def _stream(self, account: str, name: str) -> StreamTrack:
        return self.streams.setdefault((account, name), StreamTrack(account, name))

    def _read_stream(
        self, account: str, detail: Document, host: str, at_ns: int, now_ns: int
    ) -> None:
        name = text(detail, "name") or text(section(detail, "config"), "name")
        track = self._stream(account, name)
        if _is_better(track, detail, host, self._round):
            track.read(detail, host, at_ns, now_ns)
        track.mentioned = self._round
        for one in sections(detail, "consumer_detail"):
            self._read_consumer(account, name, one, host, at_ns, now_ns)

    def _read_consumer(
        self, account: str, stream: str, one: Document, host: str, at_ns: int, now_ns: int
    ) -> None:
        key = (account, stream, text(one, "name"))
        track = self.consumers.setdefault(key, ConsumerTrack(*key))
        if _is_better(track, one, host, self._round):
            track.read(one, host, at_ns, now_ns)
        track.mentioned = self._round

    def _name_the_unseen(self, names: Iterable[str] | None) -> None:
        """What is named, but described by nobody twice in a row, lives on lost servers only. Rounds
        in which somebody was late do not count: all that lives there would be lost."""
        unseen = {name for name in names or () if (self.account, name) not in self.streams}
        for name in unseen & self._unseen:
            self._stream(self.account, name).leader = ""
        self._unseen = unseen

    def _forget(self, answered: set[str] | None, names: Iterable[str] | None) -> None:
        """Drops what was deleted; `answered` is None if somebody who should answer did not."""
        known = None if names is None else set(names)
        for key, track in list(self.streams.items()):
            if track.mentioned == self._round:
                continue
            if known is not None and key[0] == self.account:
                gone = key[1] not in known
            else:
                gone = answered is not None and track.servers() <= answered
            if gone:
                del self.streams[key]
        for known_as, consumer in list(self.consumers.items()):
            if known_as[:2] not in self.streams:
                del self.consumers[known_as]
            elif consumer.mentioned != self._round and answered is not None:
                away = consumer.servers() - answered if answered else set()
                if not away and self.streams[known_as[:2]].mentioned == self._round:
                    del self.consumers[known_as]

    # Events

    def read_event(self, subject: str, document: Document, now_ns: int) -> Event | None:
        """A message on an event subject; None if it says nothing or was heard before."""
        name = text(document, "id")
        if name and name in self._seen:
            return None
        self._seen.append(name)
        event = event_of(subject, document, now_ns)
        if event is None or self._is_echo(event):
            return None
        if subject.startswith("$SYS.SERVER.") and event.who in self.servers:
            track = self.servers[event.who]
            track.lame_duck = subject.endswith("LAMEDUCK")
            track.misses = max(track.misses, MISSES_MAX - 1)
        if event.what == "damage":
            damaged = self.streams.get((self.account, text(document, "stream")))
            if damaged is not None:
                damaged.hear_damage(document, now_ns)
        return self._keep(event)

    def _is_echo(self, event: Event) -> bool:
        recent = list(self.events)[-20:]
        return any(
            (one.subject, one.who, one.said) == (event.subject, event.who, event.said)
            and abs(one.time_ns - event.time_ns) < 50_000_000
            for one in recent
        )

    def say(self, now_ns: int, level: Level, what: str, who: str, said: str) -> Event:
        """An event of our own making."""
        return self._keep(Event(now_ns, level, what, who, said))

    def _keep(self, event: Event) -> Event:
        self._serial += 1
        kept = replace(event, serial=self._serial)
        self.events.append(kept)
        return kept

    # Snapshots

    def snapshot(self, now_ns: int) -> Snapshot:
        """What is known now. Notes a change of the badge as an event."""
        down = self.down()
        streams, consumers = self._assets(now_ns, down)
        meta = self._meta(now_ns, down)
        servers = self._servers(now_ns, streams, consumers, meta.leader)
        badge = badge_of(servers, meta, streams, consumers)
        if not (servers or streams or self.heard_ns):
            blind = self.connected and not (self.system or self.jetstream)
            badge = Badge.NO_ACCESS if blind else Badge.CONNECTING
        stale_ns = max(0, now_ns - self.heard_ns - self.pause_ns) if self.heard_ns else 0
        if stale_ns > STALE_NS:
            badge = Badge.UNKNOWN
        if badge is not self._badge:
            if self._badge is not Badge.CONNECTING:
                level = {Badge.HEALTHY: Level.OK, Badge.DOWN: Level.BAD}.get(badge, Level.WARN)
                said = f"{self._badge.value} → {badge.value}"
                self.say(now_ns, level, "health", self.context or "cluster", said)
            self._badge = badge
        return Snapshot(
            taken_ns=now_ns,
            context=self.context,
            account=self.account,
            badge=badge,
            connected=self.connected,
            system=self.system,
            jetstream=self.jetstream,
            note=self.note,
            stale_ns=stale_ns,
            rtt_ns=self.rtt_ns,
            publish=_card(self._publish),
            deliver=_card(self._deliver),
            lag=_card(self._lag),
            api=_card(self._api),
            api_errors=self._errors.last,
            store=sum(one.store for one in servers),
            store_max=sum(one.store_max for one in servers),
            servers=servers,
            streams=streams,
            consumers=consumers,
            groups=self.groups,
            meta=meta,
            alerts=alerts_of(servers, meta, streams, consumers),
            events=tuple(self.events),
        )

    def _assets(
        self, now_ns: int, down: frozenset[str]
    ) -> tuple[tuple[Stream, ...], tuple[Consumer, ...]]:
        """Views are made anew only after a round or when a server came or went."""
        if self._reading or self._views_of == (self._round, down):
            return self._views
        consumers = [one.view(now_ns, self._round, down) for one in self.consumers.values()]
        lags: dict[tuple[str, str], int] = {}
        for one in consumers:
            key = (one.account, one.stream)
            lags[key] = lags.get(key, 0) + one.lag
        streams = [
            track.view(now_ns, self._round, down, lags.get(key, 0))
            for key, track in self.streams.items()
        ]
        streams.sort(key=lambda one: (-one.level, -one.lag, -one.rate, one.name))
        consumers.sort(key=lambda one: (-one.level, -one.lag, -one.rate, one.stream, one.name))
        self._views_of = (self._round, down)
        self._views = (tuple(streams), tuple(consumers))
        return self._views

    def _servers(
        self, now_ns: int, streams: Sequence[Stream], consumers: Sequence[Consumer], leader: str
    ) -> tuple[Server, ...]:
        leaders: dict[str, int] = {}
        assets: dict[str, int] = {}
        everything: list[Stream | Consumer] = [*streams, *consumers]
        for one in everything:
            leaders[one.leader] = leaders.get(one.leader, 0) + 1
            for peer in one.peers:
                assets[peer.name] = assets.get(peer.name, 0) + 1
        found = [
            track.view(now_ns, leaders.get(name, 0), assets.get(name, 0))
            for name, track in self.servers.items()
        ]
        found = [replace(one, meta_leader=one.name == leader) for one in found]
        return tuple(sorted(found, key=lambda one: one.name))

    def _meta(self, now_ns: int, down: frozenset[str]) -> Meta:
        """By the member that says it leads; without one, by any that answers."""
        told = [track for track in self.servers.values() if track.up and track.meta]
        if not told:
            return Meta()
        leading = [one for one in told if text(one.meta, "leader") == one.name]
        best = leading[0] if leading else told[0]
        document = best.meta
        peers = looked_at(peers_of(document, "" if leading else best.name), down)
        leader = text(document, "leader") if leading else ""
        term, since_ns = self._meta_term(leader, now_ns)
        return Meta(
            leader=leader,
            term=term,
            since_ns=since_ns,
            size=integer(document, "cluster_size"),
            need=integer(document, "quorum_needed") or integer(document, "cluster_size") // 2 + 1,
            peers=tuple(sorted(peers, key=lambda peer: peer.name)),
            pending=integer(document, "pending"),
            known=True,
        )

    def _meta_term(self, leader: str, now_ns: int) -> tuple[int, int]:
        for one in self._raft_meta:
            if one.name != leader:
                continue
            group = section(one.data, "$SYS", "_meta_")
            since = time_of(text(group, "leader_since"))
            return integer(group, "term"), max(0, now_ns - since) if since else 0
        return 0, 0


@dataclass(frozen=True, slots=True)
class _Detail:
    told: Told
    account: str
    stream: Document


def _details(told: Sequence[Told]) -> Iterator[_Detail]:
    """All streams of all reports, in an order that does not depend on who answered first."""
    for one in sorted(told, key=lambda one: one.name):
        for account in sections(one.data, "account_details"):
            for stream in sections(account, "stream_detail"):
                yield _Detail(one, text(account, "name"), stream)


def _card(trail: Trail) -> Card:
    return Card(trail.last, trail.tuple(), trail.change)


def _is_better(track: GroupTrack, document: Document, host: str, round_: int) -> bool:
    """Whether a document is to be believed: the leader's own, else the first of a round.

    Followers tell little and name their peers as seen from themselves.
    """
    leader = text(section(document, "cluster"), "leader")
    if not host or leader == host or not section(document, "cluster"):
        return True
    if track.mentioned == round_ and track.leader == track.host:
        return False
    return not leader
