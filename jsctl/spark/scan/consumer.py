"""Reads a range through a consumer of its own: in memory, unacknowledged, one replica.

The server filters, and delivers in order; what a consumer delivered is numbered, so a lost
delivery shows as a gap in those numbers and ends this reader. Two pull requests are kept open so
that the server never waits for the network.
"""

import json
import re
import time
from collections.abc import Sequence

from jsctl.api.subjects import api_subject
from jsctl.api.times import SECOND_NS
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.connection.wire import Message
from jsctl.spark.scan.plain import take_plain
from jsctl.spark.scan.range import CHUNK_BYTES, CHUNK_ROWS, Chunk, Interrupted, Range, Reader

PULL_MESSAGES = 5_000
PULL_BYTES = 8 << 20
PULLS_OPEN = 2
EXPIRES_S = 5.0
HEARTBEAT_S = 1.0
SILENCE_S = 2.5
"""Two heartbeats missed: the consumer or its server is gone."""
DOUBTS_MAX = 64
"""So many buffers are taken one message at a time before another one is tried as a whole."""
QUIET_S = 0.3
"""Without a message for so long, although some should come, the chunk so far is handed out."""
_SIZE = re.compile(rb"(?:^NATS/1\.0\r\n)?Nats-Msg-Size: \d+\r\n(?=\r\n\Z)(?:\r\n)?")
"""What the server adds to messages that it delivers without payload; alone, it is the block."""


