"""Which messages of a backup are kept, and why the others are not."""

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import lru_cache

from jsctl.api.times import format_time
from jsctl.backups.archive import MessageEntry
from jsctl.dataclass import dataclass
from jsctl.errors import UsageError

SUBJECTS_KEPT = 10_000
"""Decisions about subjects that are remembered."""
KV_OPERATION, MARKER_REASON = "KV-Operation", "Nats-Marker-Reason"
_DELETED = ("DEL", "PURGE")
_MARKED = ("MaxAge", "Purge", "Remove")


class Dropped(Enum):
    """Why a message is not kept; the value is its line in the report."""

    SEQUENCE = "Dropped by Sequence Filter"
    TIME = "Dropped by Time Filter"
    SUBJECT = "Dropped by Subject Filter"
    HEADER = "Dropped by Header Filter"
    PAYLOAD = "Dropped by Payload Filter"
    LAST_PER_SUBJECT = "Dropped by Last Per Subject"
    KV_COMPACT = "Dropped by KV Compaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What to keep; None and empty ask for nothing. Times are nanoseconds of the Unix epoch."""

    subjects: tuple[str, ...] = ()
    exclude_subjects: tuple[str, ...] = ()
    after_ns: int | None = None
    before_ns: int | None = None
    first_sequence: int | None = None
    last_sequence: int | None = None
    headers: tuple[tuple[str, str | None], ...] = ()
    """Names, with a value where it has to be that one; any of them keeps a message."""
    exclude_headers: tuple[str, ...] = ()
    payloads: tuple[re.Pattern[bytes], ...] = ()
    exclude_payloads: tuple[re.Pattern[bytes], ...] = ()
    last_per_subject: int = 0
    kv_compact: bool = False

    @property
    def per_subject(self) -> bool:
        """Whether all messages have to be seen before one is kept."""
        return self.kv_compact or self.last_per_subject > 0

    def check(self) -> None:
        """Raises UsageError for what cannot be meant."""
        for subject in (*self.subjects, *self.exclude_subjects):
            tokens = subject.split(".")
            if "" in tokens or ">" in tokens[:-1] or set(subject) & set(" \t\r\n"):
                raise UsageError(f'invalid subject filter "{subject}"')
        if None not in (self.after_ns, self.before_ns) and self._after >= self._before:
            raise UsageError("After must be earlier than Before")
        if None not in (self.first_sequence, self.last_sequence) and self._first > self._last:
            raise UsageError(f"FirstSeq {self._first} is above LastSeq {self._last}")
        for name in (*(name for name, _ in self.headers), *self.exclude_headers):
            if not name or set(name) & set(": \t\r\n"):
                raise UsageError(f'invalid header name "{name}"')
        if self.kv_compact and self.last_per_subject:
            raise UsageError("KVCompact and LastPerSubject are mutually exclusive")

    @property
    def _after(self) -> int:
        return self.after_ns or 0

    @property
    def _before(self) -> int:
        return self.before_ns or 0

    @property
    def _first(self) -> int:
        return self.first_sequence or 0

    @property
    def _last(self) -> int:
        return self.last_sequence or 0

    def words(self) -> list[str]:
        """What was asked for, in the order and the words of a backup's own record."""
        named = [name for name, value in self.headers if value is None]
        valued = [f"{name}:{value}" for name, value in self.headers if value is not None]
        found = [*_each("subject", self.subjects), *_each("exclude-subject", self.exclude_subjects)]
        for key, number in (("after", self.after_ns), ("before", self.before_ns)):
            found += [f"{key}={format_time(number)}"] if number is not None else []
        for key, number in (("first-seq", self.first_sequence), ("last-seq", self.last_sequence)):
            found += [f"{key}={number}"] if number is not None else []
        found += [*_each("header", named), *_each("header", valued)]
        found += _each("no-header", self.exclude_headers)
        found += _each("payload-match", _patterns(self.payloads))
        found += _each("exclude-payload-match", _patterns(self.exclude_payloads))
        found += [f"last-per-subject={self.last_per_subject}"] if self.last_per_subject else []
        return found + (["kv-compact"] if self.kv_compact else [])


