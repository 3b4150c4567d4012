"""Who works in a turn: replicas that something happened to, that time concerns, or that have more
to do from the turn before; and how much each of them may do.

A consumer with many messages to deliver takes its turn's share, and goes on in the next one. Those
that look through many subjects for where they start do so a few at a time, in their order. So turns
stay short for everybody else, and nobody who waits is forgotten.
"""

from collections.abc import Callable
from dataclasses import field
from itertools import islice
from typing import Protocol

from jsctl.broker.deadlines import Deadlines
from jsctl.dataclass import dataclass

TURN_MESSAGES_MAX = 512
"""What all consumers together deliver in a turn, about; the rest follows in the next turns, so
that nobody else waits long for his."""
SHORT_TURN_MESSAGES_MAX = 128
ALONE_AFTER_NS = 20_000_000
"""Turns are shorter until nobody else had work for the server for so long."""
DELIVERIES_MIN = 16
SEARCHES_MAX = 2
"""Consumers that look for where they start at a time, each a portion a turn."""
SHORT_SEARCHES_MAX = 16
"""The same where each of them has little to look at."""
SEARCHED_MAX = 32_768
"""Subjects that are looked at in a turn until nobody else begins to."""
SEARCH_IDLE_NS = 500_000_000
"""Who does not go on for so long, as one that waits for a repair, lets others search."""


class Runner(Protocol):
    """A replica that works once a turn when something happened to it."""

    def run(self) -> None:
        """Do what there is to do now; may propose and deliver, and note facts."""

    def next_due_ns(self) -> int | None:
        """When `run` has to be called even if nothing happens."""


class Searched(Protocol):
    """What consumers look through."""

    @property
    def subjects_searched(self) -> int:
        """At how many subjects so far."""


