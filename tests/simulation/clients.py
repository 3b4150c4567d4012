"""Clients of a simulated cluster: publishers, readers of consumers, and an operator.

All know only what servers tell them. A publish without an answer may have been stored or not:
with a message id it is tried again, without one its fate stays unknown.
"""

import json
from collections.abc import Callable
from typing import Any

from jsctl.api.words import AckPolicy
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.jetstream.consumers.acks import next_subject
from jsctl.broker.protocol.deliveries import Item
from jsctl.broker.replication.group import RaftGroup
from tests.simulation.consumer_checks import ConsumerBooks, Told
from tests.simulation.machine import ACCOUNT, Machine, Process
from tests.simulation.plan import ConsumerKind
from tests.simulation.port import Publish
from tests.simulation.violation import Violation
from tests.simulation.world import MS, SECOND, Network

Handler = Callable[[Publish], None]
FastTold = Callable[[str, str, dict[str, Any], str], list[tuple[int, bytes]]]
HAND_OVER_NS = 100_000
TTL_EVERY = 3
"""Each third message has a time to live, if any has; each third of those lives for ever."""
FULL = b"maximum messages exceeded"
"""What a publisher is told whose stream takes no more; it does not try again."""


INBOX_WORDS = 5


def _inbox_of(subject: bytes) -> tuple[str, str]:
    """(kind, extra) of an inbox, or of what is below one; empty for other subjects."""
    words = subject.decode().split(".")
    return (words[2], words[3]) if words[0] == "_INBOX" and len(words) >= INBOX_WORDS else ("", "")


