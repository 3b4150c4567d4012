"""Subjects against patterns and patterns against patterns, without any index.

Patterns given here are valid subjects (see `validity`). For many patterns at once there is
`Filters`; for the subscriptions of an account there is the sublist.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import compress, islice
from typing import TypeVar

from jsctl.broker.subject.patterns import PatternSet
from jsctl.broker.subject.validity import has_wildcard

T = TypeVar("T")
REGEX_PATTERNS_MAX = 16
"""More patterns than this are looked up in a trie: an expression tries them one by one."""
TOKENS_MAX = 512
"""Patterns with more tokens go into neither, as both take long to make and much room: hardly a
subject is so long that it could match one."""

_ONE = rb"[^.]+"
_TAIL = rb"[^.]+(?:\.[^.]+)*"


def matches(subject: bytes, pattern: bytes) -> bool:
    """Whether a literal subject is matched by a pattern."""
    if subject == pattern:
        return True
    if b"*" not in pattern and b">" not in pattern:
        return False
    return subset(subject, pattern)


def subset(inner: bytes, outer: bytes) -> bool:
    """Whether every subject that `inner` matches is matched by `outer` too."""
    return _is_subset(inner.split(b"."), outer.split(b"."))


def covering(outer: bytes) -> Callable[[bytes], bool]:
    """`subset` of a given `outer`, which is taken apart once: anybody may ask for a long one, and
    it is tried on very many."""
    outer_tokens = outer.split(b".")
    return lambda inner: _is_subset(inner.split(b"."), outer_tokens)


def _is_subset(inner_tokens: Sequence[bytes], outer_tokens: Sequence[bytes]) -> bool:
    size = len(inner_tokens)
    for position, token in enumerate(outer_tokens):
        if position >= size or not inner_tokens[position]:
            return False
        if token == b">" and position == len(outer_tokens) - 1:
            return all(inner_tokens[position:])
        other = inner_tokens[position]
        if other == b">" and position == size - 1:
            return False
        if token not in (b"*", other):
            return False
    return size == len(outer_tokens)


def overlaps(left: bytes, right: bytes) -> bool:
    """Whether some subject is matched by both patterns."""
    return _overlap(left.split(b"."), right.split(b"."))


def overlapping(left: bytes) -> Callable[[bytes], bool]:
    """`overlaps` of a given `left`, which is taken apart once, as with `covering`."""
    left_tokens = left.split(b".")
    return lambda right: _overlap(left_tokens, right.split(b"."))


def _overlap(left_tokens: Sequence[bytes], right_tokens: Sequence[bytes]) -> bool:
    for one, other in zip(left_tokens, right_tokens, strict=False):
        if one == b">" or other == b">":
            return True
        if one not in (other, b"*") and other != b"*":
            return False
    return len(left_tokens) == len(right_tokens)


def intersection(left: bytes, right: bytes) -> bytes | None:
    """The pattern of all subjects that both patterns match; None when there are none."""
    left_tokens = left.split(b".")
    right_tokens = right.split(b".")
    both: list[bytes] = []
    for position, (one, other) in enumerate(zip(left_tokens, right_tokens, strict=False)):
        if one == b">":
            return b".".join(both + right_tokens[position:])
        if other == b">":
            return b".".join(both + left_tokens[position:])
        if one not in (other, b"*") and other != b"*":
            return None
        both.append(other if one == b"*" else one)
    return b".".join(both) if len(left_tokens) == len(right_tokens) else None


def to_regex(pattern: bytes) -> bytes:
    """A regular expression that matches what the pattern matches (use with `fullmatch`)."""
    parts = []
    pieces = pattern.split(b".")
    for position, token in enumerate(pieces):
        if token == b"*":
            parts.append(_ONE)
        elif token == b">" and position == len(pieces) - 1:
            parts.append(_TAIL)
        else:
            parts.append(re.escape(token))
    return rb"\.".join(parts)


def _everything(subject: bytes) -> bool:
    return True


def _one_literal(literal: bytes) -> Callable[[bytes], bool]:
    return literal.__eq__


def _finder(patterns: Sequence[bytes]) -> Callable[[bytes], object]:
    return re.compile(b"|".join(to_regex(pattern) for pattern in patterns)).fullmatch


def _by_regex(fullmatch: Callable[[bytes], object]) -> Callable[[bytes], bool]:
    return lambda subject: fullmatch(subject) is not None


def _is_long(pattern: bytes) -> bool:
    return pattern.count(b".") >= TOKENS_MAX


def _by_any(match: Callable[[bytes], bool], long: Sequence[bytes]) -> Callable[[bytes], bool]:
    """`match`, or one of these patterns; each of its tokens but the last is two bytes at least."""
    least = min(2 * one.count(b".") + 1 for one in long)
    each = [covering(one) for one in long]
    return lambda subject: (
        match(subject) or (len(subject) >= least and any(one(subject) for one in each))
    )


class Filters:
    """A prepared set of subject filters; a subject passes when any of them matches it.

    No pattern at all, or `>`, lets everything pass (`is_all`). `literals` are the patterns
    without wildcards; `only_literals` says that there are no others, so that a caller with
    an index by subject can look them up instead of scanning; `has_long` that some of them have
    more tokens than belong into an index. `match(subject)` is a plain callable, made for tight
    loops. Immutable, hashable by its patterns.
    """

    __slots__ = (
        "_passes",
        "has_long",
        "is_all",
        "literals",
        "match",
        "only_literals",
        "patterns",
        "wildcards",
    )

    match: Callable[[bytes], bool]
    _passes: Callable[[bytes], object]
    """The same for `filter`, which takes anything that is true: no call of Python's for each."""

    def __init__(self, patterns: Iterable[bytes] = ()) -> None:
        self.patterns: tuple[bytes, ...] = tuple(dict.fromkeys(patterns))
        self.is_all = not self.patterns or b">" in self.patterns
        self.literals = tuple(one for one in self.patterns if not has_wildcard(one))
        self.wildcards = tuple(one for one in self.patterns if has_wildcard(one))
        self.only_literals = not self.is_all and not self.wildcards
        long = [one for one in self.patterns if _is_long(one)]
        self.has_long = bool(long)
        if self.is_all:
            self.match = _everything
        elif not self.only_literals:
            if not long and len(self.patterns) <= REGEX_PATTERNS_MAX:
                self._passes = _finder(self.patterns)
                self.match = _by_regex(self._passes)
                return
            self.match = PatternSet(one for one in self.patterns if not _is_long(one)).covers
            if long:
                self.match = _by_any(self.match, long)
        elif len(self.literals) == 1:
            self.match = _one_literal(self.literals[0])
        else:
            self.match = frozenset(self.literals).__contains__
        self._passes = self.match

    def select(self, subjects: Iterable[bytes]) -> list[bytes]:
        """Those of the subjects that pass, in order."""
        return list(subjects) if self.is_all else list(filter(self._passes, subjects))

    def belonging(self, things: Iterable[T], subjects: Iterable[bytes]) -> Iterable[T]:
        """Of things that belong to subjects, in the same order, those whose subjects pass."""
        return things if self.is_all else compress(things, map(self._passes, subjects))

    def first(self, subjects: Iterable[bytes], most: int) -> list[bytes]:
        """The first ones that pass, up to so many; it is looked at no others behind them."""
        return list(islice(subjects if self.is_all else filter(self._passes, subjects), most))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filters) and self.patterns == other.patterns

    def __hash__(self) -> int:
        return hash(self.patterns)

    def __repr__(self) -> str:
        return f"Filters({self.patterns!r})"


ALL = Filters()
"""Lets everything pass."""
