"""What a stream's leader has promised to its log and not yet seen applied.

Requests are judged by the applied state with this laid over it, so that a message behind one
still in flight sees its sequence, its size, its id and its subject.
"""

from collections import deque
from collections.abc import Sequence
from itertools import repeat

from jsctl.broker.jetstream.streams.entries import Messages
from jsctl.broker.jetstream.streams.pub_acks import Acks
from jsctl.broker.store.record import Publish, Record
from jsctl.broker.subject.matching import matches

CROWDED_MESSAGES = 50_000
CROWDED_BYTES = 32 << 20
"""With more in flight publishers should wait, until half of it is left."""


class Batch:
    """One entry in flight, with the sequences and subjects of its messages. `acks` may grow until
    it is applied: retries of its ids join it."""

    __slots__ = (
        "acks",
        "bytes",
        "entry",
        "ids",
        "index",
        "last_id_before",
        "seqs",
        "subjects",
        "timer",
    )

    def __init__(
        self,
        seqs: Sequence[int],
        subjects: Sequence[bytes],
        size: int,
        acks: Acks,
        ids: list[bytes],
        last_id_before: bytes,
        entry: Messages | None = None,
        timer: bool = False,
    ) -> None:
        self.index = 0
        self.entry = entry
        """As it will be applied here: who made it need not decode it."""
        self.seqs = seqs
        self.subjects = subjects
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

    __slots__ = ("_subjects", "batches", "bytes", "ended", "ids", "messages", "rest")

    def __init__(self) -> None:
        self.batches: deque[Batch] = deque()
        self.messages = 0
        self.bytes = 0
        self.ids: dict[bytes, tuple[int, Acks]] = {}
        """Message id -> (sequence, the acks of its entry)."""
        self.ended: dict[bytes, int] = {}
        """Subject of a schedule -> the message that ends it."""
        self._subjects: dict[bytes, list[int]] | None = None
        self.rest: list[Publish] = []
        """Captured, and to be looked at in the next turn: this one has searched enough."""

    @property
    def crowded(self) -> bool:
        """Whether publishers should wait."""
        messages = self.messages + len(self.rest)
        return self.bytes > CROWDED_BYTES or messages > CROWDED_MESSAGES

    @property
    def has_room(self) -> bool:
        """Whether those that wait may go on."""
        return (
            self.bytes <= CROWDED_BYTES // 2
            and len(self.rest) <= CROWDED_MESSAGES // 2 - self.messages
        )

    def add(self, batch: Batch) -> None:
        """A batch was encoded and is about to be proposed."""
        self.batches.append(batch)
        self.messages += len(batch.seqs)
        self.bytes += batch.bytes
        if self._subjects is not None:
            self._note(batch)

    def _note(self, batch: Batch) -> None:
        """Count messages by subject."""
        subjects = self._subjects
        assert subjects is not None
        for seq, subject in zip(batch.seqs, batch.subjects, strict=True):
            known = subjects.setdefault(subject, [0, 0])
            known[0] = seq
            known[1] += 1

    def subjects(self) -> dict[bytes, list[int]]:
        """Subject -> [last sequence, count]; kept up to date from the first use on."""
        if self._subjects is None:
            self._subjects = {}
            for batch in self.batches:
                self._note(batch)
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

    def holder(self, seq: int) -> Batch | None:
        """The entry in flight that a message is in."""
        found = (one for one in self.batches if one.seqs and one.seqs[0] <= seq <= one.seqs[-1])
        return next(found, None)

    def record(self, seq: int) -> Record | None:
        """A message in flight that was published."""
        for batch in self.batches:
            if batch.entry is not None and batch.seqs[0] <= seq <= batch.seqs[-1]:
                return next((one for one in batch.entry.frame.records if one.seq == seq), None)
        return None

    def count_for(self, subject: bytes) -> int:
        """Messages in flight of a literal subject."""
        known = self.subjects().get(subject)
        return known[1] if known is not None else 0

    def at(self, index: int) -> Batch | None:
        """The batch that the log has at an index."""
        return next((batch for batch in self.batches if batch.index == index), None)

    def is_plain(self, index: int) -> bool:
        """Whether the log has messages at an index that were made here, and of which nothing is
        told but that they are stored."""
        batch = self.at(index)
        return batch is not None and batch.entry is not None and batch.acks.is_plain

    def applied(self, index: int) -> bool:
        """Forget what the state holds now; whether a timer's batch was among it."""
        timer = False
        while self.batches and 0 < self.batches[0].index <= index:
            batch = self.batches.popleft()
            timer |= batch.timer
            self._forget(batch)
            if self._subjects is not None:
                self._forget_subjects(batch)
            if self.ended and batch.seqs:
                last = batch.seqs[-1]
                self.ended = {one: seq for one, seq in self.ended.items() if seq > last}
        if not self.batches:
            self._subjects = None
        return timer

    def _forget(self, batch: Batch) -> None:
        self.messages -= len(batch.seqs)
        self.bytes -= batch.bytes
        # All of them at once: it takes a third of what a loop takes.
        deque(map(self.ids.pop, batch.ids, repeat(None)), 0)

    def _forget_subjects(self, batch: Batch) -> None:
        subjects = self._subjects
        assert subjects is not None
        for subject in batch.subjects:
            known = subjects[subject]
            known[1] -= 1
            if not known[1]:
                del subjects[subject]

    def take_back(self, next_seq: int) -> None:
        """Schedules do not end with messages from this sequence on."""
        if self.ended:
            self.ended = {one: seq for one, seq in self.ended.items() if seq < next_seq}

    def drop_unproposed(self) -> Batch | None:
        """Forget batches that the log did not take; returns the first of them."""
        first = None
        while self.batches and not self.batches[-1].index:
            first = self.batches.pop()
            self._forget(first)
        self._subjects = None
        return first
