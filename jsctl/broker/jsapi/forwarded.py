"""Requests that went to another server to be decided on, until they are answered.

A server that dies answers nothing: whoever asked hears of that as soon as its connections close,
and may ask again, as it is not known what became of the request. A server that is silent may only
be slow; it is waited for until `SILENT_NS`. Questions, which change nothing, are asked again from
here as soon as it is silent. A server that does not take a request says so, and it is passed on
once more. Nor is it known what became of what was on its way when one of several links to a server
closed: an answer by another link is waited for.

Nobody who asked here waits longer than `ANSWERED_NS` in all, through however many servers his
request goes. What is answered after he was told so is not passed on: each request has one answer.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import field
from heapq import heappop, heappush
from typing import TypeAlias

from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.dataclass import dataclass

ANSWERED_NS = 4_500_000_000
"""A request that came in so long ago is answered: clients wait for five seconds."""
SNAPSHOT_NS = 600_000_000_000
"""The same where messages may be read, and repaired, before there is an answer."""
INTERRUPTED_NS = 2_000_000_000
"""A link has closed: what has no answer so much later is taken for lost with it."""
SILENT_NS = 1_500_000_000
"""A request that came in so long ago is given up if who was to decide on it is not heard."""
LOOK_NS = 250_000_000
"""So often it is looked whether that one is heard."""
OPEN_MAX = 40_000
"""Requests that are remembered; the oldest ones are forgotten first."""
KEPT_MAX = 10_000
"""The same of askers without open requests."""

Asker: TypeAlias = tuple[str, bytes]
"""(account, reply)."""


@dataclass(frozen=True, slots=True, eq=False)
class SentRequest:
    """A request on its way; two that say the same are two."""

    request: ApiRequest
    peer: str
    boot: int
    """Of the process that it went to."""
    sent_ns: int
    asked_ns: int
    """When it came in."""
    repeatable: bool
    """Two may decide on it: it changes nothing, and only one of the answers gets through."""

    def is_of(self, request: ApiRequest) -> bool:
        """Whether it is this one."""
        return (self.request.subject, self.request.payload) == (request.subject, request.payload)


@dataclass(slots=True)
class Forwarded:
    """Of one server."""

    boot_of: Callable[[str], int]
    """The process that a peer is now, 0 when it is gone as far as known here."""
    is_heard: Callable[[str], bool]
    """Whether a peer is not silent."""
    _open: dict[Asker, deque[SentRequest]] = field(default_factory=dict)
    _order: list[tuple[int, int, SentRequest]] = field(default_factory=list)
    """A heap of all that were sent, by when they are to be answered; some have been already."""
    _looks: list[tuple[int, int, SentRequest]] = field(default_factory=list)
    """The same by when it is looked whether who was to answer is heard."""
    _count: int = 0
    _given_up: dict[Asker, None] = field(default_factory=dict)
    """Who were told that nobody answers them: what comes later is not for them."""
    _asked_again: dict[Asker, None] = field(default_factory=dict)
    """Whose request several servers may decide on: the first answer is theirs."""
    _of_all: dict[Asker, None] = field(default_factory=dict)
    """Who asked all servers."""
    _boots: dict[str, int] = field(default_factory=dict)
    """Processes that requests went to, when they were last looked at."""
    _interrupted: dict[str, tuple[int, int]] = field(default_factory=dict)
    """When a link to a server closed, first and last: what was sent before may be lost."""

    def anew(self, request: ApiRequest) -> None:
        """A request comes in: its answers are wanted, whoever asked with that reply before."""
        for askers in (self._given_up, self._asked_again):
            if askers:
                askers.pop((request.account, request.reply), None)

    def ask_again(self, sent: SentRequest, now_ns: int) -> None:
        """A question goes on its way for another time, and waits here meanwhile."""
        asker = (sent.request.account, sent.request.reply)
        if asker not in self._given_up:
            _keep(self._asked_again, asker)
            self._note(SentRequest(sent.request, "", 0, now_ns, sent.asked_ns, True), again=False)

    def waits(self, request: ApiRequest) -> bool:
        """Whether a request has no answer yet."""
        waiting = self._open.get((request.account, request.reply), ())
        return any(one.is_of(request) for one in waiting)

    def sent(
        self,
        request: ApiRequest,
        peer: str,
        now_ns: int,
        asked_ns: int,
        *,
        again: bool = False,
        repeatable: bool = False,
    ) -> None:
        """A request leaves for a server, or, if that is "", waits for others here. `again`: it has
        come back meanwhile. Where nobody waits any more it only goes on."""
        asker = (request.account, request.reply)
        over = asker in self._given_up or (asker in self._asked_again and asker not in self._open)
        if request.reply and not over:
            boot = self.boot_of(peer) if peer else 0
            self._note(SentRequest(request, peer, boot, now_ns, asked_ns, repeatable), again=again)

    def _note(self, one: SentRequest, *, again: bool) -> None:
        request = one.request
        waiting = self._open.setdefault((request.account, request.reply), deque())
        before = next((old for old in waiting if old.is_of(request)), None) if again else None
        if before is not None:
            waiting.remove(before)
        waiting.append(one)
        self._count += 1
        patience_ns = SNAPSHOT_NS if b".SNAPSHOT." in request.subject else ANSWERED_NS
        heappush(self._order, (one.asked_ns + patience_ns, self._count, one))
        if one.peer:
            self._boots[one.peer] = one.boot
            heappush(self._looks, (one.sent_ns + LOOK_NS, self._count, one))
        while len(self._order) > OPEN_MAX:
            self._forget(heappop(self._order)[2])

    def answered(self, account: str, reply: bytes) -> bool:
        """Another server answers: the oldest request with that reply is done. False: nobody waits
        for that any more."""
        asker = (account, reply)
        waiting = self._open.get(asker)
        if waiting is None:
            return asker in self._of_all
        waiting.popleft()
        if not waiting:
            del self._open[asker]
        return True

    def answered_here(self, account: str, reply: bytes) -> bool:
        """The same where this server decided, and may not have had to wait. False: whoever asked
        has been told already that there is no answer, or has one."""
        asker = (account, reply)
        if asker in self._open:
            return self.answered(*asker)
        return asker not in self._given_up and asker not in self._asked_again

    def asked_all(self, request: ApiRequest) -> None:
        """Each server answers a request for itself."""
        _keep(self._of_all, (request.account, request.reply))

    def give_up(self, request: ApiRequest) -> None:
        """Whoever asked is told that nobody answers."""
        asker = (request.account, request.reply)
        if asker in self._open:
            return
        _keep(self._given_up, asker)

    def returned(self, account: str, reply: bytes, subject: bytes) -> SentRequest | None:
        """Who was to decide on a request does not; None if nobody waits for it any more, or it
        waits here."""
        for one in self._open.get((account, reply), ()):
            if one.peer and one.request.subject == subject:
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

    def _lost_with_links(self, now_ns: int) -> dict[str, int]:
        """For servers that lost a link long enough ago: when that was."""
        over: dict[str, int] = {}
        for peer, (first, last) in list(self._interrupted.items()):
            if now_ns - first > INTERRUPTED_NS:
                over[peer] = first
                del self._interrupted[peer]
                if last > first:
                    self._interrupted[peer] = last, last
        return over

    def _silent(self, now_ns: int) -> list[SentRequest]:
        """Requests that are open no longer, as who has them is not heard."""
        silent: list[SentRequest] = []
        while self._looks and now_ns >= self._looks[0][0]:
            _, number, one = heappop(self._looks)
            if not self._is_open(one):
                continue
            patient = not one.repeatable and now_ns < one.asked_ns + SILENT_NS
            if patient or self.is_heard(one.peer):
                heappush(self._looks, (now_ns + LOOK_NS, number, one))
            elif self._forget(one):
                silent.append(one)
        return silent

    def _is_open(self, one: SentRequest) -> bool:
        return one in self._open.get((one.request.account, one.request.reply), ())

    def _forget(self, one: SentRequest) -> bool:
        """Whether it was open."""
        asker = (one.request.account, one.request.reply)
        waiting = self._open.get(asker)
        if waiting is None or one not in waiting:
            return False
        waiting.remove(one)
        if not waiting:
            del self._open[asker]
        return True

    def late(self, now_ns: int) -> list[ApiRequest]:
        """Requests that were to be answered by now; each one once."""
        late: list[ApiRequest] = []
        while self._order and now_ns >= self._order[0][0]:
            one = heappop(self._order)[2]
            if self._forget(one):
                late.append(one.request)
                self._asked_again.pop((one.request.account, one.request.reply), None)
        return late

    def unanswered(self, now_ns: int) -> list[SentRequest]:
        """Requests that nobody will answer, because who was to do it is gone; each one once."""
        if not self._order:
            self._boots.clear()
            self._interrupted.clear()
            self._looks.clear()
            return []
        silent, lost = self._silent(now_ns), []
        over = self._lost_with_links(now_ns)
        if over or any(self.boot_of(peer) != boot for peer, boot in self._boots.items()):
            self._boots = {peer: self.boot_of(peer) for peer in self._boots}
            lost = [
                one
                for waiting in self._open.values()
                for one in waiting
                if one.boot != self._boots.get(one.peer, 0) or one.sent_ns <= over.get(one.peer, -1)
            ]
        for one in lost:
            self._forget(one)
        return sorted(silent + lost, key=lambda one: one.sent_ns)


def _keep(askers: dict[Asker, None], asker: Asker) -> None:
    askers[asker] = None
    if len(askers) > KEPT_MAX:
        del askers[next(iter(askers))]
