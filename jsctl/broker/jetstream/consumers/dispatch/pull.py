"""Pull requests waiting at a consumer's leader: parsing, refusal, order, expiry.

A queue of requests, served round robin or, for priority policy `prioritized`, lowest number
first. Knows nothing of messages or sequences; the leader asks it who is next and tells it how
much each got.
"""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError, decode
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.pull import ConsumerGetNextRequest, PriorityGroup
from jsctl.api.times import format_duration
from jsctl.api.words import PriorityPolicy
from jsctl.dataclass import dataclass

Interest = Callable[[bytes], bool]
Status = tuple[bytes, bytes]
"""(reply subject, header block)."""

_NO_GROUP = PriorityGroup()
_PRIORITY_MAX = 9
_KEYS = frozenset(
    [
        "batch",
        "expires",
        "group",
        "id",
        "idle_heartbeat",
        "max_bytes",
        "min_ack_pending",
        "min_pending",
        "no_wait",
        "priority",
    ]
)
"""What a request may say. A constant set keeps a pull cheap."""


@dataclass(slots=True, eq=False)
class PullRequest:
    """A request that waits. Times in ns, 0 for none; `left` messages may still be sent."""

    reply: bytes
    left: int
    bytes_left: int = 0
    """0: no limit."""
    no_wait: bool = False
    expires_ns: int = 0
    heartbeat_ns: int = 0
    beat_at_ns: int = 0
    group: PriorityGroup = _NO_GROUP
    grouped: bool = False
    """The request was JSON: only then do its priority words count."""
    received_ns: int = 0
    delivered: int = 0
    pin: str = ""
    limited: bool = False
    """It came with max_bytes."""
    for_none: bool = False
    """It asked for no message, or did not say for how many: it gets one, and none is left."""


def status(code: int, text: str) -> bytes:
    """A header block that is only a status line."""
    return b"NATS/1.0 %d %s\r\n\r\n" % (code, text.encode())


def pending_status(code: int, text: str, request: PullRequest) -> bytes:
    """A status that says how much of a request is left undone."""
    return b"NATS/1.0 %d %s\r\nNats-Pending-Messages: %d\r\nNats-Pending-Bytes: %d\r\n\r\n" % (
        code,
        text.encode(),
        0 if request.for_none else request.left,
        request.bytes_left,
    )


SHORTEST_NS = 1_000
"""Nobody is served within less than that: such a request is over when it is taken up."""
KNOWN_MAX = 256
KNOWN_BYTES_MAX = 256
"""Requests that are remembered, and how long they may be."""
_OFFSET = re.compile(r" at offset \d+$")
"""Of a mistake in JSON; only answers of the API tell it."""
_CUT, _CUT_HERE = "unexpected EOF", "unexpected end of JSON input"
"""What answers of the API say of JSON that ends too soon, and what those to pulls do."""


def parse(reply: bytes, payload: bytes, now_ns: int) -> PullRequest | str:
    """The request of a payload, or why it is a bad one."""
    text = payload.strip()
    if not text.startswith(b"{"):
        try:
            count = int(text) if text else 1
        except ValueError:
            count = 1
        return PullRequest(reply, max(count, 1), for_none=count <= 0, received_ns=now_ns)
    try:
        asked = _known(text) if len(text) <= KNOWN_BYTES_MAX else _asked(text)
    except DecodeError as error:
        return _OFFSET.sub("", str(error)).replace(_CUT, _CUT_HERE)
    beat, expires, most = asked.idle_heartbeat, asked.expires, asked.max_bytes
    if beat > 0 and 2 * beat > expires:
        return "heartbeat value too large"
    return PullRequest(
        reply,
        max(asked.batch, 1),
        bytes_left=max(most, 0),
        limited=most > 0,
        for_none=asked.batch <= 0,
        no_wait=asked.no_wait,
        expires_ns=now_ns + expires if expires else 0,
        heartbeat_ns=max(beat, 0),
        beat_at_ns=now_ns + beat if beat > 0 else 0,
        group=asked.priority,
        grouped=True,
        received_ns=now_ns,
        pin=asked.priority.id,
    )


@lru_cache(KNOWN_MAX)
def _known(text: bytes) -> ConsumerGetNextRequest:
    """The same of what was read before: a client asks in the same words each time, and reading
    them takes longer than all else about its request."""
    return _asked(text)


def _asked(text: bytes) -> ConsumerGetNextRequest:
    """The JSON of a request: unknown keys do not matter, wrong types do. Raises DecodeError."""
    document = jsontext.parse_exactly(text)
    if not isinstance(document, dict):
        return decode(ConsumerGetNextRequest, document, strict=True)
    return decode(ConsumerGetNextRequest, jsontext.only(document, _KEYS), strict=True)


def refusal(request: PullRequest, config: ConsumerConfig, now_ns: int) -> bytes:
    """The status that a request is refused with at once; empty if it may wait."""
    if 0 < config.max_batch < request.left:
        return status(409, f"Exceeded MaxRequestBatch of {config.max_batch}")
    if 0 < config.max_expires < request.expires_ns - now_ns:
        longest = format_duration(config.max_expires)
        return status(409, f"Exceeded MaxRequestExpires of {longest}")
    if 0 < config.max_bytes < request.bytes_left:
        return status(409, f"Exceeded MaxRequestMaxBytes of {config.max_bytes}")
    wrong = _group_mistake(request.group, config) if request.grouped else ""
    if wrong:
        return status(400, f"Bad Request - {wrong}")
    if 0 < request.expires_ns < now_ns + SHORTEST_NS:
        return pending_status(408, "Request Timeout", request)
    return b""


