"""Which sequences a subject has: the one index by subject, kept in memory.

A subject with one message costs a dictionary slot; one with more has `Positions`: eight bytes each,
or one to four where there are many, or nothing where they are a range.
"""

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field

from jsctl.broker.store.sequences.packed import TAIL_SEQS_MAX, PackedSeqs, Steps
from jsctl.broker.store.sequences.positions import Positions
from jsctl.broker.store.sequences.shared import SharedSeqs
from jsctl.broker.subject.matching import Filters
from jsctl.broker.subject.ordered import RUN_MAX, OrderedSubjects
from jsctl.dataclass import dataclass

_MERGED_MIN = 4096
_ORDERED_MIN = 4096
"""From so many subjects on, a look through all of them takes longer than to keep them in order."""
_FEW = 8
"""Those that have a pattern's tokens are looked up where they are at most this part of all."""
_CHANGED_MAX = 8192
"""When more change, what was found is not brought up to date any more, but looked for anew."""
_JUMP_SUBJECTS = 16
"""Up to this many matching subjects, sequences are merged rather than messages scanned."""


@dataclass(slots=True)
class KnownNewest:
    """The newest sequence, not above `up_to`, of each subject that passes; None until found."""

    filters: Filters
    up_to: int = 0
    seqs: SharedSeqs | None = None
    changed: list[bytes] = field(default_factory=list)
    """Subjects that got or lost messages since, or a little before; some twice."""


