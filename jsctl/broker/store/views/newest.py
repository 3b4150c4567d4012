"""The newest message of each of very many subjects, found a portion at a time.

A bucket may have a million keys: one look at all of them would keep everybody else waiting. What
is looked for is what there was when the search began: messages that come meanwhile do not count,
and those that go may be missing.

Theory of operation. The names are copied at once, as that takes a hundredth of the whole, and are
looked up in portions, each of which gives a sorted run of sequences. The runs are merged in
portions, too: a sample of them says where to cut, so that each part has about as many. What was
found is kept until something else is looked for, with the subjects that change meanwhile: hundreds
of consumers may begin at once with the same, and have it in common.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise

from jsctl.broker.store.index import StoreIndex
from jsctl.broker.store.sequences.shared import SharedSeqs
from jsctl.broker.store.subject_index import KnownNewest
from jsctl.broker.subject.matching import Filters

PORTION = 16_384
"""Subjects, or sequences, of one step."""
SHORT = 2048
"""To look at so many does not take long."""
KNOWN = 8
"""So many that are known already take as long as a look at one."""
_SAMPLES = 64
"""So many of a full run say where the others lie."""
_BEYOND = 1 << 64
_NEAR = 8
_MANY = 512
"""To look at so many subjects takes longer than to read a few messages."""


def newest_near(
    index: StoreIndex, subject_of: Callable[[int], bytes | None], filters: Filters
) -> int | None:
    """The newest message that passes, be it damaged, if there are many subjects and it is one of
    the last few messages: most patterns that are asked for match many."""
    if len(index.subjects) < _MANY:
        return None
    seq = index.last
    for _ in range(_NEAR):
        seq = index.deleted.previous_absent(seq)
        subject = subject_of(seq) if seq >= index.first else None
        if subject is None:
            return None
        if filters.match(subject):
            return seq
        seq -= 1
    return None


class NewestOfEach:
    """See the module; `up_to` is the last sequence when it began."""

    __slots__ = ("_filters", "_index", "_portion", "_steps", "found", "shared", "up_to")

    def __init__(self, index: StoreIndex, filters: Filters, portion: int = 0) -> None:
        self.up_to = index.last
        self.found = array("Q")
        """Ascending; all of them once `step` said so, and not to be changed then."""
        self.shared = SharedSeqs(self.found)
        """These."""
        self._index = index
        self._filters = filters
        self._portion = portion or PORTION
        self._steps = self._work()

    def step(self) -> bool:
        """Do a portion; whether it was the last one."""
        return next(self._steps, True)

    def _work(self) -> Iterator[bool]:
        """False for each portion that others follow."""
        index, subjects = self._index, self._index.subjects
        known = subjects.newest
        if known is not None and known.filters != self._filters:
            known = None
        is_now = index.last == self.up_to and not index.lost
        if is_now and known is not None and known.seqs is not None:
            self._renew(known, known.seqs)
            return
        names = index.retained_candidates(self._filters)
        if is_now and known is None and len(names) > SHORT:
            known = subjects.newest = KnownNewest(self._filters)
        yield from self._look(names)
        if is_now and not index.lost and known is not None and known.seqs is None:
            # Another one may have begun before, and noted more changes: that does no harm.
            known.seqs, known.up_to = self.shared, self.up_to

    def _renew(self, known: KnownNewest, shared: SharedSeqs) -> None:
        """Bring up to date what was found before: of subjects that changed, only the one that was
        the newest is in it, if it is there at all."""
        index = self._index
        seqs = shared.seqs
        index.subjects.searched += len(seqs) // KNOWN
        if known.changed:
            some = index.subjects.passing(self._filters, set(known.changed))
            before = set(index.newest_of(some, known.up_to))
            kept = [seq for seq in index.live_of(seqs) if seq not in before]
            seqs = array("Q", sorted(kept + index.newest_of(some, self.up_to)))
            shared = known.seqs = SharedSeqs(seqs)
            known.up_to = self.up_to
            known.changed.clear()
        self.found, self.shared = seqs, shared

    def _look(self, names: Sequence[bytes]) -> Iterator[bool]:
        """At all of them."""
        index, filters, portion = self._index, self._filters, self._portion
        runs: list[list[int]] = []
        for at in range(0, len(names), portion):
            if at:
                yield False
            some = index.subjects.passing(filters, names[at : at + portion])
            runs.append(sorted(index.newest_of(some, self.up_to)))
        if len(runs) > 1:
            for low, high in pairwise(_cuts(runs, portion)):
                yield False
                parts = [run[bisect_left(run, low) : bisect_left(run, high)] for run in runs]
                self.found.extend(array("Q", sorted(chain.from_iterable(parts))))
        elif runs:
            self.found.extend(runs[0])


def _cuts(runs: Sequence[Sequence[int]], portion: int) -> list[int]:
    """Between which sequences about a portion of all of them lies."""
    step = max(1, portion // _SAMPLES)
    sample = sorted(chain.from_iterable([run[::step] for run in runs]))
    return [0, *sample[:: portion // step][1:], _BEYOND]
