"""One origin as its mirror or source reads it: asks, listens, notices what is missing, asks again.

Theory of operation. A consumer of the origin pushes messages; its numbers of deliveries have no
holes, so that one that is missing is noticed by the next message or heartbeat, and the rest is
asked for anew, behind the last message that came. What came waits in `queue` until the stream
takes it. The origin sends no more than a window until flow control is answered, and that is
answered only when everything before the question is durable: so the queue is bounded, and a
consumer that goes by these answers forgets only what is safe here.

Knows no router and no log: what is to be published is returned.
"""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from itertools import repeat
from operator import lt
from typing import NamedTuple

from jsctl.api.errors import ApiErrorBody
from jsctl.api.times import SECOND_NS
from jsctl.broker.jetstream.sourcing import arrivals, asking
from jsctl.broker.jetstream.sourcing.arrivals import Arrival
from jsctl.broker.jetstream.sourcing.asking import Granted, Metadata, Request, Start
from jsctl.broker.jetstream.sourcing.names import source_blocks
from jsctl.broker.jetstream.sourcing.origin import UpstreamOrigin
from jsctl.broker.jetstream.streams.positions import SourcePosition
from jsctl.broker.protocol import headers as blocks
from jsctl.broker.subject.validity import is_valid_literal

ANSWER_NS = 5 * SECOND_NS
"""How long is waited for an answer. A consumer that is made later ends by itself."""
SILENT_NS = 5 * SECOND_NS
"""An origin that was not heard for so long, with a heartbeat a second, is asked anew: its leader is
another one, or gone."""
RETRY_NS = 2 * SECOND_NS
"""Between two requests."""
BACKOFF_NS = 10 * SECOND_NS
BACKOFF_NS_MAX = 120 * SECOND_NS
"""Added for each failure in a row."""
QUEUE_BYTES_MAX = 96 << 20
"""Beyond it an origin does not keep to flow control: what comes is dropped and asked for later."""
CAUGHT_UP_LAG = 10
_UNAVAILABLE = 503
"""The origin has no leader just now, or its server has no room."""
_SILENCE = ApiErrorBody(
    code=_UNAVAILABLE, err_code=10008, description="JetStream system temporarily unavailable"
)
_NO_LEVEL = 10185
_BAD_JSON = 10025
_OTHER_IDENTITY = 10225
_FLOWS_MAX = 64
_FLOW = re.compile(rb"(?:_GR_\.[^.]+\.[^.]+\.)?(?:\$JS\.FC|_R_)\.")
"""Answers to flow control lead to an origin, maybe through another cluster or account."""


Captured = tuple[bytes, bytes, bytes, bytes, object]
"""Subject, reply, header block and payload; where from does not matter."""


class Phase(Enum):
    """What is waited for."""

    TIME = auto()
    """When to ask."""
    ANSWER = auto()
    MESSAGES = auto()


class OwedFlow(NamedTuple):
    """An answer to flow control, due when what came before it is durable."""

    reply: bytes
    number: int
    position: SourcePosition


