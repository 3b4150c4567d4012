"""Clients that add to counters, and a stream that sums up all others.

An increment without an answer is repeated with the same id: it counts once.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.jetstream.streams.publish_headers import COUNTER_SOURCES
from jsctl.broker.protocol import headers as blocks
from tests.simulation.clients import Hub
from tests.simulation.machine import ACCOUNT
from tests.simulation.port import Publish
from tests.simulation.stream_checks import Books
from tests.simulation.world import MS

if TYPE_CHECKING:
    from tests.simulation.run import Simulation

OPEN_MAX = 6
SUBJECTS = 3
SUM = "SUM"


class Adder:
    """Adds to the counters of one stream; see `clients.Publisher`."""

    def __init__(self, hub: Hub, number: int, stream: str, *, pace_ms: float) -> None:
        self.hub = hub
        self.world = hub.world
        self.number = number
        self.stream = stream
        self.pace_ms = pace_ms
        self.open: dict[int, bytes] = {}
        """Increments without an answer: number -> last inbox."""
        self.stopped = False
        self.done = 0
        self._count = 0

    def step(self) -> None:
        """Go on for ever."""
        if not self.stopped and len(self.open) < OPEN_MAX:
            for _ in range(self.world.random.randint(1, 3)):
                self.probe()
        self.world.at(int(self.world.random.expovariate(1.0) * self.pace_ms * MS), self.step)

    def probe(self) -> None:
        """Add once now."""
        self._count += 1
        self._send(self._count)

    def _send(self, number: int) -> None:
        process = self.hub.any_process()
        self.hub.forget(self.open.get(number, b""))
        self.open[number] = inbox = b""
        if process is not None:
            inbox = self.hub.inbox("p", process.number, lambda m: self._answered(number, m))
            self.open[number] = inbox
            self.hub.payloads[inbox] = b""
            subject = f"{self.stream}.{number % SUBJECTS}".encode()
            increment = number * (-1 if number % 4 == 3 else 1)
            lines = b"Nats-Incr: %+d\r\nNats-Msg-Id: %d.%d\r\n" % (increment, self.number, number)
            process.publish((subject, inbox, b"NATS/1.0\r\n%b\r\n" % lines, b""))
        wait = int(self.world.random.uniform(200, 500) * MS)
        self.world.at(wait, lambda: self._late(number, inbox))

    def _answered(self, number: int, message: Publish) -> None:
        payload = message[3]
        if not payload or b'"error"' in payload[:20]:
            return
        if self.open.pop(number, None) is not None:
            self.done += 1

    def _late(self, number: int, inbox: bytes) -> None:
        if self.open.get(number) == inbox:
            self._send(number)


class Sums:
    """A stream of counters that has those of all others as its sources: into few subjects."""

    def __init__(self, of: "Simulation") -> None:
        self._of = of
        self._origins = [config["name"] for config in of.configs]
        replicas, storage, _ = of.plan.streams[-1]
        self._config: dict[str, Any] = {
            "name": SUM,
            "allow_msg_counter": True,
            "num_replicas": replicas,
            "storage": storage,
            "sources": [
                {
                    "name": name,
                    "subject_transforms": [{"src": f"{name}.*", "dest": "SUM.{{wildcard(1)}}"}],
                }
                for name in self._origins
            ],
        }

    def create(self) -> None:
        """Have it made; it may be there."""
        self._of.operator.ask(
            f"STREAM.CREATE.{SUM}", self._config, tries=20, until="already in use"
        )

    def reasons(self, meta: Meta) -> Iterator[str]:
        """What it has not summed up yet."""
        books = self._books(meta, SUM)
        if books is None:
            return
        for subject in range(SUBJECTS):
            yield from self._subject(meta, books, subject)

    def _subject(self, meta: Meta, books: Books, number: int) -> Iterator[str]:
        seq = books.stream.store.last_for(b"SUM.%d" % number)
        record = None if seq is None else books.stream.store.load(seq)
        told: dict[str, dict[str, str]] = {}
        total = 0
        if record is not None:
            told = json.loads(blocks.get(record.headers, COUNTER_SOURCES) or b"{}")
            total = int(json.loads(record.payload)["val"])
        parts = [int(one) for subjects in told.values() for one in subjects.values()]
        if total != sum(parts):
            yield f"SUM.{number} is {total} instead of {sum(parts)}"
        for name in self._origins:
            origin, subject = self._books(meta, name), f"{name}.{number}"
            newest = None if origin is None else origin.totals.get(subject.encode())
            if newest and told.get(name, {}).get(subject) != str(newest[-1][1]):
                yield f"SUM.{number} lacks {newest[-1][1]} of {subject}"

    def _books(self, meta: Meta, name: str) -> Books | None:
        """None for a stream that lost what was acknowledged, or is not there."""
        made = meta.stream(ACCOUNT, name)
        known = None if made is None else self._of.checker.history(made.group.name)
        return None if known is None or known.excused else known.books
