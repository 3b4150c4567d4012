"""Tables of the lane's loop with some fans, for both twins."""

from dataclasses import dataclass, field

from jsctl.broker.accel import contract
from jsctl.broker.accel.choice import Twin, compiled, interpreted
from jsctl.broker.accel.contract import ANSWERS, HEADERS, HEARS, STOP, LaneTable, Leg, Member

TWINS = [twin for twin in (interpreted(), compiled()) if twin is not None]
PLENTY = 1 << 40
STOPS = (b"_R_.", b"$JS.ACK.")
FLAGS = HEADERS | ANSWERS | HEARS


class Peer:
    """Stands for whoever gets messages."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


@dataclass(slots=True)
class World:
    """A table with some fans, by the first letter of the subject; others go step by step.

    As many tokens decide as the subject begins with letters of fans, but one: `oo.1` and `oo.2` are
    a family, `o.1` and `o.2` are none.
    """

    twin: Twin
    payload_max: int = 70_000
    line_max: int = 2_000
    asked: list[bytes] = field(default_factory=list)
    peers: list[Peer] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)
    table: LaneTable = field(init=False)

    def __post_init__(self) -> None:
        words = (b"PUB ", b"HPUB ")
        self.table = self.twin.table(*words, STOPS, self.line_max, self.payload_max, self.ask)
        self.peers = [Peer(name) for name in "abcdefg"]
        self.fill()

    def fill(self) -> None:
        """Tell the table its fans, from nothing."""
        a, b, c, d, e, sink, other = [self.table.target(peer) for peer in self.peers]
        one, two = leg(a, sid=b"1"), leg(b, sid=b"2", headers=False)
        self.numbers = {
            b"n": self.table.fan((), (), (), ()),
            b"": self.table.fan((one,), ("no subject",), (), ()),
            b"o": self.table.fan((one,), ("a",), (), ()),
            b"h": self.table.fan((two,), ("b",), (), ()),
            b"t": self.table.fan((one, leg(a, sid=b"9"), two), ("a", "a9", "b"), (), ()),
            b"s": self.table.fan((), (), (sink, other), ()),
            b"m": self.table.fan((one, two, leg(c, sid=b"3")), ("a", "b", "c"), (sink,), ()),
            b"q": self.table.fan((), (), (), ((member(d), member(e), member(a)),)),
            b"g": self.table.fan(
                (one,), ("a",), (), ((member(d), member(e)), (member(a), member(b, headers=False)))
            ),
        }

    def ask(self, origin: object, subject: bytes) -> tuple[int, int, int]:
        self.asked.append(subject)
        depth = len(subject) - len(subject.lstrip(b"nohtsmqg")) - 1
        return self.numbers.get(subject[:1], STOP), contract.MISS_COST, max(depth, 0)

    def route(
        self, data: bytes, position: int = 0, flags: int = FLAGS, budget: int = PLENTY, lot: int = 7
    ) -> tuple[object, ...]:
        """What a call gives; pieces of output joined."""
        origin = self.peers[0]
        *numbers, outputs = self.table.route(data, position, origin, flags, budget, lot)
        if outputs is None:
            return (*numbers, None)
        written, captured, delivered = outputs
        pieces = [(str(peer), b"".join(some), *rest) for peer, some, *rest in written]
        rows = [(str(peer), [(*row[:4], str(row[4])) for row in some]) for peer, some in captured]
        return (*numbers, (pieces, rows, delivered))


def leg(target: int, *, sid: bytes, headers: bool = True) -> Leg:
    return (target, headers, b"MSG ", b"HMSG ", b" " + sid + b" ")


def member(target: int, *, headers: bool = True) -> Member:
    return (*leg(target, sid=b"q", headers=headers), (f"member {target}",))


def agree(data: bytes, flags: int, lot: int, budget: int = PLENTY) -> None:
    """Both go through all of the input and give the same, stop by stop."""
    worlds = [World(twin) for twin in TWINS]
    position = 0
    while position < len(data):
        found = [world.route(data, position, flags, budget, lot) for world in worlds]
        assert all(one == found[0] for one in found)
        assert len({tuple(world.asked) for world in worlds}) == 1
        reached, drawn = found[0][0], found[0][4]
        assert isinstance(reached, int) and isinstance(drawn, int)
        lot = drawn
        step = data.find(b"\n", reached) + 1  # what is carried out elsewhere
        position = step if step > 0 else len(data)
