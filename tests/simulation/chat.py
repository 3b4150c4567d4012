"""Clients that publish and subscribe outside of streams, and what they may expect of that.

One talker is connected to each server while it runs. It hears all talkers, its own words exactly,
the others' in order and once; each message goes to one member of a queue group at most. When all
is well again, each hears all, and one member of the group hears each message.
"""

from collections.abc import Callable, Iterator

from tests.simulation.violation import Violation
from tests.simulation.world import MS, World

CONNECT = (
    b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,'
    b'"echo":true,"protocol":1,"lang":"sim","version":"1"}\r\n'
)
ALL, GROUP = b"1", b"2"
"""Subscription ids; those behind come and go."""
RUN_MAX = 6
AUTO_MAX = 2
PACE_MS = 80


class Room:
    """All talkers of a run."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.talkers: dict[bytes, Talker] = {}
        """Those whose server runs."""
        self.heard = 0
        self.grouped: set[tuple[bytes, int]] = set()
        """(talker, number) that some member of the group heard."""
        self._marks: dict[bytes, int] = {}
        """Talker -> number of the last message that all should have heard by now."""

    def enter(
        self, name: bytes, send: Callable[[bytes], None], alive: Callable[[], bool]
    ) -> "Talker":
        """A server began to run, and takes a talker."""
        number = name.partition(b"x")[0]
        for old in [one for one in self.talkers if one.partition(b"x")[0] == number]:
            del self.talkers[old]
        self.talkers[name] = talker = Talker(self, name, send, alive)
        talker.open()
        return talker

    def reasons(self) -> Iterator[str]:
        """Who does not hear whom; what is said now has to be heard at the next call."""
        present = {name: one for name, one in self.talkers.items() if one.alive()}
        for name in present:
            mark = self._marks.get(name)
            if mark is None:
                yield f"talker {name.decode()} said nothing yet"
                continue
            said = {(name, mark - at) for at in range(RUN_MAX)}
            for other, listener in present.items():
                if not said <= listener.heard:
                    yield f"{other.decode()} does not hear {name.decode()}"
            if not said <= self.grouped:
                yield f"nobody of the group hears {name.decode()}"
        for name, one in present.items():
            one.say(RUN_MAX)
            self._marks[name] = one.count


class Talker:
    """One of them."""

    def __init__(
        self, room: Room, name: bytes, send: Callable[[bytes], None], alive: Callable[[], bool]
    ) -> None:
        self.room = room
        self.name = name
        self.alive = alive
        self.count = 0
        self.last: dict[bytes, int] = {}
        """Talker -> number of its last message that was heard."""
        self.heard: set[tuple[bytes, int]] = set()
        """(talker, number) of all that was heard."""
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
        if subject != b"room." + source:
            raise Violation(f"talker {who} hears {payload!r} on {subject!r}")
        if sid in self._ended:
            raise Violation(f"talker {who} hears {payload!r} on a subscription that it ended")
        number = int(text)
        self.room.heard += 1
        if sid == GROUP:
            if (source, number) in self.room.grouped:
                raise Violation(f"two members of a queue group hear {payload!r}")
            self.room.grouped.add((source, number))
        elif sid == ALL:
            last = self.last.get(source, 0)
            if number <= last or (source == self.name and number != last + 1):
                raise Violation(f"talker {who} hears {payload!r} behind {last}")
            self.last[source] = number
            self.heard.add((source, number))
        elif sid in self._auto:
            self._auto[sid] += 1
            if self._auto[sid] > AUTO_MAX:
                raise Violation(f"talker {who} hears more than it asked for")
