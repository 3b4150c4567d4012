"""Clients that publish atomic batches.

A batch goes to one server, message by message. Some of them are spoilt: a message is left out, or
says what refuses the whole batch. One that was not answered is sent again under another name, with
the ids of the same messages: a refusal as a duplicate says that it was stored after all.
"""

from jsctl.broker.jetstream.streams.publish_headers import (
    BATCH_COMMIT,
    BATCH_ID,
    BATCH_SEQUENCE,
)
from tests.simulation.clients import FULL, Hub
from tests.simulation.machine import Process
from tests.simulation.port import Publish
from tests.simulation.world import MS

OPEN_MAX = 3
MEMBERS_MAX = 6
SPOILT = 0.15
DUPLICATE = b'"err_code":10201'


class Batcher:
    """Publishes batches to one stream, a few at a time; see `clients.Publisher`."""

    def __init__(self, hub: Hub, number: int, stream: str, *, pace_ms: float) -> None:
        self.hub = hub
        self.world = hub.world
        self.number = number
        self.stream = stream
        self.pace_ms = pace_ms
        self.open: dict[int, bytes] = {}
        """Batches without an answer: number -> inbox of the last attempt's commit."""
        self.stopped = False
        self.done = 0
        self._count = 0
        self._attempts = 0

    def step(self) -> None:
        """Go on for ever."""
        if not self.stopped and len(self.open) < OPEN_MAX:
            self.probe()
        self.world.at(int(self.world.random.expovariate(1.0) * self.pace_ms * MS), self.step)

    def probe(self) -> None:
        """Publish one batch now."""
        self._count += 1
        self._attempt(self._count)

    def _attempt(self, number: int) -> None:
        self.hub.forget(self.open.get(number, b""))
        self.open[number] = b""
        process = self.hub.any_process()
        if process is not None:
            self._begin(number, process)
        inbox = self.open[number]
        self.world.at(
            int(self.world.random.uniform(300, 700) * MS), lambda: self._late(number, inbox)
        )

    def _begin(self, number: int, process: Process) -> None:
        self._attempts += 1
        name = b"%d.%d.%d" % (self.number, number, self._attempts)
        size = number % MEMBERS_MAX + 1
        left_out = self.world.random.randint(1, size) if self.world.chance(SPOILT) else 0
        ends = size > 1 and number % 2 == 0
        self.open[number] = inbox = self.hub.inbox(
            "p", process.number, lambda message: self._answered(number, message)
        )
        payloads = [b"%b-%d-%d" % (name, seq, size) for seq in range(1, size + 1)]
        self.hub.payloads[inbox] = payloads[-1]
        delay = 0
        for seq, payload in enumerate(payloads, 1):
            delay += int(self.world.random.expovariate(1.0) * MS)
            if seq != left_out:
                last = seq == size and not ends
                message = self._member(number, name, seq, payload, inbox if last else b"", last)
                self._send(delay, process, message)
        if ends:
            headers = _headers(name, size + 1, b"eob")
            self._send(delay + MS, process, (f"{self.stream}.end".encode(), inbox, headers, b""))

    def _member(
        self, number: int, name: bytes, seq: int, payload: bytes, inbox: bytes, last: bool
    ) -> Publish:
        headers = _headers(
            name, seq, b"1" if last else b"", b"b%d.%d.%d" % (self.number, number, seq)
        )
        subject = f"{self.stream}.{(number + seq) % 5}".encode()
        return subject, inbox, headers, payload

    def _send(self, delay: int, process: Process, message: Publish) -> None:
        def send() -> None:
            if process.machine.process is process and not process.paused:
                process.publish(message)

        self.world.at(delay, send)

    def _answered(self, number: int, message: Publish) -> None:
        payload = message[3]
        refused = b'"error"' in payload[:20]
        unknown = not payload or (refused and FULL not in payload and DUPLICATE not in payload)
        if unknown:
            return
        if self.open.pop(number, None) is not None:
            self.done += not refused

    def _late(self, number: int, inbox: bytes) -> None:
        if self.open.get(number) == inbox:
            self._attempt(number)


def _headers(name: bytes, seq: int, commit: bytes, message_id: bytes = b"") -> bytes:
    lines = b"%b: %b\r\n%b: %d\r\n" % (BATCH_ID, name, BATCH_SEQUENCE, seq)
    if commit:
        lines += b"%b: %b\r\n" % (BATCH_COMMIT, commit)
    if message_id:
        lines += b"Nats-Msg-Id: %b\r\n" % message_id
    return b"NATS/1.0\r\n%b\r\n" % lines
