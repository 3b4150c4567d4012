"""Clients that publish and subscribe outside of streams, and what they may expect of that.

One talker is connected to each server while it runs. It hears all talkers, its own words exactly,
those of its cluster in order, and all of them once; each message goes to one member of a queue
group at most. When all is well again, each hears all, and one member of each group hears each
message: one that is near, if there is one. In several clusters each has a subject of its own as
well, so that interest comes and goes with it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tests.simulation.violation import Violation
from tests.simulation.world import MS, World

CONNECT = (
    b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,'
    b'"echo":true,"protocol":1,"lang":"sim","version":"1"}\r\n'
)
ALL, GROUP, FAR = b"1", b"2", b"0"
"""Subscription ids: of all, of a queue group that everybody is in, and of one whose members are in
some places only. Those behind come and go."""
CORNER = b"c"
"""The subscription to the talker's own subject."""
RUN_MAX = 6
AUTO_MAX = 2
PACE_MS = 80


Said = tuple[bytes, int]
"""(talker, number)"""


@dataclass(frozen=True)
class Places:
    """Where talkers are: in which cluster, or at a leaf node of the first one."""

    of: Callable[[bytes], str]
    """The place of a talker by its name."""
    clusters: tuple[str, ...]
    leaf: str = ""
    far: tuple[str, ...] = ()
    """Where members of the second group are."""

    @property
    def many(self) -> bool:
        """Whether there is more than one."""
        return len(self.clusters) > 1

    def nearest(self, here: str, members: set[str]) -> str:
        """Where a group hears a message: here, at leaf nodes, in other clusters. Empty if that may
        be in more than one place, or nowhere."""
        hub = self.clusters[0]
        steps = [here, *([self.leaf] if here == hub else [hub] if here == self.leaf else [])]
        for step in steps:
            if step in members:
                return step
        rest = members - set(steps)
        return next(iter(rest)) if len(rest) == 1 else ""


ONE_PLACE = Places(lambda name: "here", ("here",))


class Room:
    """All talkers of a run."""

    def __init__(self, world: World, places: Places = ONE_PLACE) -> None:
        self.world = world
        self.places = places
        self.talkers: dict[bytes, Talker] = {}
        """Those whose server runs."""
        self.heard = 0
        self.grouped: dict[bytes, dict[Said, str]] = {GROUP: {}, FAR: {}}
        """Group -> what some member of it heard, and where."""
        self._marks: dict[bytes, int] = {}
        """Talker -> number of the last message that all should have heard by now."""

    def enter(
        self,
        name: bytes,
        send: Callable[[bytes], None],
        alive: Callable[[], bool],
        link: Callable[[], int] = lambda: 0,
    ) -> "Talker":
        """A server began to run, and takes a talker. `link`: its newest connection to others."""
        number = name.partition(b"x")[0]
        for old in [one for one in self.talkers if one.partition(b"x")[0] == number]:
            del self.talkers[old]
        self.talkers[name] = talker = Talker(self, name, send, alive, link)
        talker.open()
        return talker

    def reasons(self) -> Iterator[str]:
        """Who does not hear whom; what is said now has to be heard at the next call."""
        yield from self.unheard()
        self.speak()

    def speak(self) -> None:
        """Have everybody say something that all have to hear."""
        present = self._present()
        for one in present.values():
            one.say(RUN_MAX)
            self._marks[one.name] = one.count
            if self.places.many:
                one.call(present)

    def unheard(self) -> Iterator[str]:
        """Who did not hear what was said last."""
        present = self._present()
        for name in present:
            mark = self._marks.get(name)
            if mark is None:
                yield f"talker {name.decode()} said nothing yet"
                continue
            said = {(name, mark - at) for at in range(RUN_MAX)}
            for other, listener in present.items():
                if not said <= listener.heard.keys():
                    yield f"{other.decode()} does not hear {name.decode()}"
                if self.places.many and (name, mark) not in listener.called:
                    yield f"{name.decode()} does not reach {other.decode()}"
            yield from self._wrong_members(name, said, present)

    def _wrong_members(
        self, name: bytes, said: set[Said], present: "dict[bytes, Talker]"
    ) -> Iterator[str]:
        here = self.places.of(name)
        there = {self.places.of(one) for one in present}
        for group, members in ((GROUP, there), (FAR, there & set(self.places.far))):
            wanted = self.places.nearest(here, members)
            found = {self.grouped[group].get(one, "nowhere") for one in said}
            if wanted and found != {wanted}:
                who = f"{name.decode()} in {here}"
                yield f"{who} is heard by group {group.decode()} in {sorted(found)}, not {wanted}"

    def _present(self) -> "dict[bytes, Talker]":
        return {name: one for name, one in self.talkers.items() if one.alive()}


