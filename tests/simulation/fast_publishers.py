"""Clients that publish fast batches, and what they may be told.

A publisher keeps to one server until it hears nothing from it; then it asks another one how far its
batch is, and goes on behind what is missing. Some messages are left out, some repeat the one
before.
"""

import json
from typing import Any

from tests.simulation.clients import Hub
from tests.simulation.machine import Process
from tests.simulation.port import Publish
from tests.simulation.world import MS

SPOILT = 0.05
FLOW = 3
SIZE_MAX = 40
SILENT_MS = 400
START, APPEND, COMMIT, END, PING = range(5)


class FastPublisher:
    """One batch after the other to one stream; see `clients.Publisher`."""

    def __init__(self, hub: Hub, number: int, stream: str, *, pace_ms: float) -> None:
        self.hub = hub
        self.world = hub.world
        self.number = number
        self.stream = stream
        self.pace_ms = pace_ms
        self.open: dict[int, bytes] = {}
        """The batch that is not over, and its inbox."""
        self.stopped = False
        self.done = 0
        self._count = 0
        self._process: Process | None = None
        self._begin()
        self.open.clear()

    def _begin(self) -> None:
        """The next batch; its first message is not sent yet."""
        self._count += 1
        self._gaps = "ok" if self.world.chance(0.5) else "fail"
        self._size = self.world.random.randint(1, SIZE_MAX)
        self._seq = 0
        self._told = 0
        self._every = 0
        self._heard_ns = self.world.now_ns
        self._process = None
        self.open = {self._count: b""}
        self.hub.fast_streams[self._id] = self.stream

    @property
    def _id(self) -> str:
        return f"{self._gaps}{self.number}x{self._count}"

    def step(self) -> None:
        """Go on for ever."""
        if self.open or not self.stopped:
            self._advance()
        self.world.at(int(self.world.random.expovariate(1.0) * self.pace_ms * MS), self.step)

    def probe(self) -> None:
        """Whatever is open goes on by itself; a short batch if nothing is."""
        if not self.open:
            self._begin()
            self._size = 1

    def _advance(self) -> None:
        if not self.open:
            self._begin()
        silent = self.world.now_ns - self._heard_ns > SILENT_MS * MS
        if self._process is None or silent:
            self._connect()
            if self._seq:
                self._send(self._seq, PING)
            if self._seq >= self._size:
                self._send(self._seq + 1, END)
            return
        if self._seq and not self._every:
            return
        for _ in range(self.world.random.randint(1, 4)):
            if self._seq < self._size and self._seq <= self._told + 2 * self._every:
                self._next()

    def _connect(self) -> None:
        self._process = self.hub.any_process()
        self._heard_ns = self.world.now_ns
        self.hub.forget(self.open[self._count])
        if self._process is not None:
            self.open[self._count] = self.hub.inbox(
                "f", self._process.number, self._hears, self._id
            )

    def _next(self) -> None:
        spoilt = self._seq > 1 and self.world.chance(SPOILT)
        self._seq += self.world.random.choice([0, 2]) if spoilt else 1
        last = self._seq >= self._size
        if self._seq == 1:
            self._send(1, COMMIT if last else START)
        else:
            self._send(self._seq, (END if self._count % 3 == 0 else COMMIT) if last else APPEND)

    def _send(self, seq: int, operation: int) -> None:
        process = self._process
        if process is None or process.machine.process is not process or process.paused:
            return
        inbox = self.open[self._count]
        reply = inbox + f".{self._id}.{FLOW}.{self._gaps}.{seq}.{operation}.$FI".encode()
        payload = f"F{self._id}-{seq}".encode()
        process.publish((f"{self.stream}.{seq % 5}".encode(), reply, b"", payload))

    def _hears(self, message: Publish) -> None:
        if self._id.encode() not in message[0] or not self.open:
            return
        self._heard_ns = self.world.now_ns
        document: dict[str, Any] = json.loads(message[3] or b"{}")
        kind = document.get("type")
        if kind == "ack":
            self._told, self._every = document["seq"], document["msgs"]
        elif kind is None and document:
            self.done += "error" not in document
            self.hub.forget(self.open[self._count])
            self.open = {}
