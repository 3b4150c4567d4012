"""Connections between simulated servers: bytes in order, late, in pieces, or not for a while.

What TCP does for the broker is done here: nothing is lost or reordered on a connection as long
as it lives. A cut network stalls it; what is on its way arrives when the cut is over. A process
that is gone makes its end close, noticed at once or only when something is sent to it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tests.simulation.world import MS, Network

RETRY_MS = (20, 200)
"""When a packet that was lost, or could not pass, is tried again."""
DIAL_TIMEOUT_NS = 1000 * MS
REFUSED = "connection refused"
PENDING_HIGH, PENDING_LOW = 64 * 1024, 16 * 1024
"""The process hears of it when its unsent bytes pass these; smaller than real ones, like all
sizes here."""


class End(Protocol):
    """A process that has sockets."""

    number: int

    @property
    def alive(self) -> bool:
        """Whether it still runs."""

    @property
    def replaced(self) -> bool:
        """Whether another process runs in its place: packets to it are answered by a reset."""

    def new_conn(self) -> int:
        """A number for a connection."""

    def arrived(self, conn: int, data: bytes) -> None:
        """Bytes came."""

    def lost(self, conn: int, reason: str) -> None:
        """A connection is gone."""

    def unsent(self, conn: int, size: int) -> None:
        """What is not sent yet passed a mark."""


class Socket:
    """One end of a connection; `peer` is the other."""

    def __init__(self, network: Network, owner: End) -> None:
        self.network = network
        self.world = network.world
        self.owner = owner
        self.conn = owner.new_conn()
        self.reading = True
        self.closed = False
        self.peer: Socket = self
        self._queue: list[bytes] = []
        self._ends = False
        """Close once everything was sent."""
        self._flying = False
        self._there_ns = 0
        """When what is on a long way arrives."""
        self._congested = False

    @staticmethod
    def pair(network: Network, one: End, other: End) -> tuple[Socket, Socket]:
        """A connection."""
        here, there = Socket(network, one), Socket(network, other)
        here.peer, there.peer = there, here
        return here, there

    def write(self, data: bytes) -> None:
        """Send, some time."""
        if not self.closed and not self._ends:
            self._queue.append(data)
            self._mark()
            self._pump()

    def close(self) -> None:
        """Send what was written, then end."""
        self._ends = True
        self._pump()

    def reset(self, reason: str) -> None:
        """End at once, as this side sees it."""
        if not self.closed:
            self.closed = True
            self._queue.clear()
            if self.owner.alive:
                self.owner.lost(self.conn, reason)

    def broken(self) -> None:
        """The other side is gone."""
        self.reset("Connection Reset")

    def read_again(self) -> None:
        """The process takes bytes again."""
        self.reading = True
        self.peer._pump()

    def _pump(self) -> None:
        if self._flying or self.closed or not self.peer.reading:
            return
        if not self._queue and not self._ends:
            return
        self._flying = True
        self._try()

    def _try(self) -> None:
        network, world = self.network, self.world
        here, there = self.owner.number, self.peer.owner.number
        if network.is_cut(here, there) or world.chance(network.weather.loss):
            world.at(world.random.randint(*RETRY_MS) * MS, self._again)
            return
        world.at(network.delay_ns(), self._land)

    def _again(self) -> None:
        if not self.closed and self.owner.alive:
            self._try()

    def _land(self) -> None:
        """What was sent together is there."""
        self._flying = False
        peer = self.peer
        if self.closed or not self.owner.alive:
            return
        if peer.owner.replaced or (peer.owner.alive and peer.closed):
            self.broken()
            return
        if not peer.owner.alive:
            # Nobody answers, and nobody refuses: it is sent again until somebody does.
            self._flying = True
            self.world.at(RETRY_MS[1] * MS, self._again)
            return
        data, self._queue = b"".join(self._queue), []
        if data and self.world.chance(self.network.weather.pieces):
            cut = self.world.random.randrange(len(data))
            data, rest = data[:cut], data[cut:]
            self._queue.append(rest)
        if data:
            self._bring(lambda: peer.owner.arrived(peer.conn, data))
        self._mark()
        if self._queue:
            self._pump()
        elif self._ends:
            self._bring(lambda: peer.reset("Client Closed"))
            self.reset("Client Closed")

    def _bring(self, what: Callable[[], None]) -> None:
        """Have something happen at the other end: on a long way more follows meanwhile."""
        peer = self.peer
        far_ns = self.network.far_ns.get((self.owner.number, peer.owner.number), 0)

        def arrive() -> None:
            if peer.owner.replaced or (peer.owner.alive and peer.closed):
                self.broken()
            elif peer.owner.alive:
                what()
            elif not self.closed:
                # It died meanwhile: its system acknowledges nothing, so all of it is sent again.
                self.world.at(RETRY_MS[1] * MS, arrive)

        if not far_ns and self._there_ns <= self.world.now_ns:
            what()
            return
        # Nothing is overtaken when the way becomes shorter.
        self._there_ns = max(self._there_ns, self.world.now_ns + far_ns)
        self.world.at(self._there_ns - self.world.now_ns, arrive)

    def _mark(self) -> None:
        size = sum(map(len, self._queue))
        if size > PENDING_HIGH or (self._congested and size < PENDING_LOW):
            self._congested = size > PENDING_HIGH
            if self.owner.alive:
                self.owner.unsent(self.conn, size)


def dial(
    network: Network,
    source: End,
    target: Callable[[], End | None],
    number: int,
    done: Callable[[Socket | None, Socket | None, str], None],
) -> None:
    """Connect `source` to whatever runs on machine `number` by then.

    `done` gets both ends, or none and the reason.
    """
    world = network.world
    far_ns = 2 * network.far_ns.get((source.number, number), 0)
    pairs = ((source.number, number), (number, source.number))
    if any(network.is_cut(*pair) for pair in pairs):
        world.at(DIAL_TIMEOUT_NS, lambda: done(None, None, "i/o timeout"))
        return

    def knock() -> None:
        there = target()
        if there is None:
            world.at(network.delay_ns(), lambda: done(None, None, REFUSED))
        elif source.alive:
            done(*Socket.pair(network, source, there), "")

    world.at(network.delay_ns() + far_ns, knock)
