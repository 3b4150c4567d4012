"""Requests that went to another server to be decided on, until they are answered.

A server that dies or stands still answers nothing: whoever asked hears of that as soon as it is
seen to be down, and may ask again. It is not known what became of the request. A server that does
not take a request says so, and it is passed on once more. Nor is it known what became of what was
on its way when one of several links to a server closed: an answer by another link is waited for.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import field

from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.dataclass import dataclass

FORGOTTEN_NS = 10_000_000_000
"""Nobody waits longer for an answer: a request that has none by then is to have none."""
INTERRUPTED_NS = 2_000_000_000
"""A link has closed: what has no answer so much later is taken for lost with it."""
OPEN_MAX = 10_000
"""Requests that are remembered; the oldest ones are forgotten first."""


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request on its way."""

    request: ApiRequest
    peer: str
    boot: int
    """Of the process that it went to."""
    sent_ns: int
    until_ns: int
    """So long it may wait for a leader."""


@dataclass(slots=True)
class Forwarded:
    """Of one server. `boot_of` gives the process that a peer is now, 0 when it is not heard."""

    boot_of: Callable[[str], int]
    _open: dict[tuple[str, bytes], deque[SentRequest]] = field(default_factory=dict)
    _order: deque[SentRequest] = field(default_factory=deque)
    """All that were sent, oldest first, answered or not."""
    _boots: dict[str, int] = field(default_factory=dict)
    """Processes that requests went to, when they were last looked at."""
    _interrupted: dict[str, tuple[int, int]] = field(default_factory=dict)
    """When a link to a server closed, first and last: what was sent before may be lost."""

    def sent(self, request: ApiRequest, peer: str, now_ns: int, until_ns: int) -> None:
        """A request leaves for a server."""
        if not request.reply:
            return
        one = SentRequest(request, peer, self.boot_of(peer), now_ns, until_ns)
        self._open.setdefault((request.account, request.reply), deque()).append(one)
        self._order.append(one)
        self._boots[peer] = one.boot
        while len(self._order) > OPEN_MAX:
            self._forget(self._order.popleft())

    def answered(self, account: str, reply: bytes) -> None:
        """An answer was sent to whoever asked: the oldest request with that reply is done."""
        waiting = self._open.get((account, reply))
        if waiting is not None:
            waiting.popleft()
            if not waiting:
                del self._open[(account, reply)]

    def returned(self, account: str, reply: bytes, subject: bytes) -> SentRequest | None:
        """Who was to decide on a request does not; None if nobody waits for it any more."""
        for one in self._open.get((account, reply), ()):
            if one.request.subject == subject:
                self._forget(one)
                return one
        return None

    def interrupted(self, peer: str, now_ns: int) -> None:
        """A link to a server closed, and it has others."""
        if peer in self._boots:
            first, _ = self._interrupted.get(peer, (now_ns, now_ns))
            self._interrupted[peer] = first, now_ns

    def interrupted_all(self, now_ns: int) -> None:
        """An answer may be lost, of whichever server."""
        for peer in self._boots:
            self.interrupted(peer, now_ns)

    def _given_up(self, now_ns: int) -> dict[str, int]:
        """For servers that lost a link long enough ago: when that was."""
        over: dict[str, int] = {}
        for peer, (first, last) in list(self._interrupted.items()):
            if now_ns - first > INTERRUPTED_NS:
                over[peer] = first
                del self._interrupted[peer]
                if last > first:
                    self._interrupted[peer] = last, last
        return over

    def _forget(self, one: SentRequest) -> None:
        waiting = self._open.get((one.request.account, one.request.reply))
        if waiting is not None and one in waiting:
            waiting.remove(one)
            if not waiting:
                del self._open[(one.request.account, one.request.reply)]

    def unanswered(self, now_ns: int) -> list[ApiRequest]:
        """Requests that nobody will answer, because who was to do it is gone; each one once."""
        while self._order and now_ns - self._order[0].sent_ns > FORGOTTEN_NS:
            self._forget(self._order.popleft())
        if not self._order:
            self._boots.clear()
            self._interrupted.clear()
            return []
        over = self._given_up(now_ns)
        if not over and all(self.boot_of(peer) == boot for peer, boot in self._boots.items()):
            return []
        self._boots = {peer: self.boot_of(peer) for peer in self._boots}
        lost = [
            one
            for waiting in self._open.values()
            for one in waiting
            if one.boot != self._boots[one.peer] or one.sent_ns <= over.get(one.peer, -1)
        ]
        for one in lost:
            self._forget(one)
        return [one.request for one in sorted(lost, key=lambda one: one.sent_ns)]
