"""Time and network of a simulation: one heap of events, links that lose, double and reorder.

Times are ns since the start of the run. Everything that is left to chance is drawn from the one
generator here, in the order of events, so that a plan names a run.
"""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass

MS = 1_000_000
SECOND = 1_000_000_000
Event = Callable[[], None]


class World:
    """The clock."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ns = 0
        self.count = 0
        """Events so far."""
        self._events: list[tuple[int, int, Event]] = []
        self._made = 0

    def at(self, delay_ns: int, event: Event) -> None:
        """Have something happen after a delay."""
        self._made += 1
        heapq.heappush(self._events, (self.now_ns + max(delay_ns, 0), self._made, event))

    def run(self, until_ns: int) -> None:
        """Let everything happen that is due by then."""
        events = self._events
        while events and events[0][0] <= until_ns:
            at, _, event = heapq.heappop(events)
            self.now_ns = at
            self.count += 1
            event()
        self.now_ns = until_ns

    def chance(self, probability: float) -> bool:
        """Whether something of this probability happens."""
        return probability > 0 and self.random.random() < probability


@dataclass
class Weather:
    """How bad the network is."""

    delay_ms: float = 1.0
    """Mean of an exponential distribution."""
    loss: float = 0.0
    """Share of packets that have to be sent again; what was sent behind them waits."""
    pieces: float = 0.0
    """Share of packets of which a part comes later."""
    slow: float = 0.0
    """Share of packets that come much later than those of other connections."""


class Network:
    """What lies between machines, numbered from 0. Nothing passes where it is cut."""

    def __init__(self, world: World, weather: Weather) -> None:
        self.world = world
        self.weather = weather
        self.cut: dict[tuple[int, int], int] = {}
        """(from, to) -> how many reasons there are."""
        self.far_ns: dict[tuple[int, int], int] = {}
        """(from, to) -> what a way takes in any weather, between clusters that are far apart."""

    def is_cut(self, source: int, target: int) -> bool:
        """Whether packets from one machine to another are lost."""
        return (source, target) in self.cut

    def block(self, pairs: list[tuple[int, int]], duration_ns: int) -> None:
        """Cut connections for a while."""
        self.disconnect(pairs)
        self.world.at(duration_ns, lambda: self.connect(pairs))

    def disconnect(self, pairs: list[tuple[int, int]]) -> None:
        """Cut connections."""
        for pair in pairs:
            self.cut[pair] = self.cut.get(pair, 0) + 1

    def connect(self, pairs: list[tuple[int, int]]) -> None:
        """Take back one cut of each of these connections, if it has any."""
        for pair in pairs:
            if pair in self.cut:
                self.cut[pair] -= 1
                if not self.cut[pair]:
                    del self.cut[pair]

    def heal(self) -> None:
        """Good weather from now on."""
        self.cut.clear()
        self.weather = Weather(delay_ms=0.5)

    def delay_ns(self) -> int:
        """How long a packet is on its way."""
        delay = self.world.random.expovariate(1.0) * self.weather.delay_ms
        if self.world.chance(self.weather.slow):
            delay += self.world.random.uniform(5, 120)
        return int(delay * MS) + 50_000
