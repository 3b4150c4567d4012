"""Taking live messages out of a store's index, by whatever costs least.

What a message counts is in its record, in tables, or in the totals of what is left: many are
dropped without a look at their records.
"""

from collections.abc import Sequence

from jsctl.broker.store.index import StoreIndex, record_sum, seq_sum
from jsctl.broker.store.records import Records

_SUBJECTS_PER_READ = 16
"""So many subjects are looked at in the time in which one record is read."""


class MessageRemover:
    """Removes from an index what its records are asked about."""

    __slots__ = ("_index", "_records")

    def __init__(self, index: StoreIndex, records: Records) -> None:
        self._index = index
        self._records = records

    def drop(self, seqs: Sequence[int]) -> list[bytes]:
        """Remove live sequences, ascending; all of their subjects, [] if one is not known."""
        known = self._without_lost(seqs)
        subjects = self._index.drop(known, self._records.facts(known))
        return subjects if len(known) == len(seqs) else []

    def cut(self, first_seq: int) -> tuple[Sequence[int], list[bytes]]:
        """Remove everything below; what was live, [] if nothing is left, and its subjects, [] if
        they are not known."""
        index = self._index
        subjects: list[bytes] = []
        if first_seq > index.last:
            index.empty(first_seq)
            return [], []
        gone = index.all_live(index.first, first_seq - 1)
        if len(gone) * _SUBJECTS_PER_READ > len(index.subjects):
            self._drop_front(gone, first_seq)
        else:
            subjects = self.drop(gone)
        index.first = first_seq
        return gone, subjects

    def _drop_front(self, seqs: Sequence[int], first_seq: int) -> None:
        """As `_drop` for all that is live below a sequence, by a look at all subjects. They are not
        noted as deleted: nothing is there below the first one."""
        index, tally = self._index, self._records.tally
        known = self._without_lost(seqs)
        left = index.all_live(first_seq, index.last)
        if len(left) < len(known) and not index.lost:
            size, crcs = tally(left) if left else (0, 0)
            index.bytes, index.digest = size, record_sum(crcs, seq_sum(left))
            index.messages = len(left)
        elif known:
            index.count_out(*tally(known), known)
        index.subjects.cut_front(first_seq)

    def _without_lost(self, seqs: Sequence[int]) -> Sequence[int]:
        """The readable ones of live sequences that go; the damaged ones are gone then."""
        lost = self._index.lost
        if not lost:
            return seqs
        known = [seq for seq in seqs if seq not in lost]
        self._index.drop_lost([seq for seq in seqs if seq in lost])
        return known