def _group_mistake(group: PriorityGroup, config: ConsumerConfig) -> str:
    policy = config.priority_policy
    if (group.min_pending or group.min_ack_pending) and policy is not PriorityPolicy.OVERFLOW:
        return "Not a Overflow Priority consumer"
    if group.id and policy is not PriorityPolicy.PINNED_CLIENT:
        return "Not a Pinned Client Priority consumer"
    if not 0 <= group.priority <= _PRIORITY_MAX:
        return "Priority must be between 0 and 9"
    if policy is PriorityPolicy.NONE:
        return ""
    if not group.group:
        return "Priority Group missing"
    return "" if group.group in config.priority_groups else "Invalid Priority Group"


class WaitQueue:
    """Waiting requests in the order in which they are served."""

    __slots__ = ("_due_ns", "last_ns", "prioritized", "requests", "room")

    def __init__(self, room: int, *, prioritized: bool, now_ns: int) -> None:
        self.room = room
        self.prioritized = prioritized
        self.requests: deque[PullRequest] = deque()
        self.last_ns = now_ns
        """When somebody last asked or got something."""
        self._due_ns: int | None = None

    def __len__(self) -> int:
        return len(self.requests)

    @property
    def wanted(self) -> int:
        """Messages asked for and not yet sent."""
        return sum(request.left for request in self.requests)

    def add(self, request: PullRequest) -> bool:
        """Queue a request; False when the queue is full."""
        if len(self.requests) >= self.room:
            return False
        self._insert(request)
        self._due_soon(request.expires_ns)
        self._due_soon(request.beat_at_ns)
        self.last_ns = request.received_ns
        return True

    def _insert(self, request: PullRequest) -> None:
        if not self.prioritized:
            self.requests.append(request)
            return
        at = bisect_right(self.requests, request.group.priority, key=lambda r: r.group.priority)
        self.requests.insert(at, request)

    def served(self, request: PullRequest, now_ns: int) -> None:
        """The first request got a message: it goes behind the others, or leaves."""
        self._count(request, 1, now_ns)
        if request.left <= 0:
            self.requests.popleft()
        elif len(self.requests) > 1:
            self.requests.popleft()
            self._insert(request)

    def serve_round(self, takers: Sequence[PullRequest], count: int, now_ns: int) -> None:
        """The first requests, `takers`, got `count` messages in turn, as many calls of `served`.

        None of them may have wanted less than its part, and there must be no priorities.
        """
        for place, request in enumerate(takers):
            self._count(request, len(range(place, count, len(takers))), now_ns)
            self.requests.popleft()
        last = count % len(takers)
        for request in (*takers[last:], *takers[:last]):
            if request.left > 0:
                self.requests.append(request)

    def _count(self, request: PullRequest, messages: int, now_ns: int) -> None:
        request.left -= messages
        request.delivered += messages
        self.last_ns = now_ns
        if request.heartbeat_ns:
            request.beat_at_ns = now_ns + request.heartbeat_ns

    def drop(self) -> PullRequest:
        """Remove the first request."""
        return self.requests.popleft()

    def cycle(self) -> None:
        """The first request is passed over."""
        self.requests.rotate(-1)

    def _due_soon(self, at_ns: int) -> None:
        if at_ns and (self._due_ns is None or at_ns < self._due_ns):
            self._due_ns = at_ns

    @property
    def next_due_ns(self) -> int | None:
        """When `tend` has something to do, at the earliest."""
        return self._due_ns if self.requests else None

    def is_due(self, now_ns: int) -> bool:
        """Whether a request that still waits ends now, or is to get a heartbeat."""
        due = self.next_due_ns
        if due is None or due > now_ns:
            return False
        # What was noted may be of a request that has all its messages.
        self._due_ns = None
        for request in self.requests:
            self._due_soon(request.beat_at_ns)
            self._due_soon(request.expires_ns)
        due = self.next_due_ns
        return due is not None and due <= now_ns

    def tend(
        self, now_ns: int, has_interest: Interest, *, idle: bool, beat: bytes
    ) -> tuple[list[Status], list[bytes]]:
        """Expire and drop requests. Returns statuses, and replies that get a heartbeat.

        `idle`: nothing is left to deliver, which ends no_wait requests. `beat` is the header
        block of a heartbeat.
        """
        kept: deque[PullRequest] = deque()
        said: list[Status] = []
        beats: list[bytes] = []
        self._due_ns = None
        for request in self.requests:
            ended = _ending(request, now_ns, idle)
            if ended is not None:
                said.append((request.reply, ended))
                continue
            if not has_interest(request.reply):
                continue
            if request.beat_at_ns and now_ns >= request.beat_at_ns:
                beats.append(request.reply)
                request.beat_at_ns = now_ns + request.heartbeat_ns
            self._due_soon(request.beat_at_ns)
            self._due_soon(request.expires_ns)
            kept.append(request)
        self.requests = kept
        return said, beats

    def close(self, text: str, *, pending: bool = False) -> list[Status]:
        """End all requests with a 409, as when the consumer goes away."""
        said = [
            (one.reply, pending_status(409, text, one) if pending else status(409, text))
            for one in self.requests
        ]
        self.requests.clear()
        return said


def _ending(request: PullRequest, now_ns: int, idle: bool) -> bytes | None:
    if request.expires_ns and now_ns >= request.expires_ns:
        return pending_status(408, "Request Timeout", request)
    if idle and request.no_wait and (not request.expires_ns or request.delivered):
        return status(404, "No Messages")
    return None