class ConsumerReader(Reader):
    """One consumer."""

    def __init__(self, js: JetStream, wanted: Range, first: int) -> None:
        super().__init__(js, wanted, first)
        self._consumer = js.make_consumer(
            wanted.stream, first, wanted.filters, headers_only=wanted.headers_only
        )
        self._wire = js.wire
        self._inbox = f"{self._wire.inbox}p.{self._consumer.name}"
        self._sid = self._wire.subscribe(f"{self._inbox}.*")
        self._pull_to = api_subject(
            "consumer_msg_next", wanted.stream, self._consumer.name, prefix=js.prefix
        )
        self._match = re.compile(
            rb"H?MSG (\S+) %s \$JS\.ACK\.(?:[^. ]+\.){1,3}%s\.\d+\.(\d+)\.(\d+)\.(\d+)\.(\d+)"
            rb"(?:\.[^. ]+)? (?:(\d+) )?(\d+)\r\n" % (self._sid, self._consumer.name.encode())
        ).match
        self._mark = b""
        """See `plain`; empty until the first delivery shows it."""
        self._doubts = self._passes = 0
        self._pulls: dict[bytes, int] = {}
        """Open pull requests by inbox -> messages still due."""
        self._pull_count = 0
        self._delivered = 0
        """The consumer's own number of the last message."""
        self._left = self._consumer.pending
        self._heard = time.monotonic()
        self._emptied = False
        payload_max = wire_number(self._wire.info.get("max_payload"))
        self._pull_bytes = max(PULL_BYTES, 2 * payload_max)

    def close(self) -> None:
        """Delete the consumer unless the connection is gone."""
        if self.js.unsubscribe(self._wire, self._sid):
            self.js.delete_consumer(self._consumer)

    def chunk(self) -> Chunk:
        """Rows until the chunk is full or the consumer knows of no more.

        Called again after an empty chunk, it waits a moment: a replica that lags gets more later.
        """
        chunk = Chunk()
        size = 0
        waits = self._emptied
        while len(chunk.seqs) < CHUNK_ROWS and size < CHUNK_BYTES and (self._left or waits):
            self._pull()
            try:
                size += self._take(chunk)
            except TimeoutError:
                if time.monotonic() - self._heard > SILENCE_S:
                    raise Interrupted(
                        f"consumer {self._consumer.name} of stream {self.range.stream} is silent"
                    ) from None
                waits = False
                if chunk.seqs:
                    break
            if self.next >= self.range.end:
                break
        self._emptied = not chunk.seqs
        return chunk

    def _pull(self) -> None:
        due = sum(self._pulls.values())
        while len(self._pulls) < PULLS_OPEN and due < max(self._left, 1):
            self._pull_count += 1
            inbox = f"{self._inbox}.{self._pull_count}".encode()
            request = {
                "batch": PULL_MESSAGES,
                "max_bytes": self._pull_bytes,
                "expires": int(EXPIRES_S * SECOND_NS),
                "idle_heartbeat": int(HEARTBEAT_S * SECOND_NS),
            }
            body = json.dumps(request).encode()
            self._wire.send(b"PUB %s %s %d\r\n%s\r\n" % (self._pull_to, inbox, len(body), body))
            self._pulls[inbox] = PULL_MESSAGES
            due += PULL_MESSAGES

    def _take(self, chunk: Chunk) -> int:
        """Everything complete that is here; waits for at least something. Bytes taken."""
        return self._take_plain(chunk) or self._take_any(chunk)

    def _take_plain(self, chunk: Chunk) -> int:
        """As `_take_any` for messages without headers, as far as that goes; never waits."""
        if self._passes:
            self._passes -= 1
            return 0
        wire = self._wire
        if not self._mark:
            found = self._match(wire.data, wire.at)
            if found is None:
                return 0
            self._mark = wire.data[found.end(1) : found.start(2)]
        plain = take_plain(wire.data, wire.at, self._mark)
        if plain is None:
            # What fails once often fails again; trying seldom costs next to nothing.
            self._doubts = min(2 * self._doubts + 1, DOUBTS_MAX)
            self._passes = self._doubts - 1
            return 0
        self._doubts = 0
        taken, wire.at = plain.end - wire.at, plain.end
        if plain.subjects:
            chunk.heads += [b""] * len(plain.subjects)
            chunk.payloads += plain.payloads
            self._add(chunk, plain.subjects, plain.seqs, plain.numbers, plain.times, plain.pending)
        return taken

    def _take_any(self, chunk: Chunk) -> int:
        wire, match = self._wire, self._match
        data, at = wire.data, wire.at
        heads: list[tuple[bytes, ...]] = []
        begin, add = at, heads.append
        stored, payloads = chunk.heads.append, chunk.payloads.append
        while (found := match(data, at)) is not None:
            body = found.end()
            groups = found.groups()
            stop = body + int(groups[6])
            if stop + 2 > len(data):
                break
            if groups[5] is None:
                stored(b"")
                payloads(data[body:stop])
            else:
                split = body + int(groups[5])
                stored(data[body:split])
                payloads(data[split:stop])
            add(groups)
            at = stop + 2
        wire.at = at
        if heads:
            subjects, seqs, numbers, times, pending, _, _ = zip(*heads, strict=True)
            ends = int(numbers[0]), int(numbers[-1])
            self._add(chunk, subjects, seqs, ends, times, int(pending[-1]))
            return at - begin
        if found is not None:
            wire.fill(stop + 2 - at)
            self._heard = time.monotonic()
        elif data.find(b"\r\n", at) < 0:
            wire.fill(len(data) - at + 1, time.monotonic() + QUIET_S)
        elif not wire.control():
            self._other(wire.receive())
        return 0

    def _add(
        self,
        chunk: Chunk,
        subjects: Sequence[bytes],
        seqs: Sequence[bytes | int],
        numbers: tuple[int, int],
        times: Sequence[bytes],
        pending: int,
    ) -> None:
        """Messages whose payloads and header blocks the chunk has already; of their numbers the
        first and the last."""
        first, last = numbers
        if first != self._delivered + 1 or last - first + 1 != len(subjects):
            del chunk.heads[len(chunk.seqs) :]
            del chunk.payloads[len(chunk.seqs) :]
            raise Interrupted(f"deliveries of consumer {self._consumer.name} were lost")
        if self.range.headers_only:
            start = len(chunk.seqs)
            chunk.heads[start:] = [_SIZE.sub(b"", head) for head in chunk.heads[start:]]
        chunk.subjects += subjects
        chunk.seqs += map(int, seqs)
        chunk.times += times
        self._delivered = last
        self.next = chunk.seqs[-1] + 1
        self._left = pending
        self._heard = time.monotonic()
        self._count_pulled(len(subjects))

    def _count_pulled(self, messages: int) -> None:
        """The server fills pull requests one after the other."""
        for inbox in list(self._pulls):
            taken = min(self._pulls[inbox], messages)
            self._pulls[inbox] -= taken
            messages -= taken
            if not self._pulls[inbox]:
                del self._pulls[inbox]

    def _other(self, message: Message) -> None:
        """A status of a pull request."""
        if message.sid != self._sid:
            return
        self._heard = time.monotonic()
        status = message.status
        if status == 100:
            return
        ended = self._pulls.pop(message.subject, None)
        if status in (404, 408) or "message size exceeds" in message.description.lower():
            return
        if status == 409 and ("max" in message.description.lower() or ended is None):
            return
        raise Interrupted(
            f"consumer {self._consumer.name} of stream {self.range.stream}:"
            f" {status} {message.description}"
        )


def wire_number(value: object) -> int:
    """A number of the server's greeting, 0 if it is none."""
    return value if isinstance(value, int) else 0
