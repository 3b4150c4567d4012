"""When a client is pinged, and when it is given up: no clock, no bytes, only deadlines."""

from enum import Enum

from jsctl.broker.deadlines import NEVER_NS
from jsctl.broker.routing.limits import RoutingLimits
from jsctl.broker.turn import Jitter

RTT_INTERVAL_NS = 3600 * 1_000_000_000
"""How often a client is pinged although it talks, to know its round trip."""


class Probe(Enum):
    """What a deadline asks for."""

    NOTHING = 0
    PING = 1
    GIVE_UP = 2


class KeepAlive:
    """One connection's pings. `deadline_ns` is when something is due; `rtt_ns` the round trip.

    `asked_ns` is when it was pinged and has not answered since; 0: it has.
    `noted_ns` is for whoever waits for many of them: the deadline that he knows of.
    """

    __slots__ = (
        "_leaves_ns",
        "_limits",
        "_pinged_ns",
        "_unanswered",
        "asked_ns",
        "deadline_ns",
        "noted_ns",
        "rtt_ns",
    )

    def __init__(self, limits: RoutingLimits) -> None:
        self._limits = limits
        self._leaves_ns = NEVER_NS
        self._pinged_ns = self._unanswered = self.asked_ns = 0
        self.deadline_ns = self.noted_ns = self.rtt_ns = 0

    def change_limits(self, limits: RoutingLimits, now_ns: int) -> None:
        """Other times count from now on: who would wait for longer is pinged sooner."""
        self._limits = limits
        self.deadline_ns = min(self.deadline_ns, now_ns + limits.ping_interval_ns)

    def leaves(self, at_ns: int) -> None:
        """It may stay no longer than until then; 0: for ever."""
        self._leaves_ns = at_ns or NEVER_NS
        self.deadline_ns = min(self.deadline_ns, self._leaves_ns)

    def await_login(self, now_ns: int) -> None:
        """The connection is there, and has to say who it is."""
        self.deadline_ns = now_ns + self._limits.auth_timeout_ns

    def await_connect(self, now_ns: int, jitter: Jitter) -> None:
        """The same of one that anybody may be: until it says CONNECT it may still be busy with TLS,
        and libraries that have just said it take the next line for the PONG to their PING."""
        self.deadline_ns = now_ns + self._limits.ping_interval_ns + self._offset_ns(jitter)

    def begin(self, now_ns: int, jitter: Jitter) -> None:
        """It may stay: the first ping follows soon, at another time for each."""
        deadline_ns = now_ns + self._first_ns() + self._offset_ns(jitter)
        self.deadline_ns = min(deadline_ns, self._leaves_ns)

    def _first_ns(self) -> int:
        return min(self._limits.ping_interval_ns, self._limits.first_ping_ns)

    def _offset_ns(self, jitter: Jitter) -> int:
        """Who came together is not pinged together."""
        return jitter(self._first_ns() // 5 + 1)

    def greeted(self, elapsed_ns: int) -> None:
        """CONNECT came so long after INFO: a round trip, unless a better one is known."""
        self.rtt_ns = self.rtt_ns or max(elapsed_ns, 1)

    def pong(self, now_ns: int) -> None:
        """The other side is alive."""
        self._unanswered = self.asked_ns = 0
        if self._pinged_ns:
            self.rtt_ns = max(now_ns - self._pinged_ns, 1)

    def pinged(self, now_ns: int) -> None:
        """It was pinged out of turn, to know its round trip; nobody is given up for that."""
        self._pinged_ns = self.asked_ns = now_ns

    def due(self, now_ns: int, last_in_ns: int) -> Probe:
        """The deadline of one that was let in has come; moves it on unless all is over."""
        interval_ns = self._limits.ping_interval_ns
        measured = self._pinged_ns and now_ns - self._pinged_ns < RTT_INTERVAL_NS
        probe = Probe.NOTHING
        if not measured or now_ns - last_in_ns >= interval_ns:
            if self._unanswered >= self._limits.pings_unanswered_max:
                return Probe.GIVE_UP
            self._unanswered += 1
            self._pinged_ns = now_ns
            self.asked_ns = self.asked_ns or now_ns
            probe = Probe.PING
        self.deadline_ns = min(now_ns + interval_ns, self._leaves_ns)
        return probe
