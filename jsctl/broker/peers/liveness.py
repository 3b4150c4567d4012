"""Who of the other servers is alive, from heartbeats and from connections. Pure.

One heartbeat per pair of servers, whatever the number of groups. A server is down when nothing
was heard of it for the timeout, and at once when its last connection closed; it is up with the
first heartbeat after that. A changed boot id says that the process was restarted in between,
even if nobody noticed that it was away.
"""

from jsctl.broker.peers.items import PeerHeartbeat
from jsctl.dataclass import dataclass

HEARTBEAT_NS = 150_000_000
"""More would keep idle servers awake; fewer would make a server down that is only slow to turn."""
DOWN_AFTER_NS = 1_000_000_000
ENDED_AFTER_NS = 3_000_000_000
"""A process that lost its connections and lives has made new ones by then."""
RTT_SHARE = 8
"""A new round trip counts for one part in this many, as in TCP."""
SENT_KEPT = 64
"""Sequences whose time of sending is remembered; older echoes give no round trip."""


@dataclass(frozen=True, slots=True)
class WentUp:
    """A server is heard (again)."""

    peer: str


@dataclass(frozen=True, slots=True)
class WentDown:
    """A server is not heard any more; `closed`: because its connections ended."""

    peer: str
    closed: bool


@dataclass(frozen=True, slots=True)
class Restarted:
    """A server's process is another one than before. `incarnation_changed`: so is its disk."""

    peer: str
    incarnation: int
    incarnation_changed: bool


LivenessEvent = WentUp | WentDown | Restarted


@dataclass(frozen=True, slots=True)
class PeerLife:
    """What is known of a server, for reports."""

    peer: str
    up: bool
    heard_ns: int
    rtt_ns: int
    boot: int
    incarnation: int
    leaving: bool


@dataclass(slots=True)
class _Pair:
    up: bool = False
    linked: bool = False
    heard_ns: int = 0
    heard_sequence: int = 0
    boot: int = 0
    incarnation: int = 0
    leaving: bool = False
    rtt_ns: int = 0
    sequence: int = 0
    sent_ns: dict[int, int] | None = None
    next_ns: int = 0
    ended: bool = False
    """It went down as its connections were closed while it was heard."""
    down_ns: int = 0
    fresh_from: int = 0
    """What it sends may be from before a silence until it has heard this sequence."""


