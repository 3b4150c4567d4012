"""Matching against a naive model that enumerates subjects."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.subject import matching
from jsctl.broker.subject.matching import ALL, Filters, intersection, matches, overlaps, subset
from jsctl.broker.subject.validity import (
    has_wildcard,
    is_valid_literal,
    is_valid_subject,
    tokens,
)
from tests.support.quick import examples

WORDS = [b"a", b"b", b"x"]
UNIVERSE = [b".".join(p) for n in range(1, 5) for p in itertools.product(WORDS, repeat=n)]

patterns = st.builds(
    lambda head, tail: b".".join([*head, *tail]),
    st.lists(st.sampled_from([b"a", b"b", b"*"]), min_size=0, max_size=2),
    st.sampled_from([[b">"], [b"a"], [b"*"], [b"b"]]),
)


def naive(subject: bytes, pattern: bytes) -> bool:
    left, right = subject.split(b"."), pattern.split(b".")
    if right[-1] == b">":
        right, left = right[:-1], [*left[: len(right) - 1], *left[len(right) - 1 :]]
        if len(left) <= len(right):
            return False
        left = left[: len(right)]
    return len(left) == len(right) and all(b in (a, b"*") for a, b in zip(left, right, strict=True))


def extent(pattern: bytes) -> set[bytes]:
    return {subject for subject in UNIVERSE if naive(subject, pattern)}


@given(patterns, patterns)
@settings(max_examples=examples(150), deadline=None)
def test_matching_agrees_with_enumeration(left: bytes, right: bytes) -> None:
    one, other = extent(left), extent(right)
    assert {s for s in UNIVERSE if matches(s, left)} == one
    assert overlaps(left, right) == bool(one & other)
    assert subset(left, right) == (one <= other)
    common = intersection(left, right)
    assert (extent(common) if common else set()) == one & other
    both = Filters([left, right])
    assert set(both.select(UNIVERSE)) == one | other
    assert Filters([left, right]) == both
    assert hash(Filters([left, right])) == hash(both)


@pytest.mark.parametrize(
    ("subject", "valid", "literal"),
    [
        (b"foo", True, True),
        (b"foo.bar.*", True, False),
        (b"foo.>", True, False),
        (b">", True, False),
        (b"foo.>.bar", False, False),
        (b"foo*.b>r", True, True),
        (b"a>.b", True, True),
        (b"*", True, False),
        (b"", False, False),
        (b".", False, False),
        (b"foo.", False, False),
        (b".foo", False, False),
        (b"foo..bar", False, False),
        (b"foo bar", False, False),
        (b"foo\tbar", False, False),
        (b"foo\r", False, False),
        (b"foo\n", False, False),
        (b"foo\f", False, False),
        (b"f\xc3\xbc", True, True),
    ],
)
def test_validity(subject: bytes, valid: bool, literal: bool) -> None:
    assert is_valid_subject(subject) == valid
    assert is_valid_literal(subject) == literal
    if valid:
        assert has_wildcard(subject) == (not literal)


def test_tokens() -> None:
    assert tokens(b"a.b") == [b"a", b"b"]


def test_empty_tokens_match_nothing() -> None:
    assert not matches(b"a..b", b"a.*.b")
    assert not matches(b"a..b", b"a.>")
    assert not Filters([b"a.>"]).match(b"a..b")
    assert matches(b"a.*", b"a.*")


def test_filters_know_their_kind() -> None:
    assert ALL.is_all and ALL.match(b"x") and ALL.select([b"x"]) == [b"x"]
    assert Filters([b"a", b">"]).is_all
    literal = Filters([b"a", b"a"])
    assert literal.literals == (b"a",) and literal.only_literals
    assert literal.match(b"a") and not literal.match(b"b")
    two = Filters([b"a", b"b"])
    assert two.match(b"b") and not two.match(b"c")
    mixed = Filters([b"a", b"b.*"])
    assert mixed.wildcards == (b"b.*",) and not mixed.only_literals
    assert "b.*" in repr(mixed)
    assert mixed != 1


@given(st.lists(patterns, min_size=1, max_size=20), st.integers(0, 3))
@settings(max_examples=examples(100), deadline=None)
def test_long_patterns_match_what_they_would(given: list[bytes], limit: int) -> None:
    """With the limit so low that some of these are long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "TOKENS_MAX", limit)
        found = Filters(given)
    wanted = {subject for subject in UNIVERSE if any(naive(subject, one) for one in given)}
    assert set(found.select(UNIVERSE)) == wanted
    assert {subject for subject in UNIVERSE if found.match(subject)} == wanted


def test_no_expression_is_made_of_a_long_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take seconds, and anybody may ask with one."""
    sizes: list[int] = []
    monkeypatch.setattr(matching, "_finder", lambda found: sizes.append(len(b"".join(found))))
    dots = b".*" * 100_000
    found = Filters([b"s" + dots, b"a.*"])
    assert (found.match(b"s.a"), found.match(b"a.b"), found.match(b"s" + b".a" * 100_000)) == (
        False,
        True,
        True,
    )
    assert not sizes
