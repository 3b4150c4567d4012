"""Messages that are for a consumer, known since they were stored.

Who delivers what one of a thousand filters lets pass would have to look through the messages for
all the others. Where the stream looks up whom a message is for, it tells the sequence, too.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

AHEAD_MAX = 64
"""So many are kept of each consumer; who has more of them in front looks for itself."""


class Ahead:
    """All messages for one consumer from a sequence on, as long as nothing else happens."""

    __slots__ = ("_seqs", "_start")

    def __init__(self) -> None:
        self._start: int | None = None
        """From where on all are known; None: nowhere."""
        self._seqs: deque[int] = deque()

    def stored(self, first: int, seqs: Sequence[int]) -> None:
        """Of messages from the sequence `first` on these are for it."""
        if self._start is None:
            self._start = first
        self._seqs.extend(seqs)
        if len(self._seqs) > AHEAD_MAX:
            self.forget()

    def caught_up(self, cursor: int) -> None:
        """There is none from here on, yet."""
        if self._start is None:
            self._start = cursor

    def forget(self) -> None:
        """Something else happened: what is known says nothing any more."""
        self._start = None
        self._seqs.clear()

    def next(
        self, cursor: int, count: int, live_of: Callable[[Sequence[int]], list[int]]
    ) -> list[int] | None:
        """The next of them that `live_of` says to be there, ascending; None: not all are known."""
        seqs = self._seqs
        if self._start is None or cursor < self._start:
            return None
        while seqs and seqs[0] < cursor:
            seqs.popleft()
        self._start = cursor  # A consumer that is reset looks for those before.
        found = list(islice(seqs, count))
        live = live_of(found)
        return live if len(live) == len(found) else live_of(list(seqs))[:count]
