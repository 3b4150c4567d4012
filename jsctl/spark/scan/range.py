"""What is to be read, what was read, and what a reader of either way promises."""

from bisect import bisect_right
from dataclasses import dataclass, field

from jsctl.errors import Unreachable
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.options import ReadMode

CHUNK_ROWS = 10_000
CHUNK_BYTES = 8 << 20
"""A chunk is handed out when it has so many rows or bytes; one message may be larger."""


@dataclass(frozen=True, slots=True)
class Range:
    """What one task reads: `first <= sequence < end` of a stream.

    `created` is the stream's time of creation: another one is another stream. With `complete`
    it is an error when the stream lost messages of the range from its head.
    """

    stream: str
    created: str
    first: int
    end: int
    filters: tuple[str, ...] = ()
    mode: ReadMode = ReadMode.CONSUMER
    headers_only: bool = False
    complete: bool = True


@dataclass(slots=True)
class Chunk:
    """Rows as columns. `times` are nanoseconds in digits, or RFC 3339 from direct gets.

    `heads` are header blocks as stored, empty for none.
    """

    subjects: list[bytes] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    times: list[bytes] = field(default_factory=list)
    heads: list[bytes] = field(default_factory=list)
    payloads: list[bytes] = field(default_factory=list)

    def cut(self, end: int) -> None:
        """Drop rows at and behind a sequence."""
        keep = bisect_right(self.seqs, end - 1)
        if keep < len(self.seqs):
            for column in (self.subjects, self.seqs, self.times, self.heads, self.payloads):
                del column[keep:]


class Interrupted(Unreachable):
    """A reader cannot go on; another one, made behind the last row, can."""


class Reader:
    """Fetches a range piece by piece. `next` is the first sequence not handed out yet."""

    def __init__(self, js: JetStream, wanted: Range, first: int) -> None:
        self.js = js
        self.range = wanted
        self.next = first

    def chunk(self) -> Chunk:
        """The next rows in order; none when this reader sees nothing more at present.

        Raises Interrupted, Closed, TimeoutError and what requests raise.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Give back what the server keeps for it; without a word where the connection is gone."""