class Liveness:
    """The pairs of this server. Peers are peer ids; times are those of the turn."""

    def __init__(
        self,
        boot: int,
        incarnation: int,
        *,
        interval_ns: int = HEARTBEAT_NS,
        timeout_ns: int = DOWN_AFTER_NS,
    ) -> None:
        assert 0 < interval_ns < timeout_ns
        self._boot = boot
        self._incarnation = incarnation
        self._interval_ns = interval_ns
        self._timeout_ns = timeout_ns
        self._pairs: dict[str, _Pair] = {}
        self.late_ns = 0
        """The longest silence of a server that stayed up, since somebody set this to 0."""
        self.leaving = False
        """Told to the others, so that they move leaderships away and do not wait."""

    def linked(self, peer: str, now_ns: int) -> None:
        """The first connection to a server is there: heartbeats start at once."""
        pair = self._pairs.setdefault(peer, _Pair())
        if not pair.linked:
            pair.linked = True
            pair.fresh_from = 0
            pair.next_ns = now_ns

    def unlinked(self, peer: str, now_ns: int) -> list[LivenessEvent]:
        """The last connection closed: down at once."""
        pair = self._pairs.get(peer)
        if pair is None:
            return []
        pair.linked = False
        events = self._down(peer, pair, closed=True)
        if events:
            pair.ended, pair.down_ns = True, now_ns
        return events

    def cut_off(self, peer: str) -> None:
        """There is no way to a server any more, which may live: it is down after the timeout."""
        pair = self._pairs.get(peer)
        if pair is not None:
            pair.linked = False

    def heard(self, peer: str, beat: PeerHeartbeat, now_ns: int) -> list[LivenessEvent]:
        """A heartbeat arrived. One that was overtaken by a newer one changes nothing."""
        pair = self._pairs.setdefault(peer, _Pair())
        events: list[LivenessEvent] = []
        if pair.boot != beat.boot:
            if pair.boot:
                changed = pair.incarnation != beat.incarnation
                events += self._down(peer, pair, closed=False)
                events.append(Restarted(peer, beat.incarnation, changed))
            pair.boot = beat.boot
            pair.heard_sequence = 0
            pair.rtt_ns = 0
            pair.fresh_from = 0
        elif beat.sequence <= pair.heard_sequence:
            return []
        elif pair.up:
            self.late_ns = max(self.late_ns, now_ns - pair.heard_ns)
        if beat.echo >= pair.fresh_from:
            pair.fresh_from = 0
        pair.incarnation = beat.incarnation
        pair.heard_sequence = beat.sequence
        pair.heard_ns = now_ns
        pair.leaving = beat.leaving
        self._measure(pair, beat, now_ns)
        if not pair.up:
            pair.up, pair.ended = True, False
            events.append(WentUp(peer))
        return events

    def is_routine(self, peer: str, beat: PeerHeartbeat) -> bool:
        """Whether the heartbeat tells no more than that a server goes on to live."""
        pair = self._pairs.get(peer)
        return (
            pair is not None
            and pair.up
            and pair.boot == beat.boot
            and pair.leaving == beat.leaving
            and not pair.fresh_from
        )

    def tick(self, now_ns: int) -> list[LivenessEvent]:
        """Servers that have been silent for too long."""
        events: list[LivenessEvent] = []
        for peer, pair in self._pairs.items():
            if pair.up and now_ns - pair.heard_ns >= self._timeout_ns:
                pair.fresh_from = pair.sequence + 1
                events += self._down(peer, pair, closed=False)
        return events

    def stood_still(self) -> None:
        """This process was not running for a while: the others have given it up, and what it
        reads first is from then."""
        for pair in self._pairs.values():
            pair.fresh_from = pair.sequence + 1

    def clock_set(self, by_ns: int) -> None:
        """The clock was set forward: nobody was silent for so long."""
        for pair in self._pairs.values():
            pair.heard_ns += by_ns if pair.heard_ns else 0
            pair.next_ns += by_ns
            pair.down_ns += by_ns
            pair.sent_ns = {seq: at + by_ns for seq, at in (pair.sent_ns or {}).items()}

    def is_fresh(self, peer: str) -> bool:
        """Whether what a server sends is of now, and not what waited on its way while nothing
        came through: it has heard what was sent to it since."""
        pair = self._pairs.get(peer)
        return pair is None or not pair.fresh_from

    def due(self, now_ns: int) -> list[tuple[str, PeerHeartbeat]]:
        """Heartbeats to send now. What would follow soon goes with the first one: a server with
        nothing else to do wakes once for all the others."""
        linked = [(peer, pair) for peer, pair in self._pairs.items() if pair.linked]
        if not any([now_ns >= pair.next_ns for _, pair in linked]):
            return []
        soon_ns = now_ns + self._interval_ns // 2
        return [
            (peer, self._beat(pair, now_ns)) for peer, pair in linked if soon_ns >= pair.next_ns
        ]

    def beat(self, peer: str, now_ns: int) -> PeerHeartbeat:
        """A heartbeat out of turn, for a server that was heard of."""
        return self._beat(self._pairs[peer], now_ns)

    def deadline_ns(self) -> int | None:
        """When `due` or `tick` has something to do."""
        times = [pair.next_ns for pair in self._pairs.values() if pair.linked]
        times += [pair.heard_ns + self._timeout_ns for pair in self._pairs.values() if pair.up]
        return min(times, default=None)

    def forget(self, peer: str) -> None:
        """A server was removed from the cluster for good."""
        self._pairs.pop(peer, None)

    def is_up(self, peer: str) -> bool:
        """Whether a server is heard."""
        pair = self._pairs.get(peer)
        return pair is not None and pair.up

    def has_way(self, peer: str) -> bool:
        """Whether what is sent to a server can get there, as far as known: one that is heard may
        not be reached, where other clusters are not connected both ways."""
        pair = self._pairs.get(peer)
        return pair is not None and pair.linked

    @property
    def has_ways(self) -> bool:
        """Whether heartbeats are sent to anybody."""
        return any(pair.linked for pair in self._pairs.values())

    def has_ended(self, peer: str, now_ns: int) -> bool:
        """Whether a server's process is there no more, as far as its host tells: its connections
        were closed while it was heard, and no other one came since. A cut network is silent."""
        pair = self._pairs.get(peer)
        return pair is not None and pair.ended and now_ns - pair.down_ns >= ENDED_AFTER_NS

    def lives(self) -> list[PeerLife]:
        """All servers ever heard of since the start."""
        return [
            PeerLife(p, x.up, x.heard_ns, x.rtt_ns, x.boot, x.incarnation, x.leaving)
            for p, x in self._pairs.items()
        ]

    def life(self, peer: str) -> PeerLife | None:
        """What is known of one server."""
        x = self._pairs.get(peer)
        if x is None:
            return None
        return PeerLife(peer, x.up, x.heard_ns, x.rtt_ns, x.boot, x.incarnation, x.leaving)

    def _beat(self, pair: _Pair, now_ns: int) -> PeerHeartbeat:
        pair.sequence += 1
        if pair.sent_ns is None:
            pair.sent_ns = {}
        pair.sent_ns[pair.sequence] = now_ns
        pair.sent_ns.pop(pair.sequence - SENT_KEPT, None)
        pair.next_ns = now_ns + self._interval_ns
        return PeerHeartbeat(
            boot=self._boot,
            incarnation=self._incarnation,
            sequence=pair.sequence,
            echo=pair.heard_sequence,
            echo_held_ns=max(now_ns - pair.heard_ns, 0) if pair.heard_sequence else 0,
            leaving=self.leaving,
        )

    @staticmethod
    def _measure(pair: _Pair, beat: PeerHeartbeat, now_ns: int) -> None:
        sent_ns = (pair.sent_ns or {}).pop(beat.echo, None)
        if sent_ns is None:
            return
        rtt_ns = max(now_ns - sent_ns - beat.echo_held_ns, 1)
        if pair.rtt_ns:
            rtt_ns = pair.rtt_ns + (rtt_ns - pair.rtt_ns) // RTT_SHARE
        pair.rtt_ns = rtt_ns

    @staticmethod
    def _down(peer: str, pair: _Pair, *, closed: bool) -> list[LivenessEvent]:
        if not pair.up:
            return []
        pair.up = False
        return [WentDown(peer, closed)]
