"""What a stream's leader has promised to its log and not yet seen applied.

Requests are judged by the applied state with this laid over it, so that a message behind one
still in flight sees its sequence, its size, its id and its subject.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from jsctl.broker.jetstream.streams.entries import Messages
from jsctl.broker.store.record import Row
from jsctl.broker.subject.matching import matches

Ack = tuple[bytes, bytes]
"""(reply subject, payload)."""


class Batch:
    """One entry in flight. `acks` may grow until it is applied: retries of its ids join it."""

    __slots__ = ("acks", "bytes", "entry", "ids", "index", "last_id_before", "rows", "timer")

    def __init__(
        self,
        rows: Sequence[Row],
        size: int,
        acks: list[Ack],
        ids: list[bytes],
        last_id_before: bytes,
        entry: Messages | None = None,
        timer: bool = False,
    ) -> None:
        self.index = 0
        self.entry = entry
        """As it will be applied here: who made it need not decode it."""
        self.rows = rows
        self.bytes = size
        self.acks = acks
        self.ids = ids
        """The message id of each row, empty where it has none; [] when no row has one."""
        self.last_id_before = last_id_before
        """The stream's last message id as it was before this batch."""
        self.timer = timer
        """Made by the leader itself because time passed."""


class InFlight:
    """Batches in the order of the log, with what is asked of them at hand."""

    __slots__ = ("_subjects", "batches", "bytes", "ids", "messages")

    def __init__(self) -> None:
        self.batches: deque[Batch] = deque()
        self.messages = 0
        self.bytes = 0
        self.ids: dict[bytes, tuple[int, list[Ack]]] = {}
        """Message id -> (sequence, the acks of its entry)."""
        self._subjects: dict[bytes, list[int]] | None = None

    def add(self, batch: Batch) -> None:
        """A batch was encoded and is about to be proposed."""
        self.batches.append(batch)
        self.messages += len(batch.rows)
        self.bytes += batch.bytes
        if self._subjects is not None:
            self.note(batch.rows)

    def note(self, rows: Iterable[Row]) -> None:
        """Count messages by subject."""
        subjects = self._subjects
        assert subjects is not None
        for row in rows:
            known = subjects.setdefault(row[2], [0, 0])
            known[0] = row[0]
            known[1] += 1

    def subjects(self) -> dict[bytes, list[int]]:
        """Subject -> [last sequence, count]; kept up to date from the first use on."""
        if self._subjects is None:
            self._subjects = {}
            for batch in self.batches:
                self.note(batch.rows)
        return self._subjects

    def last_for(self, pattern: bytes) -> int:
        """The last sequence in flight of a subject or pattern; 0 if there is none."""
        subjects = self.subjects()
        known = subjects.get(pattern)
        if known is not None:
            return known[0]
        if b"*" not in pattern and b">" not in pattern:
            return 0
        found = [known[0] for subject, known in subjects.items() if matches(subject, pattern)]
        return max(found, default=0)

    def count_for(self, subject: bytes) -> int:
        """Messages in flight of a literal subject."""
        known = self.subjects().get(subject)
        return known[1] if known is not None else 0

    def at(self, index: int) -> Batch | None:
        """The batch that the log has at an index."""
        return next((batch for batch in self.batches if batch.index == index), None)

    def applied(self, index: int) -> bool:
        """Forget what the state holds now; whether a timer's batch was among it."""
        timer = False
        while self.batches and 0 < self.batches[0].index <= index:
            batch = self.batches.popleft()
            timer |= batch.timer
            self._forget(batch)
            if self._subjects is not None:
                self._forget_subjects(batch)
        if not self.batches:
            self._subjects = None
        return timer

    def _forget(self, batch: Batch) -> None:
        self.messages -= len(batch.rows)
        self.bytes -= batch.bytes
        for message_id in batch.ids:
            self.ids.pop(message_id, None)

    def _forget_subjects(self, batch: Batch) -> None:
        subjects = self._subjects
        assert subjects is not None
        for row in batch.rows:
            known = subjects[row[2]]
            known[1] -= 1
            if not known[1]:
                del subjects[row[2]]

    def drop_unproposed(self) -> Batch | None:
        """Forget batches that the log did not take; returns the first of them."""
        first = None
        while self.batches and not self.batches[-1].index:
            first = self.batches.pop()
            self._forget(first)
        self._subjects = None
        return first
