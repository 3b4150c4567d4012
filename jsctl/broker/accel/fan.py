"""What the loop in Python knows of its fans and targets, and of one message."""

from collections.abc import Callable
from typing import NamedTuple

from jsctl.broker.accel.contract import FEW, MESSAGE_COST, SINK_COST, Leg, Row, Written

SIZES_MAX = 4096
NO_SIZE = 1 << 40
"""In place of a number that is none."""


class LaneHead(NamedTuple):
    """A canonical control line; `header_size` is -1 without a header block."""

    subject: bytes
    reply: bytes
    header_size: int
    size: int


class Sizes(dict[bytes, int]):
    """Words to numbers, `NO_SIZE` for what is none as it is written here: without leading zeros."""

    def __init__(self, end: bytes, maximum: int) -> None:
        super().__init__()
        self._end, self._maximum = end, maximum

    def __missing__(self, word: bytes) -> int:
        digits = word.removesuffix(self._end)
        fits = word.endswith(self._end) and len(digits) <= 9 and digits.isdigit()
        size = int(digits) if fits else NO_SIZE
        if size > self._maximum or b"%d" % size != digits:
            size = NO_SIZE
        if len(self) >= SIZES_MAX:
            self.clear()
        self[word] = size
        return size


class LaneTarget:
    """What a peer or a sink gets in one call."""

    __slots__ = ("messages", "peer", "pieces", "rows", "size")

    def __init__(self, peer: object) -> None:
        self.peer = peer
        self.pieces: list[bytes] = []
        self.rows: list[Row] = []
        self.messages = 0
        self.size = 0


class LaneLeg:
    """One target of a fan."""

    __slots__ = ("counted", "header_verb", "headers", "infix", "messages", "target", "verb")

    def __init__(self, target: LaneTarget, leg: Leg, counted: object = None) -> None:
        self.target = target
        _, self.headers, self.verb, self.header_verb, self.infix = leg
        self.counted = counted
        self.messages = 0

    def write(self, subject: bytes, header_size: int, tail: bytes, rest: bytes) -> None:
        """One message; `tail` is what stands behind its subject, `rest` that without headers."""
        if self.headers and header_size >= 0:
            self.target.pieces += (self.header_verb, subject, self.infix, tail)
        else:
            self.target.pieces += (self.verb, subject, self.infix, rest)


def _words_of(leg: LaneLeg) -> int:
    return max(len(leg.verb), len(leg.header_verb)) + len(leg.infix)


class LaneFan:
    """Where the messages of some subjects go, and the sizes of those of this call.

    `stripped` are bytes of headers, which targets that take none do not get.
    """

    __slots__ = (
        "batch",
        "copies",
        "cost",
        "counted",
        "groups",
        "legs",
        "peers",
        "sinks",
        "sizes",
        "stripped",
        "strips",
        "words",
    )

    def __init__(
        self,
        legs: list[LaneLeg],
        counted: object,
        sinks: list[LaneTarget],
        groups: list[list[LaneLeg]],
    ) -> None:
        self.legs, self.counted, self.sinks, self.groups = legs, counted, sinks, groups
        self.peers = {one.target.peer for one in legs}
        self.batch = len(self.peers) == len(legs) and not groups
        """Messages may be written target by target: nobody gets one twice, nothing is drawn."""
        self.peers |= {one.target.peer for group in groups for one in group}
        self.strips = not all(leg.headers for leg in [*legs, *[m for one in groups for m in one]])
        """Whether some target takes no headers."""
        self.copies = len(legs) + len(groups)
        self.cost = MESSAGE_COST + self.copies + SINK_COST * len(sinks)
        self.words = sum(map(_words_of, legs)) + sum(max(map(_words_of, one)) for one in groups)
        """Verbs and infixes of one message, to bound the output."""
        self.sizes: list[int] = []
        self.stripped = 0


Front = tuple[Callable[[tuple[bytes, bytes]], None], bytes, bytes, bool]
"""Where a leg's pieces go, what stands before a message without and with headers, and whether it
takes these."""


class Plain:
    """A subject whose messages go to a few peers and nowhere else.

    `behind` is where the size begins in a message without headers and reply.
    """

    __slots__ = ("behind", "fan", "fronts", "subject")

    def __init__(self, fan: LaneFan, subject: bytes, behind: int) -> None:
        self.fan, self.subject, self.behind = fan, subject, behind
        self.fronts: list[Front] = [
            (
                one.target.pieces.extend,
                one.verb + subject + one.infix,
                one.header_verb + subject + one.infix,
                one.headers,
            )
            for one in fan.legs
        ]


class Known:
    """A subject: its fan, None for those that are carried out step by step.

    `behind` and `header_behind` are where a line goes on behind the subject.
    """

    __slots__ = ("behind", "fan", "header_behind", "plain", "subject")

    def __init__(
        self, fan: LaneFan | None, subject: bytes, behind: int, header_behind: int
    ) -> None:
        self.fan, self.subject = fan, subject
        self.behind, self.header_behind = behind, header_behind
        few = fan is not None and fan.copies <= FEW and not (fan.sinks or fan.groups)
        self.plain = Plain(fan, subject, behind) if fan is not None and few else None


def take_written(target: LaneTarget, written: list[Written]) -> None:
    """Put what a target got into the output, once."""
    if target.messages:
        # Heads of entries know the list by its method, so it stays the same one.
        pieces = target.pieces[:]
        target.pieces.clear()
        written.append((target.peer, pieces, target.messages, target.size))
        target.messages = target.size = 0
