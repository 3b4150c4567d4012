"""Which sequences a subject has: the one index by subject, kept in memory.

A subject with one message costs a dictionary slot; one with more holds its sequences in an array,
eight bytes each, and one with many packs them (`sequences`): one to four bytes each, or nothing
where they are a range. Removal at the front, by far the most common, moves a head; removal inside
only notes a hole, so that nothing is shifted for every acknowledged message.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from jsctl.broker.store.sequences.packed import (
    BLOCK_SEQS,
    TAIL_SEQS_MAX,
    PackedSeqs,
    Steps,
    packed,
)
from jsctl.broker.subject.matching import Filters

_HOLES_MIN = 64
_MERGED_MIN = 4096
_JUMP_SUBJECTS = 16
"""Up to this many matching subjects, sequences are merged rather than messages scanned."""


class Positions:
    """Ascending sequences of one subject. Invariant: both ends are live, holes lie between."""

    __slots__ = ("head", "holes", "seqs")

    def __init__(self, seqs: Iterable[int]) -> None:
        self.seqs: array[int] | PackedSeqs = array("Q", seqs)
        self.head = 0
        self.holes: list[int] = []

    def count(self) -> int:
        """Live sequences."""
        return len(self.seqs) - self.head - len(self.holes)

    def extend(self, seqs: Sequence[int]) -> None:
        """Note sequences behind all others."""
        own = self.seqs
        own.extend(array("Q", seqs))
        if len(own) > TAIL_SEQS_MAX and isinstance(own, array):
            self.pack()

    def pack(self) -> None:
        """Have many in less room."""
        self.seqs = PackedSeqs(self.seqs)

    def _left(self, seq: int) -> int:
        """Where a sequence is, or would be; not before the head."""
        seqs = self.seqs
        if isinstance(seqs, PackedSeqs):
            return max(self.head, seqs.left(seq))
        return bisect_left(seqs, seq, self.head)

    def remove(self, seq: int) -> bool:
        """Forget one sequence; whether it was live. The caller drops an emptied object."""
        seqs, holes = self.seqs, self.holes
        if seqs[self.head] == seq:
            self._advance()
            return True
        if seqs[-1] == seq:
            seqs.pop()
            while holes and seqs and seqs[-1] == holes[-1]:
                seqs.pop()
                holes.pop()
            return True
        at = self._left(seq)
        if at >= len(seqs) or seqs[at] != seq:
            return False
        hole = bisect_left(holes, seq)
        if hole < len(holes) and holes[hole] == seq:
            return False
        holes.insert(hole, seq)
        if len(holes) > _HOLES_MIN + (len(seqs) - self.head) // 4:
            self._rebuild()
        return True

    def insert(self, seq: int) -> None:
        """Note a sequence anywhere: one that was gone, or was never there."""
        hole = bisect_left(self.holes, seq)
        if hole < len(self.holes) and self.holes[hole] == seq:
            del self.holes[hole]
            return
        if seq < self.seqs[self.head]:
            # What is gone below the head would stand behind it.
            self._drop_front()
        at = self._left(seq)
        assert at == len(self.seqs) or self.seqs[at] != seq, "a sequence is added once"
        self.seqs.insert(at, seq)

    def _drop_front(self) -> None:
        seqs = self.seqs
        if isinstance(seqs, PackedSeqs):
            seqs.drop(self.head)
        else:
            del seqs[: self.head]
        self.head = 0

    def _advance(self) -> None:
        seqs, holes = self.seqs, self.holes
        self.head += 1
        passed = 0
        # An emptied one has no holes left: the last sequence is live.
        while passed < len(holes) and seqs[self.head] == holes[passed]:
            self.head += 1
            passed += 1
        if passed:
            del holes[:passed]
        if isinstance(seqs, PackedSeqs):
            if self.head >= BLOCK_SEQS:
                self._drop_front()
        elif self.head > 1024 and self.head * 2 > len(seqs):
            self._drop_front()

    def below(self, bound: int) -> list[int]:
        """Live sequences below a bound, ascending."""
        seqs = self.seqs[self.head : self._left(bound)].tolist()
        holes = self.holes[: bisect_left(self.holes, bound)]
        if not holes:
            return seqs
        dead = set(holes)
        return [seq for seq in seqs if seq not in dead]

    def cut(self, bound: int) -> None:
        """Forget all below a bound. The caller drops an emptied object."""
        at = self._left(bound)
        if at > self.head:
            del self.holes[: bisect_left(self.holes, bound)]
            self.head = at - 1
            self._advance()

    def newest(self, count: int) -> list[int]:
        """Up to `count` live sequences from the end, at least one, ascending."""
        dead = set(self.holes)
        at = max(self.head, len(self.seqs) - count - len(dead))
        return [seq for seq in self.seqs[at:] if seq not in dead][-count:]

    def _rebuild(self) -> None:
        dead = set(self.holes)
        live = (seq for seq in islice(self.seqs, self.head, None) if seq not in dead)
        packs = isinstance(self.seqs, PackedSeqs)
        self.seqs = PackedSeqs(live) if packs else array("Q", live)
        self.head = 0
        self.holes = []

    def count_from(self, seq: int) -> int:
        """Live sequences at or after `seq`."""
        above = len(self.seqs) - self._left(seq)
        return above - (len(self.holes) - bisect_left(self.holes, seq))

    def at_or_after(self, seq: int) -> int | None:
        """The first live sequence at or after `seq`."""
        at = self._left(seq)
        while at < len(self.seqs):
            if not self._is_hole(self.seqs[at]):
                return self.seqs[at]
            at += 1
        return None

    def at_or_before(self, seq: int) -> int | None:
        """The last live sequence at or before `seq`."""
        at = self._left(seq + 1) - 1
        while at >= self.head:
            if not self._is_hole(self.seqs[at]):
                return self.seqs[at]
            at -= 1
        return None

    def _is_hole(self, seq: int) -> bool:
        at = bisect_left(self.holes, seq)
        return at < len(self.holes) and self.holes[at] == seq

    def some_from(self, seq: int, count: int) -> list[int]:
        """Up to `count` live sequences at or after `seq`."""
        at = self._left(seq)
        if not self.holes:
            return self.seqs[at : at + count].tolist()
        found: list[int] = []
        dead = set(self.holes)
        while len(found) < count and at < len(self.seqs):
            chunk = self.seqs[at : at + count + len(dead)]
            at += len(chunk)
            found.extend([s for s in chunk if s not in dead])
        return found[:count]

    def live(self) -> list[int]:
        """All live sequences."""
        dead = set(self.holes)
        rest = self.seqs[self.head :].tolist()
        return [s for s in rest if s not in dead] if dead else rest

    def blocks(self) -> Iterator[range | Steps]:
        """All live sequences, packed."""
        if self.holes:
            self._rebuild()
        seqs = self.seqs
        if isinstance(seqs, PackedSeqs):
            seqs.drop(self.head)
            self.head = 0
            return seqs.blocks()
        return iter((packed(seqs[self.head :]),))


class SubjectIndex:
    """Subject -> live sequences."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[bytes, int | Positions] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._entries)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()

    def add_many(self, seqs: Sequence[int], subjects: Sequence[bytes]) -> None:
        """Note that these sequences have these subjects."""
        entries = self._entries
        get = entries.get
        if len(subjects) > 1 and subjects.count(subjects[0]) == len(subjects):
            self._add_alike(seqs, subjects[0])
            return
        for seq, subject in zip(seqs, subjects, strict=True):
            entry = get(subject)
            if entry is None:
                entries[subject] = seq
            elif isinstance(entry, Positions):
                own = entry.seqs
                own.append(seq)
                if type(own) is array and len(own) > TAIL_SEQS_MAX:
                    entry.pack()
            else:
                entries[subject] = Positions((entry, seq))

    def _add_alike(self, seqs: Sequence[int], subject: bytes) -> None:
        entry = self._entries.get(subject)
        if isinstance(entry, Positions):
            entry.extend(seqs)
            return
        made = self._entries[subject] = Positions(() if entry is None else (entry,))
        made.extend(seqs)

    def insert(self, subject: bytes, seq: int) -> None:
        """Note one sequence that need not be the subject's newest."""
        entry = self._entries.get(subject)
        if entry is None:
            self._entries[subject] = seq
        elif isinstance(entry, Positions):
            entry.insert(seq)
        else:
            assert entry != seq, "a sequence is added once"
            self._entries[subject] = Positions(sorted((entry, seq)))

    def put_singles(self, subjects: Iterable[bytes], seqs: Iterable[int]) -> None:
        """Set the one sequence of each of these."""
        self._entries.update(zip(subjects, seqs, strict=True))

    def put(self, subject: bytes, blocks: Sequence[range | Steps]) -> None:
        """Set a subject's sequences, at least two."""
        entry = self._entries[subject] = Positions(())
        if sum(map(len, blocks)) > TAIL_SEQS_MAX:
            entry.seqs = PackedSeqs.of_blocks(blocks)
            return
        for block in blocks:
            entry.seqs.extend(block if isinstance(block, range) else block.unpacked())

    def singles(self) -> dict[bytes, int]:
        """The subjects that have one sequence."""
        return {name: seq for name, seq in self._entries.items() if type(seq) is int}

    def others(self) -> Iterator[tuple[bytes, Iterator[range | Steps]]]:
        """Those that have more, and these."""
        if Positions not in set(map(type, self._entries.values())):
            return
        for name, entry in self._entries.items():
            if isinstance(entry, Positions):
                yield name, entry.blocks()

    def remove(self, subject: bytes, seq: int) -> bool:
        """Forget one sequence of a subject; whether it was there."""
        entry = self._entries.get(subject)
        if entry is None:
            return False
        if isinstance(entry, int):
            if entry == seq:
                del self._entries[subject]
            return entry == seq
        removed = entry.remove(seq)
        if removed and entry.count() == 1:
            self._entries[subject] = entry.seqs[entry.head]
        return removed

    def excess(self, subjects: Iterable[bytes], limit: int) -> list[tuple[bytes, int]]:
        """Those that have more than `limit` messages, at least one, and how many more."""
        found: list[tuple[bytes, int]] = []
        get = self._entries.get
        for subject in subjects:
            entry = get(subject)
            if isinstance(entry, Positions):
                over = entry.count() - limit
                if over > 0:
                    found.append((subject, over))
        return found

    def behind_oldest(self, counts: Iterable[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
        """With each subject the bound below which it has that many messages, at least one."""
        found: list[tuple[bytes, int]] = []
        get = self._entries.get
        for subject, count in counts:
            entry = get(subject)
            if isinstance(entry, Positions):
                oldest = entry.seqs[entry.head] if count == 1 else entry.some_from(0, count)[-1]
                found.append((subject, oldest + 1))
            elif entry is not None:
                found.append((subject, entry + 1))
        return found

    def below(self, bounds: Iterable[tuple[bytes, int]]) -> list[int]:
        """All sequences of subjects below each one's bound, ascending."""
        found: list[int] = []
        get = self._entries.get
        for subject, bound in bounds:
            entry = get(subject)
            if isinstance(entry, Positions):
                if entry.seqs[entry.head] < bound:
                    found += entry.below(bound)
            elif entry is not None and entry < bound:
                found.append(entry)
        found.sort()
        return found

    def cut(self, bounds: Iterable[tuple[bytes, int]]) -> None:
        """Forget all sequences of subjects below each one's bound."""
        entries = self._entries
        get = entries.get
        for subject, bound in bounds:
            entry = get(subject)
            if isinstance(entry, Positions):
                if entry.seqs[-1] < bound:
                    del entries[subject]
                elif entry.seqs[entry.head] < bound:
                    entry.cut(bound)
                    if entry.count() == 1:
                        entries[subject] = entry.seqs[entry.head]
            elif entry is not None and entry < bound:
                del entries[subject]

    def replaced(self, subjects: Iterable[bytes]) -> tuple[dict[bytes, int], list[int]]:
        """The last sequences of those that have several, and all others of theirs, ascending."""
        last, found, get = dict[bytes, int](), list[int](), self._entries.get
        for subject in subjects:
            entry = get(subject)
            if type(entry) is Positions:
                seqs, head = entry.seqs, entry.head
                newest = last[subject] = seqs[-1]
                if len(seqs) - head == 2:
                    found.append(seqs[head])
                else:
                    found += entry.below(newest)
        found.sort()
        return last, found

    def set_last(self, last: dict[bytes, int]) -> None:
        """Forget all other sequences of these subjects."""
        self._entries.update(last)

    def newest_from(self, subjects: Iterable[bytes], count: int) -> int:
        """From which sequence on these subjects have `count` messages, or else all of them."""
        newest: list[int] = []
        for subject in subjects:
            entry = self._entries.get(subject)
            if isinstance(entry, Positions):
                newest += entry.newest(count)
            elif entry is not None:
                newest.append(entry)
            if len(newest) > 2 * count + _MERGED_MIN:
                newest = sorted(newest)[-count:]
        return min(sorted(newest)[-count:], default=0)

    def select(self, filters: Filters) -> list[bytes]:
        """The subjects that pass the filters."""
        entries = self._entries
        if filters.only_literals:
            return [one for one in filters.literals if one in entries]
        return filters.select(entries)

    def names(self, filters: Filters) -> list[bytes]:
        """All subjects; only those that pass where that takes no look at all of them."""
        return self.select(filters) if filters.only_literals else list(self._entries)

    def count(self, subject: bytes) -> int:
        """Live messages of a subject."""
        entry = self._entries.get(subject)
        if entry is None:
            return 0
        return 1 if isinstance(entry, int) else entry.count()

    def counts(self, filters: Filters) -> dict[bytes, int]:
        """Live messages of each subject that passes."""
        count = self.count
        return {subject: count(subject) for subject in self.select(filters)}

    def live(self, subject: bytes) -> list[int]:
        """All sequences of a subject, ascending."""
        entry = self._entries.get(subject)
        if entry is None:
            return []
        return [entry] if isinstance(entry, int) else entry.live()

    def last(self, subject: bytes) -> int | None:
        """The newest sequence of a subject."""
        entry = self._entries.get(subject)
        return entry.seqs[-1] if isinstance(entry, Positions) else entry

    def lasts(self, filters: Filters) -> list[int]:
        """The newest sequence of each subject that passes, in no order."""
        found = map(self._entries.__getitem__, self.select(filters))
        return [one.seqs[-1] if isinstance(one, Positions) else one for one in found]

    def first(self, subject: bytes) -> int | None:
        """The oldest sequence of a subject."""
        entry = self._entries.get(subject)
        return entry.seqs[entry.head] if isinstance(entry, Positions) else entry

    def last_up_to(self, subject: bytes, seq: int) -> int | None:
        """The newest sequence of a subject that is not above `seq`."""
        entry = self._entries.get(subject)
        if isinstance(entry, Positions):
            return entry.at_or_before(seq)
        return entry if entry is not None and entry <= seq else None

    def newest_of(self, subjects: Iterable[bytes], up_to: int) -> list[int]:
        """The newest sequence, not above `up_to`, of each of these that has one, in no order."""
        found = [
            one.seqs[-1] if isinstance(one, Positions) else one
            for one in map(self._entries.get, subjects)
            if one is not None
        ]
        return found if max(found, default=0) <= up_to else self._older(subjects, up_to)

    def _older(self, subjects: Iterable[bytes], up_to: int) -> list[int]:
        found = [self.last_up_to(subject, up_to) for subject in subjects]
        return [seq for seq in found if seq is not None]

    def count_from(self, filters: Filters, seq: int) -> int:
        """Live messages at or after `seq` that pass."""
        total = 0
        for subject in self.select(filters):
            entry = self._entries[subject]
            if isinstance(entry, Positions):
                total += entry.count_from(seq)
            else:
                total += entry >= seq
        return total

    def last_from(self, filters: Filters, seq: int) -> int:
        """How many subjects that pass have their newest message at or after `seq`."""
        last = self.last
        return sum((last(subject) or 0) >= seq for subject in self.select(filters))

    def is_selective(self, filters: Filters) -> bool:
        """Whether looking subjects up beats looking at messages one after the other."""
        return filters.only_literals and len(filters.literals) <= _JUMP_SUBJECTS

    def next_seqs(self, subjects: Iterable[bytes], seq: int, count: int) -> list[int]:
        """Up to `count` sequences at or after `seq` of these subjects, merged ascending."""
        found: list[int] = []
        for subject in subjects:
            entry = self._entries.get(subject)
            if isinstance(entry, Positions):
                if entry.seqs[-1] >= seq:
                    found.extend(entry.some_from(seq, count))
            elif entry is not None and entry >= seq:
                found.append(entry)
        found.sort()
        return found[:count]

    def next_seq(self, subjects: Iterable[bytes], seq: int) -> int | None:
        """The first sequence at or after `seq` of any of these subjects."""
        best: int | None = None
        for subject in subjects:
            entry = self._entries.get(subject)
            found = entry
            if isinstance(entry, Positions):
                found = entry.at_or_after(seq) if entry.seqs[-1] >= seq else None
            if isinstance(found, int) and found >= seq and (best is None or found < best):
                best = found
        return best
