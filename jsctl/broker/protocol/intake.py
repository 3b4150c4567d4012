"""Input of one connection that is not complete yet.

Pieces are joined only when enough of them are there, so that a message of many chunks is
copied once. Small ones are put together at once: an object for each would be many times their
size. Shared by the parsers and the lane.
"""

SMALL_BYTES = 2048


class Intake:
    """Keeps the bytes behind the last complete operation."""

    __slots__ = ("_need", "_pieces", "size")

    def __init__(self) -> None:
        self._pieces: list[bytes | bytearray] = []
        self.size = 0
        """Bytes kept. Read for each chunk of each connection; changed here alone."""
        self._need = 0

    def held(self) -> bytes:
        """A copy of what is kept."""
        return b"".join(self._pieces)

    def gather(self, chunk: bytes) -> bytes | None:
        """What is kept with `chunk` behind it; None while less than needed is there."""
        if not self._pieces:
            return chunk
        self.size += len(chunk)
        if self.size < self._need:
            self._append(chunk)
            return None
        joined = b"".join([*self._pieces, chunk])
        self._pieces = []
        self.size = self._need = 0
        return joined

    def _append(self, chunk: bytes) -> None:
        last = self._pieces[-1]
        if len(chunk) >= SMALL_BYTES:
            self._pieces.append(chunk)
        elif isinstance(last, bytearray):
            last += chunk
        else:
            self._pieces.append(bytearray(chunk))

    def keep(self, rest: bytes, need: int) -> None:
        """Keep `rest` until it has grown to `need` bytes (or by any amount)."""
        if rest:
            self._pieces = [rest]
            self.size = len(rest)
            self._need = need