class Hub:
    """Brings answers back to clients, and tells the checker what was promised to them."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.world = network.world
        self.machines: list[Machine] = []
        self.payloads: dict[bytes, bytes] = {}
        """Inbox of a publish -> what was published."""
        self.confirmed: set[tuple[str, int]] = set()
        """(consumer's group, sequence) whose ack was confirmed."""
        self.excused: Callable[[str], bool] = lambda name: False
        """Whether a group lost more than it can bear."""
        self.look: Callable[[Process, RaftGroup], None] = lambda process, group: None
        """The checker's look at a group that promises something."""
        self.consumers: Callable[[str, str, str], list[ConsumerBooks]] = lambda *names: []
        """What is known of a consumer: of its group, and behind it of those that had its name."""
        self.stored: Callable[[StreamReplica, int], None] = lambda unit, seq: None
        """A publisher is told that its message is stored."""
        self.got: Callable[[Process, str, Item], None] = lambda process, stream, item: None
        """Somebody who asked a stream for a message is told something."""
        self.fast_streams: dict[str, str] = {}
        """Fast batch -> its stream."""
        self.fast_told: FastTold = lambda *words: []
        """What was promised of a fast batch with an answer, by its stream's group: (sequence,
        payload)."""
        self.told = Told()
        self.delivered = 0
        self.slow = 0
        """Clients that did not read, and were let go."""
        self._acks: list[tuple[str, int, bytes]] = []
        self._handlers: dict[bytes, Handler] = {}
        self._count = 0

    def take_acks(self) -> list[tuple[str, int, bytes]]:
        """(stream's group, sequence, payload expected) acknowledged since the last call."""
        acks, self._acks = self._acks, []
        return acks

    def inbox(self, kind: str, entry: int, handler: Handler, extra: str = "0") -> bytes:
        """A subject for one answer, or for many, that `handler` takes."""
        self._count += 1
        top = "_PULL" if kind == "pull" else "_INBOX"
        subject = f"{top}.{entry}.{kind}.{extra}.{self._count}".encode()
        self._handlers[subject] = handler
        return subject

    def take_from(self, subject: bytes, handler: Handler) -> None:
        """Have a handler take what comes to a subject that is known beforehand."""
        self._handlers[subject] = handler

    def forget(self, inbox: bytes) -> None:
        """Nobody waits for this any more."""
        self._handlers.pop(inbox, None)

    def any_process(self) -> Process | None:
        """A running server, the one that a client happens to be connected to."""
        machine = self.world.random.choice(self.machines)
        process = machine.process
        return None if process is None or process.paused else process

    def arrived(self, number: int, message: Publish) -> None:
        """A message for the clients of a server: they take it a moment later."""
        self.world.at(HAND_OVER_NS, lambda: self._arrive(number, message))

    def _arrive(self, number: int, message: Publish) -> None:
        inbox = b".".join(message[0].split(b".", INBOX_WORDS)[:INBOX_WORDS])
        handler = self._handlers.get(message[0]) or self._handlers.get(inbox)
        if handler is not None:
            handler(message)

    def says(self, process: Process, item: Item) -> None:
        """A server publishes something: note promises, check deliveries."""
        subject, reply, _, payload, _ = item
        kind, extra = _inbox_of(subject)
        if kind == "p":
            self._pub_ack(process, subject, payload)
        elif kind == "f":
            self._fast_ack(process, subject, payload)
        elif kind == "d":
            self.got(process, extra, item)
        elif kind == "k":
            stream, consumer, seq = extra.split("-")
            if not payload:
                self._confirmed(process, stream, consumer, int(seq))
        elif reply.startswith(b"$JS.ACK."):
            self._delivery(process, reply, payload)

    def _pub_ack(self, process: Process, subject: bytes, payload: bytes) -> None:
        if b'"error"' in payload[:20]:
            return
        document = json.loads(payload)
        unit = process.engine.assets.streams.get((ACCOUNT, document["stream"]))
        if unit is not None and subject in self.payloads:
            # The stream may be deleted before the turn ends.
            self.look(process, unit.group)
            expected = self.payloads[subject]
            if "val" in document:
                expected = b'{"val":"%b"}' % document["val"].encode()
            elif unit.stream.config.allow_msg_counter:
                return  # A duplicate: what the first one was told counts.
            self._acks.append((unit.group.name, document["seq"], expected))
            self.stored(unit, document["seq"])

    def _fast_ack(self, process: Process, subject: bytes, payload: bytes) -> None:
        """What is told of a fast batch is so, and safe."""
        *_, name, _, gaps, _, _, _ = subject.decode().split(".")
        document = json.loads(payload)
        stream = self.fast_streams[name]
        unit = process.engine.assets.streams.get((ACCOUNT, stream))
        if unit is None or document.get("type") in ("gap", "err") or "error" in document:
            return
        self.look(process, unit.group)
        if not self.excused(unit.group.name):
            told = self.fast_told(unit.group.name, name, document, gaps)
            self._acks += [(unit.group.name, *one) for one in told]

    def _confirmed(self, process: Process, stream: str, consumer: str, seq: int) -> None:
        """An ack counts. One that is confirmed when the message is gone may be that of a consumer
        which was deleted, and made again, meanwhile."""
        unit = process.engine.assets.consumers.get((ACCOUNT, stream, consumer))
        if unit is None:
            return
        self.look(process, unit.group)
        found = self.consumers(unit.group.name, stream, consumer)
        for known in found:
            if known.is_done(seq):
                self.confirmed.add((known.group, seq))
                return
        # One behind the floor of deliveries is answered, but does not count, as with nats-server.
        explicit = any(known.config.ack_policy is AckPolicy.EXPLICIT for known in found)
        if explicit and not self.excused(unit.group.name):
            raise Violation(f"{process.machine.name} confirms an ack of {seq}, which did not count")

    def _delivery(self, process: Process, reply: bytes, payload: bytes) -> None:
        self.delivered += 1
        _, _, stream, consumer, count, seq, *_ = reply.decode().split(".")
        unit = process.engine.assets.consumers.get((ACCOUNT, stream, consumer))
        if unit is None:
            return
        name = unit.group.name
        self.look(process, unit.group)
        holder = process.engine.assets.streams.get((ACCOUNT, stream))
        if holder is not None:
            self.look(process, holder.group)
        found = self.consumers(name, stream, consumer)
        if not found or self.excused(name):
            return
        # What waited until other messages were gone may be the last word of one that was deleted,
        # and made again, meanwhile.
        known = next((one for one in found if not one.refusal(int(seq), int(count))), found[0])
        if (known.group, int(seq)) in self.confirmed:
            raise Violation(f"{process.machine.name} delivers {seq} to {consumer} after its ack")
        known.delivers(int(seq), int(count), payload)
        known.meter(process, self.world.now_ns, len(payload))


class Publisher:
    """Publishes to one stream, a few messages at a time."""

    def __init__(
        self,
        hub: Hub,
        number: int,
        stream: str,
        *,
        ids: bool,
        pace_ms: float,
        more: int = 0,
        ttl: bool = False,
    ) -> None:
        self.hub = hub
        self.ttl = ttl
        """Some of them have a time to live of their own."""
        self.more = more
        """Payloads are that much bigger."""
        self.world = hub.world
        self.number = number
        self.stream = stream
        self.ids = ids
        self.pace_ms = pace_ms
        self.open: dict[int, bytes] = {}
        """Messages without an answer: number -> last inbox."""
        self.stopped = False
        self.done = 0
        self._count = 0

    def step(self) -> None:
        """Go on for ever."""
        if not self.stopped and len(self.open) < 8:
            for _ in range(self.world.random.randint(1, 3)):
                self._count += 1
                self._send(self._count)
        self.world.at(int(self.world.random.expovariate(1.0) * self.pace_ms * MS), self.step)

    def probe(self) -> None:
        """Publish one message now."""
        self._count += 1
        self._send(self._count)

    def _send(self, number: int) -> None:
        process = self.hub.any_process()
        self.hub.forget(self.open.get(number, b""))
        self.open[number] = b""
        if process is not None:
            payload = b"%d-%d" % (self.number, number) + b"x" * (number % 7 * 40 + self.more)
            subject = f"{self.stream}.{number % 5}".encode()
            inbox = self.hub.inbox("p", process.number, lambda m: self._answered(number, m))
            self.open[number] = inbox
            self.hub.payloads[inbox] = payload
            headers = self._headers(number)
            process.publish((subject, inbox, headers, payload))
        wait = int(self.world.random.uniform(200, 500) * MS)
        inbox = self.open[number]
        self.world.at(wait, lambda: self._late(number, inbox))

    def _headers(self, number: int) -> bytes:
        lines = b""
        if self.ids:
            lines += b"Nats-Msg-Id: %d.%d\r\n" % (self.number, number)
        if self.ttl and number % TTL_EVERY == 0:
            lines += (
                b"Nats-TTL: never\r\n" if number % (3 * TTL_EVERY) == 0 else b"Nats-TTL: 1s\r\n"
            )
        return b"NATS/1.0\r\n%b\r\n" % lines if lines else b""

    def _answered(self, number: int, message: Publish) -> None:
        refused = b'"error"' in message[3][:20]
        if refused and FULL not in message[3]:
            return
        if self.open.pop(number, None) is not None:
            self.done += not refused

    def _late(self, number: int, inbox: bytes) -> None:
        if self.open.get(number) != inbox:
            return
        if self.ids:
            self._send(number)
        else:
            del self.open[number]


class Reader:
    """Pulls from one consumer and acknowledges most of what it gets."""

    def __init__(self, hub: Hub, stream: str, consumer: str, kind: ConsumerKind) -> None:
        self.hub = hub
        self.world = hub.world
        self.kind = kind
        self.stream = stream
        self.consumer = consumer
        self.careless = 0.5 if kind.letters else 0.15
        """Share of messages that are not acknowledged, or negatively."""
        self.stopped = False
        self._inbox = b""
        self._at: Process | None = None

    def step(self) -> None:
        """Pull again and again."""
        process = self.hub.any_process()
        if process is not None and not self.stopped:
            self._listen(process)
            if self.kind.push:
                self.world.at(int(self.world.random.uniform(500, 1500) * MS), self.step)
                return
            body = json.dumps({"batch": 10, "expires": 300 * MS}).encode()
            subject = next_subject(self.stream, self.consumer)
            process.publish((subject, self._inbox, b"", body))
        self.world.at(int(self.world.random.uniform(150, 350) * MS), self.step)

    def _listen(self, process: Process) -> None:
        """Take a new inbox at this server, and leave the last one."""
        self.hub.forget(self._inbox)
        if self._at is not None:
            self._at.port.unlisten(self._inbox)
        if self.kind.push:
            self._inbox = push_subject(self.stream, self.consumer).encode()
            self.hub.take_from(self._inbox, self._delivered)
        else:
            self._inbox = self.hub.inbox("pull", process.number, self._delivered)
        self._at = process
        process.port.listen(self._inbox)

    def _delivered(self, message: Publish) -> None:
        reply = message[1]
        process = self.hub.any_process()
        if not reply or process is None or self.kind.ack == "none":
            return
        seq = reply.decode().split(".")[5]
        word, inbox = b"", b""
        if self.world.chance(self.careless):
            if self.world.chance(0.5):
                return
            if self.kind.letters and self.world.chance(0.5):
                word = b"+TERM it is broken"
                self.hub.told.term(self.stream, self.consumer, int(seq))
            else:
                word = b"-NAK"
                self.hub.told.nak(self.stream, self.consumer, int(seq))
        else:
            self.hub.told.ack(self.stream, self.consumer, int(seq))
        if not word and self.world.chance(0.8):
            extra = f"{self.stream}-{self.consumer}-{seq}"
            inbox = self.hub.inbox("k", process.number, lambda m: None, extra)
        process.publish((reply, inbox, b"", word))


def push_subject(stream: str, consumer: str) -> str:
    """Where a push consumer delivers to."""
    return f"_PUSH.{stream}.{consumer}"


class Operator:
    """Management requests, each repeated until there is an answer."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.world = hub.world
        self.answers: list[tuple[str, dict[str, Any]]] = []
        self.waiting = 0
        self.calm = False
        """No leader changes: then each request is answered once. A new leader may answer again."""

    def ask(
        self, subject: str, body: dict[str, Any] | None = None, *, tries: int = 1, until: str = ""
    ) -> None:
        """Send a request; again when no answer came, or an error other than `until` names."""
        if tries <= 0:
            return
        process = self.hub.any_process()
        payload = json.dumps(body).encode() if body is not None else b""
        answered: list[bool] = []

        times: list[bool] = []

        def take(message: Publish) -> None:
            times.append(True)
            if len(times) > 1 and self.calm:
                raise Violation(f"{subject} is answered {len(times)} times")
            document = json.loads(message[3])
            error = document.get("error")
            if error is None or (until and until in error.get("description", "")):
                answered.append(True)
            self.answers.append((subject, document))

        def late() -> None:
            self.waiting -= 1
            if not answered:
                self.ask(subject, body, tries=tries - 1, until=until)

        self.waiting += 1
        if process is not None:
            inbox = self.hub.inbox("a", process.number, take)
            process.request(subject, payload, inbox)
        self.world.at(SECOND // 2, late)
