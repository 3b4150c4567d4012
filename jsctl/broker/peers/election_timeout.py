"""How long a leader may be silent before that means something: learned from recent lateness. Pure.

On a busy machine servers stand still for a while, and timers that are right for an idle one would
depose leaders that are well. Heartbeats of servers that stayed up tell how late they can be, this
server's own lateness included. A server whose connections close is voted out at once all the same.
"""

from dataclasses import field

from jsctl.dataclass import dataclass

WINDOW_NS = 10_000_000_000
WINDOWS = 3
"""What was late longer ago than so many windows is forgotten."""
ELECTION_MAX_NS = 1_500_000_000
"""Election timeouts are not raised beyond this."""


@dataclass(slots=True)
class ElectionTimeout:
    """Turns gaps between heartbeats into a factor for election timeouts. Times in ns."""

    election_ns: int
    """The least election timeout of an idle machine."""
    _worst: list[int] = field(default_factory=lambda: [0])
    _window_end_ns: int = 0

    def heard(self, gap_ns: int) -> None:
        """So long after its last heartbeat came the next one of a server that was up."""
        self._worst[-1] = max(self._worst[-1], gap_ns)

    def factor(self, now_ns: int) -> int:
        """1, 2, 4 ...: times the least election timeout, so that the worst gap is half of it."""
        if now_ns >= self._window_end_ns:
            self._window_end_ns = now_ns + WINDOW_NS
            self._worst = [*self._worst[1 - WINDOWS :], 0]
        factor = 1
        most = ELECTION_MAX_NS // (2 * self.election_ns)
        while factor <= most and 2 * max(self._worst) > factor * self.election_ns:
            factor *= 2
        return factor
