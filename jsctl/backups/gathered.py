"""Bytes that come in pieces and are taken in other ones."""


class Gathered:
    """What came and was not taken yet. Pieces are joined when somebody looks at them."""

    def __init__(self) -> None:
        self.ahead = 0
        """How much there is."""
        self.data = b""
        """What was joined; what is not taken begins at `at`."""
        self.at = 0
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Take the bytes that follow."""
        self._parts.append(data)
        self.ahead += len(data)

    def join(self) -> None:
        """Have all of it in `data`."""
        if self._parts:
            self.data = b"".join((self.data[self.at :], *self._parts))
            self.at = 0
            self._parts.clear()

    def skip_to(self, at: int) -> None:
        """What was joined is taken up to here."""
        assert self.at <= at <= len(self.data), "what was joined is taken"
        self.ahead -= at - self.at
        self.at = at

    def take(self, count: int) -> bytes:
        """The next bytes; there have to be as many."""
        assert count <= self.ahead, "what is there is taken"
        self.join()
        found = self.data[self.at : self.at + count]
        self.at += count
        self.ahead -= count
        return found
