"""What the broker itself publishes: single messages, and such as go out together: first deliveries
of a consumer, and acknowledgements of publishes.

A delivery to a client is `<verb> <subject> <sid> <reply> <size>`, line break, payload, line break.
All behind `<sid> ` is made once, when messages are given to their requests; whoever writes puts
subjects and ids before it, and everything of a turn becomes bytes with one join.
"""

from collections.abc import Sequence
from itertools import chain, cycle, repeat
from operator import itemgetter
from typing import Protocol

from jsctl.broker.accel.choice import column_loops

Item = tuple[bytes, bytes, bytes, bytes, bytes]
"""(subject, reply, headers, payload, shown subject): one message."""
Row = tuple[int, int, bytes, bytes, bytes]
"""(sequence, time in ns, subject, headers, payload): as stored."""


_subject, _payload = itemgetter(2), itemgetter(4)
"""Of rows."""


class Together(Protocol):
    """Messages without headers that are told at once, if one client or server gets all of them."""

    inboxes: Sequence[bytes]
    """The subjects that they go to, in turn."""

    def __len__(self) -> int: ...

    @property
    def payload_bytes(self) -> int:
        """Of all of them."""

    def items(self) -> list[Item]:
        """The same as single messages."""

    def frames(self, verb: bytes, infix: bytes) -> bytes:
        """What a client reads; `infix` is its subscription's id between blanks."""

    def routed(self, front: bytes) -> bytes:
        """What another server reads; `front` stands before the inbox."""


class Deliveries(Together):
    """Messages without headers, delivered for the first time, in turn to one or more inboxes."""

    __slots__ = ("inboxes", "lengths", "rows", "tails")

    def __init__(
        self, front: bytes, rows: Sequence[Row], inboxes: Sequence[bytes], first: int, pending: int
    ) -> None:
        """A reply is `front`, sequence, consumer's number, time and pending; `first` is the
        number of the first message, `pending` what is left behind it."""
        self.rows, self.inboxes = rows, inboxes
        self.lengths = list(map(len, map(_payload, rows)))
        self.tails = column_loops().delivery_tails(front, [*rows], first, pending)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def payload_bytes(self) -> int:
        return sum(self.lengths)

    def size(self, place: int, step: int) -> int:
        """Bytes of subjects, replies and payloads of every `step`-th message from `place` on."""
        lengths = self.lengths[place::step]
        if not lengths:
            return 0
        low, high = len(str(min(lengths))), len(str(max(lengths)))
        digits = low * len(lengths) if low == high else sum([len(str(one)) for one in lengths])
        around = len(b" \r\n\r\n") * len(lengths) + digits
        subjects = sum([len(row[2]) for row in self.rows[place::step]])
        return sum(map(len, self.tails[place::step])) - around + subjects

    def items(self) -> list[Item]:
        replies = [tail.partition(b" ")[0] for tail in self.tails]
        several = zip(cycle(self.inboxes), replies, self.rows, strict=False)
        return [(inbox, reply, b"", row[4], row[2]) for inbox, reply, row in several]

    def frames(self, verb: bytes, infix: bytes) -> bytes:
        parts = zip(repeat(verb), map(_subject, self.rows), repeat(infix), self.tails, strict=False)
        return b"".join(chain.from_iterable(parts))

    def routed(self, front: bytes) -> bytes:
        fronts = cycle([front + inbox + b" " for inbox in self.inboxes])
        lines = [tail.partition(b" ") for tail in self.tails]
        return b"".join(
            [
                b"%b%b@%b %b" % (head, reply, row[2], rest)
                for head, row, (reply, _, rest) in zip(fronts, self.rows, lines, strict=False)
            ]
        )


class AckRun(Together):
    """Acknowledgements of messages whose sequences follow each other, each to an inbox of its own.
    `form` stands around the sequence."""

    __slots__ = ("_form", "first_seq", "inboxes")

    def __init__(self, inboxes: list[bytes], first_seq: int, form: tuple[bytes, bytes]) -> None:
        self.inboxes: list[bytes] = inboxes
        self.first_seq = first_seq
        self._form = form

    def __len__(self) -> int:
        return len(self.inboxes)

    @property
    def payload_bytes(self) -> int:
        return sum(self.sizes())

    def items(self) -> list[Item]:
        head, tail = self._form
        acks = enumerate(self.inboxes, self.first_seq)
        return [(inbox, b"", b"", b"%b%d%b" % (head, seq, tail), b"") for seq, inbox in acks]

    def frames(self, verb: bytes, infix: bytes) -> bytes:
        return column_loops().ack_lines(self.inboxes, self.first_seq, verb, infix, self._form)

    def each(self, verb: bytes, infixes: list[bytes]) -> list[bytes]:
        """What clients read of which each gets one, by their subscriptions' infixes."""
        return column_loops().ack_each(self.inboxes, self.first_seq, verb, infixes, self._form)

    def sizes(self) -> Sequence[int]:
        """The payload of each."""
        around, last = sum(map(len, self._form)), self.first_seq + len(self) - 1
        digits = len(str(last))
        if len(str(self.first_seq)) == digits:
            return [around + digits] * len(self)
        return [around + len(str(seq)) for seq in range(self.first_seq, last + 1)]

    def routed(self, front: bytes) -> bytes:
        return self.frames(front, b" ")


OutgoingMessage = Item | Deliveries | AckRun
"""What somebody in the broker has to say, to be published in order."""


def singly(said: Sequence[OutgoingMessage]) -> list[Item]:
    """All as single messages."""
    found: list[Item] = []
    for one in said:
        if isinstance(one, tuple):
            found.append(one)
        else:
            found += one.items()
    return found
