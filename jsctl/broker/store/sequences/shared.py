"""Very many ascending sequences that several have in common, and the steps between them.

Hundreds of consumers may begin with the same: they have one array, and what their logs and states
have of it is made once.
"""

from array import array
from itertools import accumulate
from operator import sub

from jsctl.broker.store.sequences.packed import CODES


class SharedSeqs:
    """Never changed."""

    __slots__ = ("_steps", "seqs")

    def __init__(self, seqs: "array[int]", steps: tuple[int, bytes] | None = None) -> None:
        self.seqs = seqs
        self._steps = steps

    def steps(self, head: int = 0) -> tuple[int, bytes]:
        """What each of them, at least one, adds to the one before, from one on: bytes a step, and
        these; no bytes where all follow each other."""
        if self._steps is None:
            self._steps = _steps_of(self.seqs)
        width, steps = self._steps
        return width, steps[width * head :] if head else steps

    @staticmethod
    def of_steps(first: int, count: int, width: int, steps: bytes) -> "SharedSeqs":
        """Inverse of `steps`."""
        if width:
            seqs = array("Q", accumulate(array(CODES[width], steps), initial=first))
        else:
            seqs = array("Q", range(first, first + count))
        return SharedSeqs(seqs, (width, steps))

    def are(self, first: int, count: int, steps: tuple[int, bytes]) -> bool:
        """Whether these are what `of_steps` would make."""
        return len(self.seqs) == count and self.seqs[0] == first and self.steps() == steps

    def behind(self, head: int) -> "SharedSeqs":
        """Those from one on."""
        steps = None if self._steps is None else self.steps(head)
        return SharedSeqs(self.seqs[head:], steps)


def _steps_of(seqs: "array[int]") -> tuple[int, bytes]:
    if seqs[-1] - seqs[0] == len(seqs) - 1:
        return 0, b""
    steps = list(map(sub, seqs[1:], seqs))
    most = max(steps)
    width = next(width for width in CODES if most < 1 << 8 * width)
    return width, array(CODES[width], steps).tobytes()