class Upstream:
    """See the module. `position` is what the stream has, `seq` what came."""

    def __init__(
        self, origin: UpstreamOrigin, position: SourcePosition, who: Metadata, now_ns: int
    ) -> None:
        self.origin = origin
        self.seq, self.identity = position
        self.phase = Phase.TIME
        self.queue: deque[Arrival] = deque()
        self.queue_bytes = 0
        self.lag = 0
        self.heard_ns = 0
        """0: never."""
        self.error: ApiErrorBody | None = None
        self.blocked: ApiErrorBody | None = None
        """Why what came is not stored now."""
        self.caught_up = False
        """Since it was last found, not much was missing once: more is said of none in use."""
        self.skipped_to = 0
        """The origin begins behind this sequence: an empty mirror does so, too."""
        self._who = who
        self._levels = asking.LEVELS[1:] if origin.is_mirror else asking.LEVELS
        self._level = 0
        self._due_ns = now_ns
        self._asked_ns = 0
        self._failures = 0
        self._consumer = b""
        self._number = 0
        self._begin: int | None = None
        """Behind which sequence another consumer begins, as its origin lets go of what is before
        it: behind what is durable, not behind what came."""
        self._owed: deque[OwedFlow] = deque()

    # Asking.

    @property
    def is_unanswered(self) -> bool:
        """Whether nothing came of the last request, in all the time that it had."""
        return self.error is _SILENCE

    @property
    def _has_room(self) -> bool:
        return self.queue_bytes <= QUEUE_BYTES_MAX // 2

    def wants_to_ask(self, now_ns: int) -> bool:
        """Whether it is time for a request."""
        return self.phase is Phase.TIME and now_ns >= self._due_ns and self._has_room

    def ask(self, start: Start, deliver: bytes, nonce: str, now_ns: int) -> Request:
        """The request; its answer goes to `answered`. `start` counts if nothing ever came."""
        assert self.phase is Phase.TIME, "one request at a time"
        self.phase, self._asked_ns = Phase.ANSWER, now_ns
        self._due_ns = now_ns + ANSWER_NS
        self._owed.clear()
        self._consumer = b""
        level = self._levels[self._level]
        begin = self.seq if self._begin is None else self._begin
        known = Start(begin + 1) if begin else start
        return asking.request(self.origin, known, deliver, level, self.identity, self._who, nonce)

    def answered(self, headers: bytes, payload: bytes, now_ns: int) -> None:
        """The answer came; messages may follow at once."""
        if self.phase is not Phase.ANSWER:
            return
        found = asking.read_answer(self.origin, headers, payload)
        if isinstance(found, Granted):
            self._granted(found, now_ns)
        elif found.err_code == _OTHER_IDENTITY:
            # The stream is another one of the same name: what is known of the old one is over.
            self.seq, self.identity = 0, ""
            self._retry(now_ns)
        elif found.err_code in (_NO_LEVEL, _BAD_JSON) and self._level + 1 < len(self._levels):
            self._level += 1
            self.phase, self._due_ns = Phase.TIME, now_ns
        else:
            self.failed(found, now_ns)

    def _granted(self, granted: Granted, now_ns: int) -> None:
        if not self.origin.is_mirror:
            if self.identity and granted.identity and granted.identity != self.identity:
                self.seq = 0
            self.identity = granted.identity
        self.phase, self.error, self._failures = Phase.MESSAGES, None, 0
        self._consumer, self._number, self._begin = granted.consumer, 0, None
        self.heard_ns = now_ns
        if self.seq < granted.delivered:
            self.seq = self.skipped_to = granted.delivered

    def read_by(self, origin: UpstreamOrigin, durable: SourcePosition, now_ns: int) -> None:
        """The same origin, by another consumer; the stream has it up to a position."""
        self.origin = origin
        others = _are_others(self.identity, durable.identity)
        self._begin = 0 if others else min(durable.seq, self.seq)
        self._retry(now_ns)
        self._due_ns = now_ns

    def failed(self, error: ApiErrorBody, now_ns: int) -> None:
        """A request came to nothing: tell, and try again, later and later if it was refused."""
        self.error = error
        self.caught_up = False
        self._retry(now_ns)
        if error.code != _UNAVAILABLE:
            self._failures += 1
            self._due_ns += min(BACKOFF_NS * self._failures, BACKOFF_NS_MAX)

    def _retry(self, now_ns: int) -> None:
        self.phase = Phase.TIME
        self._due_ns = max(now_ns, self._asked_ns + RETRY_NS)
        self._owed.clear()

    def tick(self, now_ns: int) -> None:
        """Give up an answer that does not come, and an origin that is not heard."""
        if self.phase is Phase.ANSWER and now_ns >= self._due_ns:
            self.failed(_SILENCE, now_ns)
        elif self.phase is Phase.MESSAGES and now_ns - self.heard_ns > SILENT_NS:
            self._retry(now_ns)

    def next_due_ns(self) -> int | None:
        """When `tick` or `wants_to_ask` has something to say; None as long as what came has to be
        taken first."""
        if self.phase is Phase.MESSAGES:
            return self.heard_ns + SILENT_NS + 1
        waits = self.phase is Phase.TIME and not self._has_room
        return None if waits else self._due_ns

    # What comes in.

    def take(self, captured: Iterable[Captured], now_ns: int) -> None:
        """Messages on the deliver subject. Those that come before the answer are kept for later."""
        between: list[Captured] = []
        for item in captured:
            if item[3] or not arrivals.is_control(item[2], item[3]):
                between.append(item)
                continue
            self._messages(between, now_ns)
            between = []
            if self.phase is Phase.MESSAGES:
                self._control(item[1], item[2], now_ns)
        self._messages(between, now_ns)

    def _messages(self, some: Sequence[Captured], now_ns: int) -> None:
        """What comes between two words of control: nearly always all that follows what came, which
        is read together."""
        if not some or self._follows(some, now_ns):
            return
        for subject, reply, headers, payload, _ in some:
            if self.phase is not Phase.MESSAGES:
                return
            self._message(subject, reply, headers, payload, now_ns)

    def _follows(self, some: Sequence[Captured], now_ns: int) -> bool:
        """Take messages if each is the next one; else none."""
        if self.phase is not Phase.MESSAGES:
            return False
        subjects, replies, headers, payloads, _ = zip(*some, strict=True)
        found = arrivals.read_replies(replies, self._consumer)
        size = sum([sum(map(len, column)) for column in (subjects, headers, payloads)])
        if found is None or self.queue_bytes + size > QUEUE_BYTES_MAX:
            return False
        seqs, numbers, times, pending = found
        first = self._number + 1
        if numbers != list(range(first, first + len(numbers))):
            return False
        if seqs[0] <= self.seq or not all(map(lt, seqs, seqs[1:])):
            return False
        self.heard_ns, self._number, self.seq = now_ns, numbers[-1], seqs[-1]
        self._lags(pending[-1], least=min(pending))
        self._keep(seqs, times, subjects, headers, payloads)
        return True

    def _control(self, reply: bytes, headers: bytes, now_ns: int) -> None:
        self.heard_ns = now_ns
        if reply:
            self._owe(reply)
            return
        number = arrivals.number_of(headers, b"Nats-Last-Consumer")
        if number and number != self._number:
            self._retry(now_ns)
            return
        stalled = blocks.get(headers, b"Nats-Consumer-Stalled")
        if stalled and all([one.reply != stalled for one in self._owed]):
            self._owe(stalled)

    def _owe(self, reply: bytes) -> None:
        # The server says it, who may do more than whoever answers for an origin.
        is_flow = _FLOW.match(reply) is not None and is_valid_literal(reply)
        if is_flow and len(self._owed) < _FLOWS_MAX:
            position = SourcePosition(self.seq, self.identity)
            self._owed.append(OwedFlow(reply, self._number, position))

    def _message(
        self, subject: bytes, reply: bytes, headers: bytes, payload: bytes, now_ns: int
    ) -> None:
        found = arrivals.read_reply(reply)
        if found is None or found.consumer != self._consumer or found.deliveries > 1:
            return
        self.heard_ns = now_ns
        if found.seq <= self.seq:
            self._number += found.number == self._number + 1
            return
        if found.number != self._number + 1 or self.queue_bytes > QUEUE_BYTES_MAX:
            self._retry(now_ns)
            return
        self._number, self.seq = found.number, found.seq
        self._lags(found.pending, least=found.pending)
        self._keep([found.seq], [found.time_ns], [subject], [headers], [payload])

    def _lags(self, pending: int, least: int) -> None:
        """How many were missing behind the last message, and at the least."""
        self.lag = max(0, pending - 1)
        self.caught_up = self.caught_up or max(0, least - 1) < CAUGHT_UP_LAG

    def _keep(
        self,
        seqs: Sequence[int],
        times: Sequence[int],
        subjects: Sequence[bytes],
        headers: Sequence[bytes],
        payloads: Sequence[bytes],
    ) -> None:
        """Messages wait for the stream, as it will store them."""
        origin, sourced = self.origin, not self.origin.is_mirror
        if any(headers):
            headers = [arrivals.without_conditions(one, of_source=sourced) for one in headers]
        plain = [not one for one in headers]
        if sourced:
            headers = source_blocks(origin.key, seqs, subjects, self.identity, headers)
        if origin.transforms:
            subjects = [origin.stored_as(one) for one in subjects]
        who = repeat(self.identity)
        made = list(map(Arrival, seqs, times, subjects, headers, payloads, who, plain))
        self.queue += made
        self.queue_bytes += arrivals.memory_of(made)

    # What was taken of it.

    def taken(self, count: int, refusal: ApiErrorBody | None = None) -> None:
        """The stream took so many from the front of the queue, or knows them already; and why it
        does not take the next one."""
        self.blocked = refusal
        gone = [self.queue.popleft() for _ in range(count)]
        self.queue_bytes -= arrivals.memory_of(gone)

    def answers_to_flow(self, durable: SourcePosition) -> list[tuple[bytes, bytes]]:
        """(subject, headers) of answers that are due as the stream has all up to a position."""
        made: list[tuple[bytes, bytes]] = []
        while self._owed:
            reply, number, (seq, identity) = self._owed[0]
            if seq and (seq > durable.seq or _are_others(identity, durable.identity)):
                break
            self._owed.popleft()
            told = ((b"Nats-Last-Consumer", b"%d" % number), (b"Nats-Last-Stream", b"%d" % seq))
            made.append((reply, blocks.build(told)))
        return made


def _are_others(identity: str, known: str) -> bool:
    """Whether two identities are those of different streams; not every origin tells its own."""
    return bool(identity and known) and identity != known
