"""The messages that a store had at one moment, to be read while it goes on.

As long as there is a view, what is removed stays where it is: segments are neither given up nor
written anew, and what was in memory alone is kept. So a view shows one state, however long its
reading takes, and costs no copy. A portion is chosen on the loop and read wherever its caller
likes, also in another thread.
"""

from jsctl.broker.errors import Damaged, DiskError
from jsctl.broker.store import record
from jsctl.broker.store.index import StoreIndex
from jsctl.broker.store.record import Row
from jsctl.broker.store.records import Records
from jsctl.broker.store.views.places import RecordPlace
from jsctl.dataclass import dataclass

SEQS_MAX = 2048


@dataclass(slots=True)
class Portion:
    """The next records of a view: `read` may run in another thread, once."""

    seqs: list[int]
    places: list[RecordPlace]
    rows: list[Row] | None = None
    """What was read; None: not yet, or it was not what it should be."""

    def read(self) -> None:
        """Read and verify. Raises nothing: what cannot be read is None, and looked at again."""
        try:
            rows = [row for place in self.places for row in place.read()]
        except DiskError:
            return
        if [row[0] for row in rows] == self.seqs:
            self.rows = rows


class StoreView:
    """See the module. Made by `Contents.view`; `close` ends it."""

    def __init__(self, index: StoreIndex, records: Records) -> None:
        self.first_seq = index.first
        self.last_seq = index.last
        self._lost = index.lost.seqs
        """What is damaged now: it may be put back while the view is open."""
        self._deleted = index.deleted.copy()
        self._records = records
        self._at = index.first
        self._open = True
        records.hold()

    def next_portion(self, bytes_aimed: int) -> Portion | None:
        """What comes next, ascending: at least one record, and no more than one if it alone passes
        `bytes_aimed`. None at the end. Raises Damaged in front of a record that is."""
        assert self._open, "a view that was closed shows nothing"
        seqs = self._deleted.absent(self._at, self.last_seq, SEQS_MAX)
        if not seqs:
            return None
        bad = self._lost.next_present(seqs[0])
        if bad is not None and bad <= seqs[-1]:
            seqs = seqs[: seqs.index(bad)]
            if not seqs:
                raise self._damage(bad, self._lost.next_absent(bad) - 1)
        count = _fitting(self._records.sizes(seqs), bytes_aimed)
        seqs = seqs[:count]
        self._at = seqs[-1] + 1
        return Portion(seqs, self._records.places(seqs))

    def settle(self, portion: Portion) -> list[Row]:
        """The messages of a portion that was read. What had moved meanwhile is read here, now.
        Raises Damaged."""
        if portion.rows is None:
            raws, bad = self._records.read_raw(portion.seqs)
            if bad:
                raise self._damage(bad, bad)
            portion.rows = list(map(record.decode_row, raws))
        return portion.rows

    def rewind(self) -> None:
        """Show all from the begin again."""
        self._at = self.first_seq

    def skip(self, seq: int) -> None:
        """Go on with a sequence."""
        self._at = seq

    def close(self) -> None:
        """Nothing more is read: what was removed meanwhile may go."""
        if self._open:
            self._open = False
            self._records.release()

    def _damage(self, first: int, last: int) -> Damaged:
        told = f"messages {first} to {last} are damaged" if last > first else ""
        return Damaged(
            told or f"message {first} is damaged",
            path=self._records.path_of(first),
            first_seq=first,
            last_seq=last,
        )


def _fitting(sizes: list[int], bytes_aimed: int) -> int:
    for count, size in enumerate(sizes):
        bytes_aimed -= size
        if bytes_aimed < 0:
            return max(count, 1)
    return len(sizes)