@dataclass(slots=True)
class RunQueue:
    """Replicas by the names of their groups, in the order in which they were woken."""

    deliveries: int = TURN_MESSAGES_MAX
    """How many messages a consumer may deliver when it is run next."""
    _now_ns: int = 0
    _dirty: dict[str, Runner] = field(default_factory=dict)
    """Those that have something to do in this turn."""
    _later: dict[str, Runner] = field(default_factory=dict)
    """Those that have more to do in the next turn."""
    _asleep: dict[str, Runner] = field(default_factory=dict)
    """Those that a deadline wakes."""
    _deadlines: Deadlines[str] = field(default_factory=Deadlines)
    _searching: dict[str, int] = field(default_factory=dict)
    """Consumers that look for where they start, and when they last asked whether they may."""
    _searched: set[str] = field(default_factory=set)
    """Those that have done with it in this turn, of which they have had their share."""
    _line: dict[str, Runner] = field(default_factory=dict)
    """Those that are to, when others have found it."""
    _called: set[str] = field(default_factory=set)
    """Of these, those whose turn it is."""
    _looked_at: int = 0
    """How many subjects they looked at in this turn."""
    _places: int = SEARCHES_MAX
    """How many may search at a time now."""
    _put_off: bool = False
    _others_ns: int = 0
    """When one had work while others had more to do from the turn before."""

    @property
    def waiting(self) -> bool:
        """Whether somebody has something to do in this turn or the next."""
        return bool(self._dirty or self._later or (self._line and self._may_call))

    def wake(self, name: str, runner: Runner) -> None:
        """`runner.run` is called before the turn ends, or in the next one if that is certain:
        who has had a share of this turn does not get another one."""
        if name not in self._later:
            self._dirty[name] = runner

    def wake_again(self, name: str, runner: Runner) -> None:
        """`runner.run` is called in the next turn, which follows at once."""
        self._later[name] = runner

    @property
    def _may_call(self) -> int:
        """How many of those in line may search in the next turn."""
        return max(0, self._places - len(self._searching))

    def search(
        self, name: str, runner: Runner, store: Searched, begin: Callable[[int], bool]
    ) -> bool:
        """Have a consumer look for where it starts, if it may; whether it has found it. Else its
        `run` is called when it is to go on."""
        if not self.may_search(name, runner):
            return False
        before = store.subjects_searched
        found = begin(self._now_ns)
        self.looked(store.subjects_searched - before)
        if found:
            self.searched(name)
        else:
            self.wake_again(name, runner)
        return found

    def may_search(self, name: str, runner: Runner) -> bool:
        """Whether a consumer may look for where it starts, until it says that it has `searched`.
        Else its `run` is called when it may."""
        if name in self._searching:
            self._searching[name] = self._now_ns
            return True
        called = name in self._called or (not self._line and not self._called)
        if called and self._may_call > len(self._searched) and self._looked_at <= SEARCHED_MAX:
            self._called.discard(name)
            self._searching[name] = self._now_ns
        else:
            self._line.setdefault(name, runner)
        return name in self._searching

    def looked(self, subjects: int) -> None:
        """One of them looked at so many subjects."""
        self._looked_at += subjects

    def searched(self, name: str) -> None:
        """It has found it, or is not to look for it any more."""
        if self._searching.pop(name, None) is not None:
            self._searched.add(name)
        self._line.pop(name, None)

    def begin(self, now_ns: int, *, others: bool) -> None:
        """A turn begins: wake whom time concerns, and who has more to do from the turn before.

        That takes long: in every second turn what else there is to do (`others`, or a replica)
        goes first, as the disk or somebody waits for it.
        """
        self._now_ns = now_ns
        for name in self._deadlines.due(now_ns):
            self.wake(name, self._asleep.pop(name))
        if self._later and self._dirty:
            self._others_ns = now_ns
        self._put_off = bool(self._later) and (others or bool(self._dirty)) and not self._put_off
        if not self._put_off:
            later, self._later = self._later, {}
            self._dirty.update(later)
        if self._searching or self._searched or self._line or self._called:
            self._call(now_ns)

    def _call(self, now_ns: int) -> None:
        """Have those search whose turn it is."""
        if self._looked_at > SEARCHED_MAX:
            self._places = SEARCHES_MAX
        elif self._searched:
            self._places = min(2 * self._places, SHORT_SEARCHES_MAX)
        self._looked_at = 0
        self._searched.clear()
        for name, at_ns in list(self._searching.items()):
            if now_ns > at_ns + SEARCH_IDLE_NS:
                del self._searching[name]
        called = list(islice(self._line, self._may_call))
        self._called = set(called)
        for name in called:  # Who does not come, as it may do nothing now, asks anew.
            self.wake(name, self._line.pop(name))

    def take(self) -> dict[str, Runner]:
        """Those that are to run now; a turn's messages are shared among them."""
        dirty, self._dirty = self._dirty, {}
        if dirty:
            alone = self._now_ns - self._others_ns > ALONE_AFTER_NS
            most = TURN_MESSAGES_MAX if alone else SHORT_TURN_MESSAGES_MAX
            self.deliveries = max(most // len(dirty), DELIVERIES_MIN)
        return dirty

    def sleep(self, name: str, runner: Runner, due_ns: int) -> None:
        """A deadline wakes it; in the next turn, if that was before."""
        self._asleep[name] = runner
        self._deadlines.set(name, due_ns)

    def ran(self, name: str, runner: Runner) -> None:
        """It did what it could: a deadline wakes it, if it has one."""
        due_ns = runner.next_due_ns()
        if due_ns is not None:
            self.sleep(name, runner, due_ns)
        elif self._asleep.pop(name, None) is not None:
            self._deadlines.cancel(name)

    def next_due_ns(self) -> int | None:
        """When a deadline wakes somebody."""
        return self._deadlines.next()

    def forget(self, name: str) -> None:
        """Its replica is removed from this server."""
        self._dirty.pop(name, None)
        self._later.pop(name, None)
        self.searched(name)
        if self._asleep.pop(name, None) is not None:
            self._deadlines.cancel(name)

    def clear(self) -> None:
        """All replicas stop."""
        self._dirty.clear()
        self._later.clear()
        self._searching.clear()
        self._searched.clear()
        self._line.clear()
        self._asleep.clear()
        self._deadlines.clear()