def _each(key: str, values: Iterable[str]) -> list[str]:
    return [f"{key}={value}" for value in sorted(values)]


def _patterns(patterns: Iterable[re.Pattern[bytes]]) -> list[str]:
    return [pattern.pattern.decode() for pattern in patterns]


class Judge:
    """Applies a filter, but for what depends on other messages."""

    def __init__(self, wanted: Filter) -> None:
        self.wanted = wanted
        self._by_subject = lru_cache(SUBJECTS_KEPT)(self._subject_is_wanted)
        self._looks_at_headers = bool(wanted.headers or wanted.exclude_headers)

    def __call__(self, message: MessageEntry) -> Dropped | None:
        """Why a message is dropped; None if it is kept."""
        wanted = self.wanted
        low, high = wanted.first_sequence, wanted.last_sequence
        if not _between(message.sequence, low, high if high is None else high + 1):
            return Dropped.SEQUENCE
        if not _between(message.time_ns, wanted.after_ns, wanted.before_ns):
            return Dropped.TIME
        if not self._by_subject(message.subject):
            return Dropped.SUBJECT
        if self._looks_at_headers and not self._headers_are_wanted(message):
            return Dropped.HEADER
        return None if self._payload_is_wanted(message.payload) else Dropped.PAYLOAD

    def _subject_is_wanted(self, subject: str) -> bool:
        wanted = self.wanted
        if any(matches(pattern, subject) for pattern in wanted.exclude_subjects):
            return False
        patterns = wanted.subjects
        return not patterns or any(matches(pattern, subject) for pattern in patterns)

    def _headers_are_wanted(self, message: MessageEntry) -> bool:
        wanted, found = self.wanted, list(headers_of(message.headers))
        lowered = [(name.lower(), value) for name, value in found]
        names = {name for name, _ in lowered}
        if any(name.lower() in names for name in wanted.exclude_headers):
            return False
        return not wanted.headers or any(
            name.lower() in names if value is None else (name.lower(), value) in lowered
            for name, value in wanted.headers
        )

    def _payload_is_wanted(self, payload: bytes) -> bool:
        wanted = self.wanted
        if any(pattern.search(payload) for pattern in wanted.exclude_payloads):
            return False
        patterns = wanted.payloads
        return not patterns or any(pattern.search(payload) for pattern in patterns)


def _between(value: int, low: int | None, end: int | None) -> bool:
    return (low is None or value >= low) and (end is None or value < end)


def matches(pattern: str, subject: str) -> bool:
    """Whether a subject is one of those that a pattern names."""
    tokens, wanted = subject.split("."), pattern.split(".")
    for at, want in enumerate(wanted):
        if want == ">" and at == len(wanted) - 1:
            return len(tokens) > at
        if at >= len(tokens) or want not in ("*", tokens[at]):
            return False
    return len(tokens) == len(wanted)


def headers_of(block: bytes) -> Iterator[tuple[str, str]]:
    """Names and values."""
    for line in block.split(b"\r\n")[1:]:
        name, colon, value = line.partition(b":")
        if colon:
            # Spaces behind a value are a part of it, as clients read it.
            yield name.decode("utf-8", "replace"), value.lstrip(b" \t").decode("utf-8", "replace")


def is_tombstone(message: MessageEntry) -> bool:
    """Whether a message says that a key of a bucket is gone."""
    # Of several values the first one counts, as for those who use the bucket.
    found = dict(reversed([*headers_of(message.headers)])) if message.headers else {}
    if found.get(KV_OPERATION):
        return found[KV_OPERATION] in _DELETED
    return found.get(MARKER_REASON) in _MARKED
