"""Of whom a damaged replica asks which messages next, and what nobody has any more. Pure.

    lost --ask a peer--> asked --answer--> back, removed, or the peer lacks it as well
                           `--no answer--> another peer is asked, this one later

What every other voter lacks is hopeless. Nobody's word is final: what a peer lacked is asked
again after a while, for it may have been repaired itself, or have come back with another disk.
Nothing of this outlives the process; who starts anew finds the damage again, and asks again.
"""

from collections.abc import Sequence
from dataclasses import field

from jsctl.broker.store.seqset import SeqSet
from jsctl.dataclass import dataclass

RANGES_MAX = 256
"""Ranges of one request."""
ANSWER_NS = 2_000_000_000
"""How long an answer is waited for."""
REST_NS = 3_000_000_000
"""A peer that did not answer, or had nothing to say, is left alone for so long."""
FORGET_NS = 10_000_000_000
"""After so long a peer is asked once more for what it lacked."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a peer is asked for."""

    token: int
    peer: str
    ranges: list[tuple[int, int]]
    until_ns: int


@dataclass(slots=True)
class RepairAgent:
    """Of one replica. Times in ns; peers are peer ids."""

    asked: Question | None = None
    """What is waited for."""
    urgent: int = 0
    """Somebody waits for this message; 0: nobody does."""
    hopeless: SeqSet = field(default_factory=SeqSet)
    """What no other voter has."""
    _lacking: dict[str, SeqSet] = field(default_factory=dict)
    _resting: dict[str, int] = field(default_factory=dict)
    """Peer -> when it is asked again."""
    _forget_ns: int = 0
    _token: int = 0

    def ask(self, lost: SeqSet, peers: Sequence[str], now_ns: int) -> Question | None:
        """The next question to one of `peers`, who can be reached; None: there is none now."""
        if self.asked is not None and now_ns < self.asked.until_ns:
            return None
        if self.asked is not None:
            self.rest(self.asked.peer, now_ns)
            self.asked = None
        if now_ns >= self._forget_ns:
            self._forget_ns = now_ns + FORGET_NS
            self._lacking.clear()
        for count in range(len(peers)):
            # Another one each time, so that no peer has all the work.
            peer = peers[(self._token + count) % len(peers)]
            ranges = self._of(peer, lost, now_ns)
            if ranges:
                self._token += 1
                self.asked = Question(self._token, peer, ranges, now_ns + ANSWER_NS)
                return self.asked
        return None

    def _of(self, peer: str, lost: SeqSet, now_ns: int) -> list[tuple[int, int]]:
        """What a peer may have, from what is urgent on if that is among it."""
        if now_ns < self._resting.get(peer, 0):
            return []
        wanted = lost.copy()
        for first, last in self._lacking.get(peer, SeqSet()).ranges():
            wanted.remove_range(first, last)
        if self.urgent in wanted:
            wanted.remove_range(0, self.urgent - 1)
        elif self.urgent in lost and self.urgent not in self.hopeless:
            return []
        return [one for _, one in zip(range(RANGES_MAX), wanted.ranges(), strict=False)]

    def answered(self, token: int, peer: str) -> Question | None:
        """The question that an answer is for; None if it is not waited for any more."""
        asked = self.asked
        if asked is None or asked.token != token or asked.peer != peer:
            return None
        self.asked = None
        return asked

    def rest(self, peer: str, now_ns: int) -> None:
        """A peer has nothing to say for now."""
        self._resting[peer] = now_ns + REST_NS

    def lacks(self, peer: str, ranges: Sequence[tuple[int, int]]) -> None:
        """A peer does not have these either."""
        known = self._lacking.setdefault(peer, SeqSet())
        for first, last in ranges:
            known.add_range(first, last)

    def came_up(self, peer: str) -> None:
        """A peer can be reached again: it may have what it did not have before."""
        self._lacking.pop(peer, None)
        self._resting.pop(peer, None)

    def judge(self, lost: SeqSet, voters: Sequence[str]) -> SeqSet:
        """Note what none of the other voters has; what of it was not known to be hopeless."""
        found = lost
        for peer in voters:
            found = common(found, self._lacking.get(peer, SeqSet()))
        before = common(self.hopeless, lost)
        self.hopeless = before.copy()
        for first, last in found.ranges():
            self.hopeless.add_range(first, last)
        fresh = self.hopeless.copy()
        for first, last in before.ranges():
            fresh.remove_range(first, last)
        return fresh


def without(one: SeqSet, other: SeqSet) -> SeqSet:
    """What is in one and not in the other."""
    found = one.copy()
    for first, last in other.ranges():
        found.remove_range(first, last)
    return found


def common(one: SeqSet, other: SeqSet) -> SeqSet:
    """What is in both."""
    found = SeqSet()
    ours, theirs = list(one.ranges()), list(other.ranges())
    at = to = 0
    while at < len(ours) and to < len(theirs):
        first, last = max(ours[at][0], theirs[to][0]), min(ours[at][1], theirs[to][1])
        if first <= last:
            found.add_range(first, last)
        if ours[at][1] < theirs[to][1]:
            at += 1
        else:
            to += 1
    return found
