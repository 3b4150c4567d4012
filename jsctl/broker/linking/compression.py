"""S2 streams between servers: what two sides agree on, and the bytes of both directions.

Each side compresses as it wants to once both agree that it is done. What is written in one go is a
stream of its own (streams may follow each other), so that nothing waits for more. Levels above
`s2_fast` are not told apart: the library has one way.

What comes in is opened a portion a turn: a few bytes may stand for megabytes, and blocks that
Snappy does not know are slow to open.
"""

from collections.abc import Callable, Iterator

from jsctl.backups.s2 import PART_BYTES, BlockDecoder, BrokenStream, compressed, plain_chunk
from jsctl.broker.compression_options import UNCOMPRESSED
from jsctl.broker.errors import ProtocolError
from jsctl.broker.linking.rests import Valves

PORTION_BYTES = 1 << 20
"""So much is opened a turn, and the rest of the block that goes beyond it."""
PORTION_BLOCKS = 4096
PORTION_SLOW_STEPS = 16
"""Steps of blocks that take several."""
BACKLOG_BYTES_MAX = 1 << 20
"""A connection that has more waiting is not read meanwhile."""


def packed(level: str, data: bytes) -> bytes:
    """What is written at once, as the other side gets it."""
    if level != UNCOMPRESSED:
        return compressed(data)
    parts = range(0, len(data), PART_BYTES)
    return b"".join(plain_chunk(data[at : at + PART_BYTES]) for at in parts)


class Unpacking:
    """One connection's way in."""

    __slots__ = ("_decoder", "_paused", "backlog_bytes", "waiting")

    def __init__(self) -> None:
        self._decoder = BlockDecoder()
        self._paused = False
        """The socket is not read."""
        self.waiting = False
        """There is something that can be opened."""
        self.backlog_bytes = 0
        """What came since all was opened that could be."""

    def open(self, chunk: bytes, read: Callable[[bytes], bool], conn: int, valves: Valves) -> None:
        """Take the bytes that follow, and have what can be opened in a turn read, until `read` says
        to read no more now; as long as much waits, its socket is not read. Raises
        ProtocolError."""
        self.feed(chunk)
        try:
            all(map(read, self.portion()))
        except BrokenStream as error:
            raise ProtocolError(f"read error: {error}") from error
        self._turn_valve(conn, valves)

    def hold(self, chunk: bytes, conn: int, valves: Valves) -> None:
        """Take the bytes that follow, and open nothing of them yet."""
        self.feed(chunk)
        self._turn_valve(conn, valves)

    def _turn_valve(self, conn: int, valves: Valves) -> None:
        full = self.backlog_bytes > BACKLOG_BYTES_MAX
        if full and not self._paused:
            valves.pauses.append(conn)
        elif self._paused and not self.waiting:
            valves.resumes.append(conn)
        self._paused = full or (self._paused and self.waiting)

    def feed(self, chunk: bytes) -> None:
        """Take the bytes that follow."""
        self._decoder.feed(chunk)
        self.backlog_bytes += len(chunk)
        self.waiting = True

    def portion(self) -> Iterator[bytes]:
        """What blocks hold, as much as one turn is for. Raises BrokenStream."""
        opened = count = slow = 0
        resting = False
        while opened < PORTION_BYTES and count < PORTION_BLOCKS and slow < PORTION_SLOW_STEPS:
            found = self._decoder.step()
            if found is None:
                self.waiting, self.backlog_bytes = False, 0
                return
            if found:
                opened, count, resting = opened + len(found), count + 1, False
                yield found
            else:
                slow += resting
                count += not resting
                resting = True
