"""What both twins of the lane's loop keep to.

A table knows, for one account and one kind of publisher, where the messages of a subject go: its
*fan*. `route` takes canonical messages from a chunk and serves their fans, until it meets something
that is none of its business, and stops in front of it: whoever called it carries that out, step by
step, and calls again. So policy, errors and odd syntax exist once.

A canonical message is `<verb> <subject> [<reply> ]<size>`, or with the header verb `<verb>
<subject> [<reply> ]<header size> <size>`: single blanks, sizes without leading zeros, CR LF, and
all of the payload with its CR LF. The loop stops in front of everything else, and of

* subjects whose fan is not for it (`STOP`), or that are longer than `SUBJECT_BYTES_MAX`;
* replies that begin with one of `stops`;
* header blocks of publishers that may send none, and those that ask for a trace;
* messages that reach nobody, with a reply, where the publisher wants to know that;
* messages that would come back to a publisher who does not want to hear itself;
* payloads from `LARGE_BYTES` on, of which the loop would save next to nothing, and what would
  take the output of one call over `OUTPUT_BYTES_MAX`;
* lines of more bytes than the verb without headers and `line_max`.

It also ends once its budget is used, in units of `effort` times 32. What it costs is the same for
both twins, so that the same input makes the same turns.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

HEADERS = 1
"""Flag of `route`: the publisher may send header blocks."""
ANSWERS = 2
"""It wants to know when nobody got a message that has a reply."""
HEARS = 4
"""It gets its own messages."""

STOP = -1
"""The fan of subjects that are carried out step by step."""

MESSAGE_COST = 1
SINK_COST = 4
"""A leg and a group cost 1; this is what else a message costs, in 32nds of a unit."""
MISS_COST = 32
"""What it costs at least to find a fan."""

SUBJECT_BYTES_MAX = 512
LARGE_BYTES = 64 * 1024
FEW = 16
OUTPUT_BYTES_MAX = 32 << 20
"""What fans with more than a few legs write in one call; that of others is bounded by the input."""
SUBJECTS_MAX = 16384
LEGS_MAX = 65536
"""A table that knows so many subjects, or whose fans have so many legs, is `full`: it learns
nothing more until it is cleared."""

FAMILIES_MAX = 4096
DEPTHS_MAX = 4
DOTS_MAX = 31
"""Families that a table knows, lengths of their prefixes for one number of dots, and dots of their
subjects; what is beyond is asked for one by one."""
KEPT_MAX = 1024
"""So many subjects of a family are kept by themselves, too, while the table is not half full: those
that come often are found faster. The rest, which may all be different, need no room."""

LOT_FACTOR = 6364136223846793005
LOT_STEP = 1442695040888963407
LOT_MASK = (1 << 64) - 1

Leg: TypeAlias = tuple[int, bool, bytes, bytes, bytes]
"""(target, whether it takes headers, verb, header verb, what stands behind the subject)."""
Member: TypeAlias = tuple[int, bool, bytes, bytes, bytes, object]
"""A leg, and what is counted when it is drawn."""
Row: TypeAlias = tuple[bytes, bytes, bytes, bytes, object]
"""(subject, reply, headers, payload, origin), for sinks."""

Peer: TypeAlias = Any
"""Objects of the caller are only passed on."""
Written: TypeAlias = tuple[Peer, Sequence[bytes], int, int]
"""(peer, pieces of output, messages, bytes of headers and payloads)."""
Captured: TypeAlias = tuple[Peer, list[Row]]
"""(sink, what it gets)."""
Delivered: TypeAlias = tuple[Peer, int]
"""(what the fan or member was given to count, how many messages it got)."""
Outputs: TypeAlias = tuple[list[Written], list[Captured], list[Delivered]]
Passed: TypeAlias = tuple[int, int, int, int, int, Outputs | None]
"""(position, messages, bytes of headers and payloads, cost, lot, outputs); outputs are None when
no message was taken. The peers, sinks and members of a call are in a fixed order."""

Miss: TypeAlias = Callable[[Any, bytes], tuple[int, int, int]]
"""Asked once for each subject or family, with the origin: the number of the fan, or STOP; what
that cost; and how many tokens of the subject, from the first on, decide on it together with their
number, 0 if all do. Subjects that have these tokens and as many in all, none of them empty and
without `*` and `>`, are a family: they have the same fan."""


class LaneTable(Protocol):
    """See the module."""

    @property
    def full(self) -> bool:
        """Whether it learns nothing more."""

    def target(self, peer: object) -> int:
        """The number of a peer or sink, each of which is to be told once."""

    def fan(
        self,
        legs: Sequence[Leg],
        counted: object,
        sinks: Sequence[int],
        groups: Sequence[Sequence[Member]],
    ) -> int:
        """The number of a fan: each leg and each sink gets each message, and of each group one
        member does, which is drawn. Raises ValueError for targets that were not told."""

    def clear(self) -> None:
        """Forget all subjects, fans and targets."""

    def route(
        self, data: bytes, position: int, origin: object, flags: int, budget: int, lot: int
    ) -> Passed:
        """Take messages from `position` on. `lot` is the state of the draws (`drawn`)."""


Chunk: TypeAlias = tuple[Any, int, bytes]
"""(origin, its flags, bytes) of a publisher."""
RouteEach: TypeAlias = Callable[[Any, list[Chunk], int], tuple[list[int], int, Outputs | None]]
"""Given a table, chunks, and the state of the draws: take chunks from the first on, as long as each
is one message that `route` would take without a budget. The bytes of headers and payload of each
that was taken, the state, and the outputs of all. If it raises, nothing was taken."""


class TableType(Protocol):
    """Makes tables; verbs end in a blank."""

    def __call__(
        self,
        verb: bytes,
        header_verb: bytes,
        stops: tuple[bytes, ...],
        line_max: int,
        payload_max: int,
        miss: Miss,
        /,
    ) -> LaneTable: ...


def next_lot(lot: int) -> int:
    """The state behind a draw."""
    return (lot * LOT_FACTOR + LOT_STEP) & LOT_MASK


def drawn(lot: int, count: int) -> int:
    """Which of `count` a state draws."""
    return ((lot >> 32) * count) >> 32


RawColumns: TypeAlias = tuple[
    Sequence[int], Sequence[int], Sequence[int], Sequence[int], Sequence[int], Sequence[bytes]
]
"""What `columns.Columns` names."""


class ColumnLoops(Protocol):
    """What both twins of `columns` do; see there. Sequences of bytes are lists."""

    def read_publishes(self, batch: list[Any], /) -> tuple[list[bytes], int, int, int] | None: ...

    def encode_publishes(
        self, head: bytes, batch: list[Any], first_seq: int, time_ns: int, /
    ) -> tuple[bytes, Sequence[int], Sequence[int], Sequence[int], Sequence[bytes]]: ...

    def encode_rows(
        self, head: bytes, rows: list[tuple[int, int, bytes, bytes, bytes]], /
    ) -> tuple[bytes, RawColumns]: ...

    def read_columns(self, buffer: bytes, start: int, end: int, /) -> RawColumns: ...

    def read_ids(self, buffer: bytes, start: int, end: int, /) -> list[bytes]: ...

    def read_rows(
        self,
        buffer: bytes,
        begin: int,
        seqs: Sequence[int],
        offsets: Sequence[int],
        lengths: Sequence[int],
        bytes_max: int,
        /,
    ) -> list[tuple[int, int, bytes, bytes, bytes]]: ...

    def delivery_tails(
        self,
        front: bytes,
        rows: list[tuple[int, int, bytes, bytes, bytes]],
        first: int,
        pending: int,
        /,
    ) -> list[bytes]: ...

    def plain_acks(self, acks: list[Any], /) -> tuple[list[int], list[bytes], list[int]]: ...

    def pack_ids(self, ids: list[bytes], first_seq: int, time_ns: int, /) -> bytes: ...

    def ack_lines(
        self,
        replies: list[bytes],
        first_seq: int,
        verb: bytes,
        infix: bytes,
        form: tuple[bytes, bytes],
        /,
    ) -> bytes: ...

    def ack_each(
        self,
        replies: list[bytes],
        first_seq: int,
        verb: bytes,
        infixes: list[bytes],
        form: tuple[bytes, bytes],
        /,
    ) -> list[bytes]: ...


Send: TypeAlias = Callable[
    [list[tuple[int, bytes]], dict[int, int]], Sequence[tuple[int, bytes, int]]
]
"""See `sockets.send`."""


class ArchiveLoops(Protocol):
    """What both do with messages of an archive; see `backups.entries`."""

    def entries_bytes(self, rows: list[tuple[int, int, bytes, bytes, bytes]], /) -> bytes: ...

    def read_messages(
        self, data: bytes, begin: int, last_seq: int, body_bytes_max: int, most: int, /
    ) -> tuple[list[tuple[int, int, bytes, bytes, bytes]], int]: ...


class SocketLoops(Protocol):
    """The compiled loops over sockets."""

    def look(
        self,
        epoll: int,
        wait_ms: int,
        plain: dict[int, int],
        chunks: list[tuple[int, bytes]],
        buffer: memoryview,
        least: int,
        room: int,
        /,
    ) -> tuple[int, list[tuple[int, int]] | None]:
        """Wait for sockets (-1: until there is one), and do once for each of them what
        `sockets.read` does, if it is `plain` and has nothing but input: into `buffer`, or its first
        `least` bytes once `room` bytes are read. What was read goes behind `chunks` as (connection,
        bytes). Returned is how much that is, and of other sockets (descriptor, what epoll says), 0
        for those that are broken. Raises what signal handlers raise."""

    def send(
        self, writes: list[tuple[int, bytes]], direct: dict[int, int], /
    ) -> Sequence[tuple[int, bytes, int]]:
        """See `sockets.send`."""
