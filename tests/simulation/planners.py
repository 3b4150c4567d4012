"""Clients that publish schedules, replace them and end them.

A publish without an answer is repeated with the same id. What is due again and again is ended once
the chaos is over; what is due once is not.
"""

from jsctl.broker.jetstream.scheduling.patterns import written
from tests.simulation.clients import Hub
from tests.simulation.port import Publish
from tests.simulation.world import MS

OPEN_MAX = 4
ONCE = 5
"""Subjects of schedules that are due once."""
OFTEN = 2


class Planner:
    """Publishes schedules to one stream; see `clients.Publisher`."""

    def __init__(self, hub: Hub, number: int, stream: str, *, pace_ms: float) -> None:
        self.hub = hub
        self.world = hub.world
        self.number = number
        self.stream = stream
        self.pace_ms = pace_ms
        self.open: dict[int, tuple[bytes, bytes, bytes]] = {}
        """Publishes without an answer: number -> last inbox, subject and headers."""
        self.stopped = False
        self.done = 0
        self._ended = False
        self._count = 0

    def step(self) -> None:
        """Go on for ever."""
        if self.stopped and not self._ended:
            self._ended = True
            for number in range(OFTEN):
                self._begin(*self._end(b"often.%d" % number))
        if not self.stopped and len(self.open) < OPEN_MAX:
            self._begin(*self._draw())
        self.world.at(int(self.world.random.expovariate(1.0) * self.pace_ms * MS), self.step)

    def probe(self) -> None:
        """Publish once now."""
        self._begin(b"plain", b"")

    def _draw(self) -> tuple[bytes, bytes]:
        rng = self.world.random
        once, often = b"once.%d" % rng.randrange(ONCE), b"often.%d" % rng.randrange(OFTEN)
        what = rng.random()
        if what < 0.55:
            process = self.hub.any_process()
            now_ns = 0 if process is None else process.machine.latest_ns
            wait_ms = rng.uniform(1_500, 5_000) if rng.random() < 0.3 else rng.uniform(-100, 900)
            at = written(now_ns + int(wait_ms) * MS, 0)
            return once, self._plan(b"@at " + at.encode())
        if what < 0.7:
            return often, self._plan(b"@every 1s")
        if what < 0.9:
            return self._end(rng.choice([once, often]))
        return once, b""

    def _plan(self, text: bytes) -> bytes:
        line = b"Nats-Schedule: %b\r\nNats-Schedule-Target: %b.out\r\n"
        return line % (text, self.stream.encode())

    def _end(self, subject: bytes) -> tuple[bytes, bytes]:
        line = b"Nats-Schedule-Next: purge\r\nNats-Scheduler: %b.%b\r\n"
        return b"end", line % (self.stream.encode(), subject)

    def _begin(self, subject: bytes, lines: bytes) -> None:
        self._count += 1
        number = self._count
        ident = b"Nats-Msg-Id: %d.%d\r\n" % (self.number, number)
        headers = b"NATS/1.0\r\n%b%b\r\n" % (lines, ident)
        self.open[number] = b"", b"%b.%b" % (self.stream.encode(), subject), headers
        self._send(number)

    def _send(self, number: int) -> None:
        process = self.hub.any_process()
        inbox, subject, headers = self.open[number]
        self.hub.forget(inbox)
        if process is not None:
            inbox = self.hub.inbox("p", process.number, lambda m: self._answered(number, m))
            self.open[number] = inbox, subject, headers
            self.hub.payloads[inbox] = body = b"%d.%d" % (self.number, number)
            process.publish((subject, inbox, headers, body))
        wait = int(self.world.random.uniform(200, 500) * MS)
        self.world.at(wait, lambda: self._late(number, inbox))

    def _answered(self, number: int, message: Publish) -> None:
        payload = message[3]
        # An end is refused where a plain message took the place of the schedule.
        if not payload or (b'"error"' in payload[:20] and b"10212" not in payload):
            return
        if self.open.pop(number, None) is not None:
            self.done += 1

    def _late(self, number: int, inbox: bytes) -> None:
        if number in self.open and self.open[number][0] == inbox:
            self._send(number)
