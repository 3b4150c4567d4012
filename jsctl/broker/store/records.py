"""What a stream's store asks of whatever keeps the bytes of its records: memory or files.

Positions and totals are not its business: it is told which sequences are live. Changes are noted
before they count, so that one which raises has changed nothing.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from jsctl.broker.store.frame import Frame
from jsctl.broker.store.index import Facts
from jsctl.broker.store.record import Columns, Row
from jsctl.broker.store.segments.segment import RecordColumns
from jsctl.broker.store.views.places import RecordPlace


class Records(Protocol):
    """The bytes of one stream's messages."""

    # Reading.

    def read(self, seqs: Sequence[int], bytes_max: int) -> tuple[list[Row], int]:
        """Verified records of live sequences, and the first that is damaged (0: none).

        Ends before a damaged one, and before `bytes_max` is passed, but not before the first.
        """

    def read_raw(self, seqs: Sequence[int]) -> tuple[list[bytes], int]:
        """As `read`, the encoded records."""

    def facts(self, seqs: Sequence[int]) -> Iterable[Facts]:
        """What the counters need to forget live records, damaged or not."""

    def tally(self, seqs: Sequence[int]) -> tuple[int, int]:
        """Sums of the sizes and of the checksums of readable records, at least one, ascending."""

    @property
    def totals_known(self) -> bool:
        """Whether all of that was known so far; else totals are not sums."""

    def sizes(self, seqs: Sequence[int]) -> list[int]:
        """What each of these readable records counts, ascending."""

    def time_of(self, seq: int) -> int | None:
        """Time of a live record; None if it is damaged."""

    def path_of(self, seq: int) -> str:
        """Where a record lies, for people."""

    # Views.

    def hold(self) -> None:
        """From now on what is removed stays readable, until each of these calls is taken back."""

    def release(self) -> None:
        """Take one `hold` back."""

    def places(self, seqs: Sequence[int]) -> list[RecordPlace]:
        """Where records are that are live or held, ascending; to be read elsewhere."""

    # Sizes as the stream's limits count them.

    def message_bytes(self, subject: int, headers: int, payload: int) -> int:
        """What a message with parts of these lengths counts."""

    def count_bytes(self, found: Columns) -> int:
        """What the records of a frame that was written count."""

    # Changes.

    def write(self, frame: Frame, mark: int) -> None:
        """Keep a frame; the index is still as before it."""

    def note_lost(self, some: RecordColumns, mark: int) -> None:
        """Remember records that are damaged wherever they come from; the index is still as before
        them. Raises Damaged where nothing can be damaged."""

    def note_removal(self, seqs: Sequence[int], mark: int) -> None:
        """Remember that live records go; raises before anything has changed."""

    def erase(self, seqs: Sequence[int]) -> None:
        """Have bytes go with the next checkpoint, as far as there are some; whoever asks removes
        what is live of them."""

    def note_cut(self, first_seq: int, mark: int) -> None:
        """Remember that all below a sequence goes; raises before anything has changed."""

    def removed(self, seqs: Sequence[int]) -> None:
        """The index has forgotten records: forget their bytes."""

    def truncated(self, first_seq: int, gone: Sequence[int]) -> None:
        """Forget all bytes below a sequence; `gone` were live unless nothing is left."""

    def reset(self) -> None:
        """Forget all bytes and remember the index, which is empty already."""

    def note_state(self, mark: int) -> None:
        """Remember bounds, removed sequences and mark as the index has them now."""

    def restore(self, raws: dict[int, bytes]) -> None:
        """Keep encoded records of live sequences whose bytes were damaged."""
