"""What limits demand to be removed, as pure arithmetic on a store's state.

Every replica asks at the same point of its log, so all remove the same messages.
"""

from collections.abc import Iterable
from typing import Protocol


class Countable(Protocol):
    """What must be known of a store; see `StreamStore`."""

    @property
    def messages(self) -> int:
        """Live messages."""

    @property
    def size_bytes(self) -> int:
        """Their size."""

    @property
    def first_seq(self) -> int:
        """First live sequence."""

    @property
    def last_seq(self) -> int:
        """Last sequence."""

    def live_seqs(self, start: int, stop: int, count: int) -> list[int]:
        """Live sequences in a range."""

    def live_sizes(self, seqs: list[int]) -> list[int]:
        """What each counts in `size_bytes`."""

    def count_for(self, subject: bytes) -> int:
        """Messages of a subject."""

    def oldest_for(self, subject: bytes, count: int) -> list[int]:
        """Its oldest sequences."""


_STEP = 256


def front_to_drop(store: Countable, messages_max: int, bytes_max: int) -> int:
    """The sequence below which everything goes, for limits on the stream as a whole.

    A limit that is not positive is no limit. Returns the first sequence if all may stay.
    """
    excess = store.messages - messages_max if messages_max > 0 else 0
    surplus = store.size_bytes - bytes_max if bytes_max > 0 else 0
    start = store.first_seq
    while (excess > 0 or surplus > 0) and start <= store.last_seq:
        count = excess if surplus <= 0 else _STEP
        seqs = store.live_seqs(start, store.last_seq, count)
        if not seqs:
            break
        if surplus <= 0:
            return seqs[-1] + 1
        for seq, size in zip(seqs, store.live_sizes(seqs), strict=True):
            if excess <= 0 and surplus <= 0:
                break
            excess -= 1
            surplus -= size
            start = seq + 1
    return start


def subjects_to_drop(
    store: Countable, subjects: Iterable[bytes], per_subject_max: int
) -> list[int]:
    """The oldest sequences of subjects that have more messages than allowed; ascending.

    `subjects` are those that just got messages. A limit that is not positive is no limit.
    """
    if per_subject_max <= 0:
        return []
    found: list[int] = []
    for subject in set(subjects):
        excess = store.count_for(subject) - per_subject_max
        if excess > 0:
            found += store.oldest_for(subject, excess)
    found.sort()
    return found
