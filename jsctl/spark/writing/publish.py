"""Publishes messages and sees each one acknowledged, many in flight, each stored once.

When the connection breaks or an acknowledgement does not come, nobody knows which of the messages
in flight were stored. Then the target is read from the place where it was before, the ids found
there are struck off, and only the others are sent again. The server's own window for duplicates
covers what was still on its way while the target was read.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping

from jsctl.api.times import SECOND_NS
from jsctl.errors import Conflict, Unreachable, UsageError
from jsctl.spark.connection.jetstream import (
    NO_ROOM_ERRORS,
    NO_ROOM_HINT,
    TEMPORARY_ERRORS,
    JetStream,
)
from jsctl.spark.connection.wire import Wire, publication
from jsctl.spark.options import SinkOptions
from jsctl.spark.writing.rows import Outgoing

PAUSE_S = 0.2
SEND_BYTES = 1 << 18
_STORED = re.compile(rb'\{"stream": ?"([^"]+)",.*?"seq": ?(\d+)(?:,|\})')
Stored = Callable[[Iterable[str]], set[str]]
"""Tells for streams which message ids they hold since before this writer began."""


class Publisher:
    """Sends messages of one task. `positions` holds the last new sequence per stream afterwards."""

    def __init__(self, js: JetStream, options: SinkOptions, stored: Stored) -> None:
        self._js = js
        self._options = options
        self._stored = stored
        self._wire: Wire | None = None
        self._sid = b""
        self._inbox = ""
        self._head = re.compile(b"").match
        self._pending: dict[int, tuple[Outgoing, str]] = {}
        """In flight: number -> message and the stream that shall store it."""
        self._number = 0
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._silent_since: float | None = None
        """When it began that no acknowledgement came; None while nobody waits for any: rows may
        come as slowly as they like."""
        self.positions: dict[str, int] = {}
        self.written = 0
        self.recovered = 0
        """Messages that were found stored after a disruption."""

    def send(self, message: Outgoing, stream: str) -> None:
        """Put one message on its way. Raises what an acknowledgement or the connection says."""
        self._number += 1
        self._pending[self._number] = (message, stream)
        try:
            self._put(self._number, message)
            if len(self._pending) >= self._options.max_in_flight:
                self._flush()
                self._await(self._options.max_in_flight // 2)
        except (Unreachable, TimeoutError) as error:
            self._recover(error)

    def finish(self) -> None:
        """Wait until everything is acknowledged. Raises as `send`."""
        while True:
            try:
                self._flush()
                self._await(0)
                return
            except (Unreachable, TimeoutError) as error:
                self._recover(error)

    def _put(self, number: int, message: Outgoing) -> None:
        wire = self._connected()
        limit = wire.info.get("max_payload")
        size = len(message.block) + len(message.payload)
        if isinstance(limit, int) and size > limit:
            raise UsageError(
                f"a message to {message.subject} has {size} bytes, the server takes {limit}",
                hints=("raise max_payload at the server, or write smaller rows",),
            )
        reply = f"{self._inbox}.{number}"
        data = publication(message.subject, reply, message.block, message.payload)
        self._buffer.append(data)
        self._buffered += len(data)
        if self._buffered >= SEND_BYTES:
            self._flush()

    def _flush(self) -> None:
        data, self._buffer, self._buffered = b"".join(self._buffer), [], 0
        if data:
            self._connected().send(data)

    def _connected(self) -> Wire:
        if self._wire is None:
            wire = self._js.wire
            self._inbox = f"{wire.inbox}w"
            self._sid = wire.subscribe(f"{self._inbox}.*")
            self._head = re.compile(
                rb"MSG %s\.(\d+) %s (\d+)\r\n" % (re.escape(self._inbox.encode()), self._sid)
            ).match
            self._wire = wire
        return self._wire

    def _await(self, left: int) -> None:
        """Read acknowledgements until no more than `left` messages are in flight."""
        timeout = self._options.ack_timeout_ns / SECOND_NS
        while len(self._pending) > left:
            before, now = len(self._pending), time.monotonic()
            self._silent_since = self._silent_since or now
            self._read(now + timeout)
            if len(self._pending) < before:
                self._silent_since = None

    def _read(self, deadline: float) -> None:
        """Whatever is here; waits for at least something."""
        wire = self._connected()
        data, at = wire.data, wire.at
        while (found := self._head(data, at)) is not None:
            start = found.end()
            stop = start + int(found[2])
            if stop + 2 > len(data):
                break
            self._acknowledged(int(found[1]), data[start:stop])
            at = stop + 2
        moved, wire.at = at > wire.at, at
        if moved:
            return
        if found is not None or data.find(b"\r\n", at) < 0:
            wire.fill(len(data) - at + 1, deadline)
            return
        if wire.control():
            return
        message = wire.receive(deadline)
        if message.status == 503 and message.sid == self._sid:
            raise Unreachable("nobody stores the messages: no leader, or no such stream")

    def _acknowledged(self, number: int, payload: bytes) -> None:
        found = _STORED.match(payload)
        if found is None or b'"error":' in payload:
            self._refused(number, payload)
            return
        if self._pending.pop(number, None) is not None:
            self.written += 1
            if b'"duplicate"' not in payload:  # its sequence may be from long ago
                name, seq = found[1].decode(), int(found[2])
                self.positions[name] = max(self.positions.get(name, 0), seq)

    def _refused(self, number: int, payload: bytes) -> None:
        if number not in self._pending:
            return  # it is stored: this is somebody else's answer, who listens to its subject, too
        message, stream = self._pending[number]
        try:
            answer = json.loads(payload)
        except ValueError:
            answer = {}
        found = answer.get("error") if isinstance(answer, dict) else None
        problem: Mapping[str, object] = found if isinstance(found, dict) else {}
        text = str(problem.get("description") or payload[:100])
        if problem.get("err_code") in TEMPORARY_ERRORS:
            raise Unreachable(f"stream {stream}: {text}")
        refusal = f"stream {stream} refuses a message to {message.subject}: {text}"
        if problem.get("err_code") in NO_ROOM_ERRORS:
            raise Conflict(refusal, hints=(NO_ROOM_HINT,))
        raise Conflict(refusal)

    def _recover(self, error: Exception) -> None:
        """Connect anew, find out what was stored, send the rest again.

        Raises Unreachable when there was no acknowledgement for as long as an outage may last.
        """
        while True:
            now = time.monotonic()
            self._silent_since = since = self._silent_since or now
            if now - since > self._js.outage_s:
                raise Unreachable(
                    f"{len(self._pending)} messages were not acknowledged within"
                    f" {self._js.outage_s:g} s: {error or 'no answer'}",
                    hints=("a longer outageTimeout waits longer",),
                ) from error
            time.sleep(PAUSE_S)
            self._js.drop()
            self._wire, self._buffer, self._buffered = None, [], 0
            try:
                self._strike_off()
                for number, (message, _) in self._pending.items():
                    self._put(number, message)
                self._flush()
                return
            except (Unreachable, TimeoutError) as again:
                error = again

    def _strike_off(self) -> None:
        """Forget messages in flight that are stored."""
        there = self._stored({stream for _, stream in self._pending.values()})
        for number, (message, _) in list(self._pending.items()):
            if message.id in there:
                del self._pending[number]
                self.recovered += 1
                self._silent_since = None