class Talker:
    """One of them."""

    def __init__(
        self,
        room: Room,
        name: bytes,
        send: Callable[[bytes], None],
        alive: Callable[[], bool],
        link: Callable[[], int],
    ) -> None:
        self.room = room
        self.name = name
        self.place = room.places.of(name)
        self.alive = alive
        self.count = 0
        self.last: dict[bytes, int] = {}
        """Talker -> number of its last message that was heard."""
        self.heard: dict[Said, int] = {}
        """All that was heard, and by which connection of a leaf node."""
        self._link = link
        self.called: set[Said] = set()
        """What came to the own subject."""
        self._send = send
        self._rest = b""
        self._sids = 2
        self._passing: bytes = b""
        """A subscription that will be ended."""
        self._auto: dict[bytes, int] = {}
        """Subscriptions that end by themselves -> messages so far."""
        self._ended: set[bytes] = set()
        self._pings: list[tuple[int, bytes]] = []
        """What a PONG confirms: (messages said, subscription ended)."""

    def open(self) -> None:
        """Connect and subscribe."""
        self._send(CONNECT + b"SUB room.> %b\r\nSUB room.> group %b\r\n" % (ALL, GROUP))
        if self.place in self.room.places.far:
            self._send(b"SUB room.> far %b\r\n" % FAR)
        if self.room.places.many:
            self._send(b"SUB corner.%b %b\r\n" % (self.name, CORNER))
        self._step()

    def _step(self) -> None:
        if not self.alive():
            return
        random = self.room.world.random
        self.say(random.randint(1, RUN_MAX))
        if random.random() < 0.3:
            self._come_or_go()
        self.room.world.at(int(random.expovariate(1.0) * PACE_MS * MS), self._step)

    def say(self, count: int) -> None:
        """Publish so many messages at once, and ask for a sign that they were taken."""
        lines = b""
        for _ in range(count):
            self.count += 1
            said = b"%b %06d" % (self.name, self.count)
            lines += b"PUB room.%b %d\r\n%b\r\n" % (self.name, len(said), said)
        self._ping(lines, b"")

    def call(self, names: Iterable[bytes]) -> None:
        """Say what was said last to each of these alone."""
        said = b"%b %06d" % (self.name, self.count)
        self._send(
            b"".join(b"PUB corner.%b %d\r\n%b\r\n" % (one, len(said), said) for one in names)
        )

    def _ping(self, lines: bytes, ended: bytes) -> None:
        self._pings.append((self.count, ended))
        self._send(lines + b"PING\r\n")

    def _come_or_go(self) -> None:
        if self._passing:
            ended, self._passing = self._passing, b""
            self._ping(b"UNSUB %b\r\n" % ended, ended)
            return
        self._sids += 1
        sid = b"%d" % self._sids
        if self._sids % 2:
            self._passing = sid
            self._send(b"SUB room.> %b\r\n" % sid)
        else:
            self._auto[sid] = 0
            self._send(b"SUB room.> %b\r\nUNSUB %b %d\r\n" % (sid, sid, AUTO_MAX))

    def take(self, data: bytes) -> None:
        """What the server sent."""
        data = self._rest + data
        while True:
            line, end, rest = data.partition(b"\r\n")
            words = line.split(b" ")
            if not end:
                break
            if words[0] != b"MSG":
                self._line(line)
                data = rest
                continue
            size = int(words[-1])
            if len(rest) < size + 2:
                break
            self._message(words[1], words[2], rest[:size])
            data = rest[size + 2 :]
        self._rest = data

    def _line(self, line: bytes) -> None:
        if line.startswith(b"-ERR"):
            raise Violation(f"talker {self.name.decode()} is told {line.decode()}")
        if line == b"PING":
            self._send(b"PONG\r\n")
        elif line == b"PONG" and self._pings:
            said, ended = self._pings.pop(0)
            if self.last.get(self.name, 0) < said:
                raise Violation(f"talker {self.name.decode()} does not hear its own message {said}")
            self._ended.add(ended)

    def _message(self, subject: bytes, sid: bytes, payload: bytes) -> None:
        who = self.name.decode()
        source, _, text = payload.partition(b" ")
        if sid == CORNER:
            self._called(subject, (source, int(text)))
            return
        if subject != b"room." + source:
            raise Violation(f"talker {who} hears {payload!r} on {subject!r}")
        if sid in self._ended:
            raise Violation(f"talker {who} hears {payload!r} on a subscription that it ended")
        number = int(text)
        self.room.heard += 1
        if sid in self.room.grouped:
            heard = self.room.grouped[sid]
            if (source, number) in heard:
                raise Violation(f"two members of a queue group hear {payload!r}")
            heard[source, number] = self.place
        elif sid == ALL:
            last = self.last.get(source, 0)
            if self._is_again((source, number)) or self._is_late(source, number, last):
                raise Violation(f"talker {who} hears {payload!r} behind {last}")
            self.last[source] = max(number, last)
            self.heard[source, number] = self._link()
        elif sid in self._auto:
            self._auto[sid] += 1
            if self._auto[sid] > AUTO_MAX:
                raise Violation(f"talker {who} hears more than it asked for")

    def _called(self, subject: bytes, said: Said) -> None:
        """Somebody says something to this talker alone."""
        if said in self.called or subject != b"corner." + self.name:
            raise Violation(f"talker {self.name.decode()} hears {said} on {subject!r}")
        self.called.add(said)

    def _is_again(self, said: Said) -> bool:
        """Whether a message comes twice: to a leaf node one may, which the hub that it was with
        had passed on to the one that it is with now, and that one comes to it only then."""
        if self.place != self.room.places.leaf or self.room.places.of(said[0]) == self.place:
            return said in self.heard
        return self.heard.get(said) == self._link()

    def _is_late(self, source: bytes, number: int, last: int) -> bool:
        """Whether a message comes out of order: on the way between clusters, where servers that
        pass it on may come and go, it may be overtaken."""
        if source == self.name:
            return number != last + 1
        return number <= last and self.room.places.of(source) == self.place
