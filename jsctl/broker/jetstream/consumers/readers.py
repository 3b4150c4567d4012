"""Who delivers the messages of a stream at this server, found by subject.

A stream may have a thousand consumers, each for a key or a partition of its own: what is stored
concerns one of them, and the others are not even asked.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Protocol

from jsctl.broker.jetstream.streams.entries import Flags, Messages
from jsctl.broker.jetstream.streams.publish_headers import (
    ROLLUP_ALL,
    ROLLUP_SUBJECT,
    nats_fields,
    rollup_of,
)
from jsctl.broker.store.stream_store import Removed
from jsctl.broker.subject.matching import Filters
from jsctl.broker.subject.sublist import Sublist

CROWD = 16
"""So many readers of some subjects are compared one by one; more are looked up."""


class Reader(Protocol):
    """Who has to know what happens to a stream."""

    def stored(self, first: int, count: int, seqs: Sequence[int] | None) -> bool:
        """The stream took messages from the sequence `first` on; `count` pass the filters, and
        have these sequences if that is known. Who takes all messages may return False: then it
        hears of none that come and go until it is to `hear` them again."""

    def removed(self, gone: Sequence[Removed]) -> None:
        """The stream lost these messages, and no others that pass the filters."""

    def stream_changed(self) -> None:
        """The stream lost messages, or was replaced by a received state."""

    def purged(self, pattern: bytes) -> None:
        """The stream was purged of a pattern (empty: of everything); `stream_changed` follows."""


class _ReaderEntry:
    """A reader; one object for all of its patterns."""

    __slots__ = ("filters", "reader")

    queue = b""

    def __init__(self, reader: Reader, filters: Filters) -> None:
        self.reader = reader
        self.filters = filters


_Crowd = Sublist[_ReaderEntry, tuple[_ReaderEntry, ...]]


def _found(
    plain: tuple[_ReaderEntry, ...], groups: tuple[tuple[_ReaderEntry, ...], ...]
) -> tuple[_ReaderEntry, ...]:
    return tuple(dict.fromkeys(plain))


class Readers:
    """Those of one stream. They are known by identity."""

    __slots__ = ("_all", "_asleep", "_crowd", "_each", "_known", "_wary")

    def __init__(self) -> None:
        self._known: dict[int, _ReaderEntry] = {}
        self._all: dict[int, _ReaderEntry] = {}
        """For whom every message is."""
        self._asleep: dict[int, _ReaderEntry] = {}
        """Of these, who does not want to hear of them now."""
        self._each: dict[int, _ReaderEntry] = {}
        """Of the others, who is compared one by one."""
        self._crowd: _Crowd | None = None
        """And who is looked up."""
        self._wary: dict[int, _ReaderEntry] = {}
        """Who may wait for acks of messages that do not pass any more."""

    def __bool__(self) -> bool:
        return bool(self._known)

    def add(self, reader: Reader, filters: Filters, *, wary: bool = False) -> None:
        """Tell `reader` of what passes, and no more of what it was told of before. `wary`: it may
        hold messages that do not pass, and is told of all that are removed."""
        self.remove(reader)
        key = id(reader)
        entry = self._known[key] = _ReaderEntry(reader, filters)
        if filters.is_all:
            self._all[key] = entry
            return
        if wary:
            self._wary[key] = entry
        if self._crowd is not None and not filters.has_long:
            _insert(self._crowd, entry)
            return
        self._each[key] = entry
        if self._crowd is None and len(self._each) > CROWD:
            self._gather()

    def _gather(self) -> None:
        self._crowd = Sublist(_found)
        short = [key for key, entry in self._each.items() if not entry.filters.has_long]
        for key in short:
            _insert(self._crowd, self._each.pop(key))

    def remove(self, reader: Reader) -> None:
        """Tell it nothing any more."""
        key = id(reader)
        entry = self._known.pop(key, None)
        if entry is None:
            return
        for some in (self._all, self._asleep, self._wary, self._each):
            some.pop(key, None)
        if self._crowd is not None and not (entry.filters.is_all or entry.filters.has_long):
            for pattern in entry.filters.patterns:
                self._crowd.remove(pattern, entry)
            if not self._crowd:
                self._crowd = None

    def hear(self, reader: Reader) -> None:
        """It wants to hear of messages again."""
        entry = self._asleep.pop(id(reader), None)
        if entry is not None:
            self._all[id(reader)] = entry

    def stored(self, seqs: Sequence[int], subjects: Sequence[bytes]) -> None:
        """The stream took messages with these sequences and subjects."""
        first = seqs[0]
        tired = [
            key
            for key, entry in self._all.items()
            if not entry.reader.stored(first, len(subjects), None)
        ]
        for key in tired:
            self._asleep[key] = self._all.pop(key)
        for entry in self._each.values():
            count = sum(map(entry.filters.match, subjects))
            if count:
                entry.reader.stored(first, count, None)
        if self._crowd is not None:
            concerned: dict[_ReaderEntry, list[int]] = {}
            for seq, entries in zip(seqs, self._crowd.match_many(subjects), strict=True):
                for entry in entries:
                    concerned.setdefault(entry, []).append(seq)
            for entry, some in concerned.items():
                entry.reader.stored(first, len(some), some)

    def removed(self, gone: Sequence[Removed]) -> None:
        """The stream lost these messages, and no others."""
        concerned: dict[_ReaderEntry, list[Removed]] = {}
        for one in gone:
            for entry in self._concerned(one.subjects):
                concerned.setdefault(entry, []).append(one)
        for entry, some in concerned.items():
            entry.reader.removed(some)

    def _concerned(self, subjects: Sequence[bytes]) -> Iterable[_ReaderEntry]:
        if not subjects:
            return self._known.values()
        passing = [one for one in self._each.values() if any(map(one.filters.match, subjects))]
        found = [*self._all.values(), *passing]
        if self._crowd is not None:
            found += chain.from_iterable(self._crowd.match_many(subjects))
        return dict.fromkeys([*found, *self._wary.values()])

    def stream_changed(self) -> None:
        """The stream lost messages, or was replaced by a received state."""
        for entry in self._known.values():
            entry.reader.stream_changed()

    def purged(self, pattern: bytes) -> None:
        """The stream was purged of a pattern; empty: of everything."""
        for entry in self._known.values():
            entry.reader.purged(pattern)

    def rolled_up(self, entry: Messages) -> None:
        """Messages took the place of those before them, which is a purge of their subject, or of
        everything."""
        if not entry.flags & Flags.ROLLUPS:
            return
        for subject, headers in zip(
            entry.frame.columns.subjects, entry.frame.header_blocks, strict=True
        ):
            what = rollup_of(nats_fields(headers))
            if what == ROLLUP_ALL:
                self.purged(b"")
            elif what == ROLLUP_SUBJECT:
                for one in self._known.values():
                    if one.filters.match(subject):
                        one.reader.purged(subject)


def _insert(crowd: _Crowd, entry: _ReaderEntry) -> None:
    for pattern in entry.filters.patterns:
        crowd.insert(pattern, entry)