class SubjectIndex:
    """Subject -> live sequences."""

    __slots__ = ("_entries", "_ordered", "newest", "searched")

    def __init__(self) -> None:
        self._entries: dict[bytes, int | Positions] = {}
        self._ordered: OrderedSubjects | None = None
        """All subjects, and some that are gone; None where nobody looked for a pattern."""
        self.searched = 0
        """How many were held against patterns."""
        self.newest: KnownNewest | None = None
        """What somebody looks for, or did last: many ask for the same at once."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._entries)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._ordered = self.newest = None

    def _note(self, subjects: Iterable[bytes]) -> None:
        newest = self.newest
        if newest is not None:
            newest.changed += subjects
            if len(newest.changed) > _CHANGED_MAX:
                self.newest = None

    def add_many(self, seqs: Sequence[int], subjects: Sequence[bytes]) -> None:
        """Note that these sequences have these subjects."""
        entries = self._entries
        get = entries.get
        if self.newest is not None:
            self._note(subjects)
        if len(subjects) > 1 and subjects.count(subjects[0]) == len(subjects):
            self._add_alike(seqs, subjects[0])
            return
        ordered = self._ordered
        for seq, subject in zip(seqs, subjects, strict=True):
            entry = get(subject)
            if entry is None:
                entries[subject] = seq
                if ordered is not None:
                    ordered.fresh.append(subject)
            elif isinstance(entry, Positions):
                own = entry.seqs
                own.append(seq)
                if type(own) is array and len(own) > TAIL_SEQS_MAX:
                    entry.pack()
            else:
                entries[subject] = Positions((entry, seq))
        if ordered is not None:
            self._look_at_order(ordered)

    def _look_at_order(self, ordered: OrderedSubjects) -> None:
        """The order is given up where nobody looks any more, or most of it is gone."""
        if len(ordered.fresh) > RUN_MAX or len(ordered) > 2 * len(self._entries) + RUN_MAX:
            self._ordered = None

    def _add_alike(self, seqs: Sequence[int], subject: bytes) -> None:
        entry = self._entries.get(subject)
        if isinstance(entry, Positions):
            entry.extend(seqs)
            return
        if entry is None:
            self._came(subject)
        made = self._entries[subject] = Positions(() if entry is None else (entry,))
        made.extend(seqs)

    def _came(self, subject: bytes) -> None:
        if self._ordered is not None:
            self._ordered.fresh.append(subject)

    def insert(self, subject: bytes, seq: int) -> None:
        """Note one sequence that need not be the subject's newest."""
        self._note((subject,))
        entry = self._entries.get(subject)
        if entry is None:
            self._entries[subject] = seq
            self._came(subject)
        elif isinstance(entry, Positions):
            entry.insert(seq)
        else:
            assert entry != seq, "a sequence is added once"
            self._entries[subject] = Positions(sorted((entry, seq)))

    def put_singles(self, subjects: Iterable[bytes], seqs: Iterable[int]) -> None:
        """Set the one sequence of each of these."""
        self._entries.update(zip(subjects, seqs, strict=True))
        self._ordered = self.newest = None

    def put(self, subject: bytes, blocks: Sequence[range | Steps]) -> None:
        """Set a subject's sequences, at least two."""
        self._ordered = self.newest = None
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
        self._note((subject,))
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
        if self.newest is not None:
            bounds = list(bounds)
            self._note([subject for subject, _ in bounds])
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
        if self._ordered is not None:
            self._look_at_order(self._ordered)

    def cut_front(self, bound: int) -> None:
        """Forget all sequences below."""
        entries = self._entries
        self._note(entries)
        gone: list[bytes] = []
        for subject, entry in entries.items():
            if isinstance(entry, int):
                if entry < bound:
                    gone.append(subject)
            elif entry.seqs[-1] < bound:
                gone.append(subject)
            elif entry.seqs[entry.head] < bound:
                entry.cut(bound)
                if entry.count() == 1:
                    entries[subject] = entry.seqs[entry.head]
        if 2 * len(gone) > len(entries):
            # A dictionary never takes less room than it did.
            self._entries = {
                name: entry
                for name, entry in entries.items()
                if (entry if isinstance(entry, int) else entry.seqs[-1]) >= bound
            }
            self._ordered = None
            return
        for subject in gone:
            del entries[subject]
        if self._ordered is not None:
            self._look_at_order(self._ordered)

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
        """Forget all other sequences of these subjects, which are not their newest."""
        self._entries.update(last)

    def purged(self, filters: Filters, bound: int, keep: int) -> list[tuple[bytes, int]]:
        """The subjects that pass and have messages below `bound`, or below where the newest `keep`
        of all that pass begin, if that is lower; each with that bound."""
        names, entries = self._having(filters)
        if keep:
            bound = min(bound, _newest_from(entries, keep))
        return [
            (name, bound)
            for name, entry in zip(names, entries, strict=True)
            if (entry.seqs[entry.head] if isinstance(entry, Positions) else entry) < bound
        ]

    def crowded(self, limit: int) -> list[bytes]:
        """The subjects that have more than `limit` messages, at least one."""
        return [
            name
            for name, entry in self._entries.items()
            if isinstance(entry, Positions) and entry.count() > limit
        ]

    def select(self, filters: Filters) -> list[bytes]:
        """The subjects that pass the filters."""
        entries = self._entries
        if filters.only_literals:
            return [one for one in filters.literals if one in entries]
        few = self._few(filters)
        return self.passing(filters, entries if few is None else few)

    def _having(self, filters: Filters) -> tuple[list[bytes], Collection[int | Positions]]:
        """The subjects that pass, and the sequences of each, in the same order. Those of very many
        are not looked up, but gone through."""
        names, entries = self.select(filters), self._entries
        if filters.only_literals or 2 * len(names) < len(entries):
            return names, [entries[name] for name in names]
        if len(names) == len(entries):
            return names, entries.values()
        return names, list(filters.belonging(entries.values(), entries))

    def passing(self, filters: Filters, some: Collection[bytes]) -> list[bytes]:
        """Those of some subjects that pass."""
        self.searched += len(some)
        return filters.select(some)

    def _some(self, filters: Filters, most: int) -> list[bytes]:
        if filters.only_literals:
            return self.select(filters)[:most]
        few = self._few(filters)
        looked_at = self._entries if few is None else few
        self.searched += most if filters.is_all else len(looked_at)
        return filters.first(looked_at, most)

    def _few(self, filters: Filters) -> list[bytes] | None:
        """Those that have what the patterns do; None if these are a large part of all."""
        entries = self._entries
        if filters.is_all or len(entries) < _ORDERED_MIN:
            return None
        if self._ordered is not None:
            self._look_at_order(self._ordered)
        if self._ordered is None:
            self._ordered = OrderedSubjects(entries)
        found = self._ordered.passing(filters.patterns, len(entries) // _FEW)
        return None if found is None else [one for one in dict.fromkeys(found) if one in entries]

    def candidates(self, filters: Filters) -> list[bytes]:
        """Subjects among which are all that pass: as few as can be found without a look at all of
        them."""
        if filters.only_literals:
            return self.select(filters)
        few = self._few(filters)
        return list(self._entries) if few is None else few

    def count(self, subject: bytes) -> int:
        """Live messages of a subject."""
        entry = self._entries.get(subject)
        if entry is None:
            return 0
        return 1 if isinstance(entry, int) else entry.count()

    def counts(self, filters: Filters) -> dict[bytes, int]:
        """Live messages of each subject that passes."""
        return {
            name: entry.count() if isinstance(entry, Positions) else 1
            for name, entry in zip(*self._having(filters), strict=True)
        }

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

    def lasts(self, filters: Filters, most: int | None = None) -> list[int]:
        """The newest sequence of each subject that passes, in no order; of the first `most` of
        them."""
        found: Iterable[int | Positions]
        if most is None:
            _, found = self._having(filters)
        else:
            found = map(self._entries.__getitem__, self._some(filters, most))
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
        _, entries = self._having(filters)
        return sum(
            [
                entry.count_from(seq) if isinstance(entry, Positions) else entry >= seq
                for entry in entries
            ]
        )

    def last_from(self, filters: Filters, seq: int) -> int:
        """How many subjects that pass have their newest message at or after `seq`."""
        return sum([last >= seq for last in self.lasts(filters)])

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


def _newest_from(entries: Collection[int | Positions], count: int) -> int:
    """From which sequence on these have `count` of them, at least one, or else all."""
    newest, most = list[int](), 2 * count + _MERGED_MIN
    single = [entry for entry in entries if type(entry) is int]
    for at in range(0, len(single), most):
        newest = sorted(newest + single[at : at + most])[-count:]
    for entry in entries if len(single) < len(entries) else ():
        if isinstance(entry, Positions):
            newest += entry.newest(count)
        if len(newest) > most:
            newest = sorted(newest)[-count:]
    return min(sorted(newest)[-count:], default=0)
