"""The part of a group's log that is in memory, and how much of it is durable and committed.

    base_index < ... <= commit ... <= last_index        stable <= last_index

Entries at or below `base_index` were compacted; of them only (base_index, base_term) is known.
`stable` is the last index known to be durable here; it moves by `persisted` only. The log knows
nothing of peers, members or messages.
"""

from collections.abc import Sequence

from jsctl.broker.raft.types import ENTRY_OVERHEAD_BYTES, Entry, Index, Term


class RaftLog:
    """Entries base_index + 1 .. last_index. Invariant: contiguous, terms never fall."""

    __slots__ = ("base_index", "base_term", "commit", "entries", "last_index", "stable")

    def __init__(
        self, base_index: Index, base_term: Term, entries: Sequence[Entry], commit: Index
    ) -> None:
        """Take over recovered entries, all of them durable. Commit may be below the base."""
        self.base_index = base_index
        self.base_term = base_term
        self.entries: list[Entry] = []
        self.last_index = base_index
        self.append(entries)
        self.stable = self.last_index
        self.commit = max(commit, base_index)
        assert self.commit <= self.last_index, "committed beyond the end of the log"

    @property
    def last_term(self) -> Term:
        """Term of the last entry."""
        return self.entries[-1].term if self.entries else self.base_term

    def term_at(self, index: Index) -> Term | None:
        """Term of an entry; None when it was compacted or is not there."""
        offset = index - self.base_index
        if offset <= 0:
            return self.base_term if offset == 0 else None
        return self.entries[offset - 1].term if index <= self.last_index else None

    def append(self, entries: Sequence[Entry]) -> None:
        """Add entries at the end; they must continue it."""
        if not entries:
            return
        expected = self.last_index + 1
        assert entries[0].index == expected, "gap in the log"
        assert entries[-1].index == expected + len(entries) - 1, "gap in appended entries"
        assert entries[0].term >= self.last_term, "terms must not fall"
        self.entries.extend(entries)
        self.last_index = entries[-1].index

    def truncate(self, from_index: Index) -> None:
        """Drop `from_index` and all behind it. Invariant: committed entries stay."""
        assert from_index > self.commit, "truncation of committed entries"
        assert from_index <= self.last_index, "nothing to truncate"
        del self.entries[from_index - self.base_index - 1 :]
        self.last_index = from_index - 1
        if self.stable > self.last_index:
            self.stable = self.last_index

    def first_conflict(self, entries: Sequence[Entry]) -> int:
        """Position in `entries` of the first one that is not in the log; len when all are.

        The entry before the first must be known to match.
        """
        if not entries or entries[0].index > self.last_index:
            return 0
        for position, entry in enumerate(entries):
            if self.term_at(entry.index) != entry.term:
                return position
        return len(entries)

    def last_not_above(self, index: Index, term: Term) -> tuple[Index, Term]:
        """Last (index, term) at or before `index` whose term is not above `term`.

        Where two logs disagree about the term of an entry, everything in the run of the higher
        term is known not to match, so a probe can leap over it (raft paper, end of 5.3). Ends at
        the base, which always matches.
        """
        index = min(index, self.last_index)
        while index > self.base_index:
            found = self.entries[index - self.base_index - 1].term
            if found <= term:
                return index, found
            index -= 1
        return self.base_index, self.base_term

    def slice(self, first: Index, last: Index) -> list[Entry]:
        """Entries first .. last, both included; all must be in memory."""
        assert self.base_index < first and last <= self.last_index, "entries not in memory"
        start = first - self.base_index - 1
        return self.entries[start : start + last - first + 1]

    def slice_bytes(self, first: Index, bytes_max: int, count_max: int) -> tuple[list[Entry], int]:
        """Entries from `first` on within the limits, at least one; and their size in bytes."""
        start = first - self.base_index - 1
        assert start >= 0, "entries not in memory"
        total = 0
        end = start
        entries = self.entries
        stop = min(len(entries), start + count_max)
        while end < stop:
            total += len(entries[end].data) + ENTRY_OVERHEAD_BYTES
            if total > bytes_max and end > start:
                total -= len(entries[end].data) + ENTRY_OVERHEAD_BYTES
                break
            end += 1
        return entries[start:end], total

    def newest(self, behind: Index, bytes_max: int, count_max: int) -> tuple[Index, int]:
        """The entries behind an index, or the newest of them within the limits: what they follow,
        and their size in bytes."""
        start = index = self.last_index
        total = 0
        while index > max(behind, self.base_index, start - count_max):
            size = len(self.entries[index - self.base_index - 1].data) + ENTRY_OVERHEAD_BYTES
            if total + size > bytes_max:
                break
            total += size
            index -= 1
        return index, total

    def persisted(self, index: Index, term: Term) -> bool:
        """Note that (index, term) is durable; False when it was replaced meanwhile.

        The same (index, term) may have been written, truncated and written again (ABA): it is
        the same entry then, and no ack or commit of this node's own term can rest on the early
        notice, because those wait for an entry that was written later.
        """
        if index <= self.stable or self.term_at(index) != term:
            return False
        self.stable = index
        return True

    def compact(self, index: Index, term: Term) -> None:
        """Forget entries up to `index`, which stay committed."""
        assert self.base_index <= index <= self.commit, "only committed entries are compacted"
        assert self.term_at(index) == term
        del self.entries[: index - self.base_index]
        self.base_index, self.base_term = index, term

    def restart(self, index: Index, term: Term) -> Index | None:
        """Stand at (index, term) after a state transfer, keeping what provably follows it.

        Returns the first dropped index, None when nothing had to be dropped.
        """
        assert index > self.commit, "state transfer into the past"
        if self.term_at(index) == term:
            self.commit = index
            self.compact(index, term)
            return None
        dropped = self.commit + 1 if self.last_index > self.commit else None
        self.stable = min(self.stable, self.commit)
        self.entries = []
        self.base_index = self.commit = self.last_index = index
        self.base_term = term
        return dropped
