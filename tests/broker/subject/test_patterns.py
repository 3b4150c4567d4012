"""Sets of patterns against the pairwise answers, and what comparing them may cost."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.subject.matching import Filters, overlaps, subset
from jsctl.broker.subject.patterns import STEPS_MAX, Budget, PatternSet, Tangled, first_meeting
from tests.support.quick import examples

token = st.sampled_from([b"a", b"b", b"*"])
pattern = st.builds(
    lambda head, tail: b".".join([*head, tail]),
    st.lists(token, max_size=3),
    st.sampled_from([b"a", b"b", b"*", b">"]),
)
some = st.lists(pattern, max_size=7)


@given(some)
@settings(max_examples=examples(300), deadline=None)
def test_the_first_two_that_meet_are_those_of_comparing_all(patterns: list[bytes]) -> None:
    pairs = (pair for pair in itertools.combinations(patterns, 2) if overlaps(*pair))
    assert first_meeting(patterns) == next(pairs, None)


@given(some, some, some)
@settings(max_examples=examples(300), deadline=None)
def test_two_sets_meet_when_two_of_their_patterns_do(
    left: list[bytes], right: list[bytes], gone: list[bytes]
) -> None:
    mine, theirs = PatternSet(left), PatternSet()
    for one in right:
        theirs.insert(one, "kept")
    for one in gone:
        theirs.insert(one, "ignored")
    met = mine.meets(theirs, ignoring={"ignored"})
    assert (met is not None) == any(overlaps(*pair) for pair in itertools.product(left, right))
    if met is not None:
        assert met[0] in left
        assert met[1] in right
        assert overlaps(*met)
    for one in gone:
        theirs.remove(one, "ignored")
        theirs.remove(one, "nobody")
    assert (mine.meets(theirs) is not None) == (met is not None)


@given(pattern, some, some)
@settings(max_examples=examples(300), deadline=None)
def test_owners_and_covers(one: bytes, left: list[bytes], right: list[bytes]) -> None:
    both = PatternSet()
    for name, patterns in (("left", left), ("right", right)):
        for each in patterns:
            both.insert(each, name)
    wanted = {"left"} if any(overlaps(one, each) for each in left) else set()
    wanted |= {"right"} if any(overlaps(one, each) for each in right) else set()
    assert both.owners_meeting(one) == wanted
    assert both.covers(one) == any(subset(one, each) for each in left + right)
    besides = any(subset(one, each) for each in left + right if each != one)
    assert both.covers(one, besides=True) == besides


def test_many_filters_match_as_few_do() -> None:
    patterns = [b"a.*.%d" % n for n in range(40)] + [b"b.>"]
    many = Filters(patterns)
    for subject in (b"a.x.7", b"a.x.40", b"b", b"b.c.d", b"a.7", b"a..7", b"b.", b"a.*.7"):
        few = any(Filters([one]).match(subject) for one in patterns)
        assert many.match(subject) == few, subject


SHAPES = {
    "literals": lambda n: [b"s.%d" % i for i in range(n)],
    "stars behind": lambda n: [b"s.%d.*" % i for i in range(n)],
    "stars before": lambda n: [b"*.%d" % i for i in range(n)],
    "both ways": lambda n: (
        [b"x%d.a" % i for i in range(n // 2)] + [b"*.b%d" % i for i in range(n // 2)]
    ),
    "tails": lambda n: [b"s.%d.>" % i for i in range(n)],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_steps_grow_with_the_number_of_patterns(shape: str) -> None:
    def steps(count: int) -> int:
        budget = Budget(10**9)
        assert PatternSet(SHAPES[shape](count)).meeting(budget) is None
        return budget.spent

    assert steps(8000) <= 4.1 * steps(2000) + 100


def test_what_cannot_be_compared_quickly_is_given_up() -> None:
    tangled = [
        b".".join(head) + b".u%d" % at
        for at, head in enumerate(itertools.product([b"a", b"*"], repeat=13))
    ]
    budget = Budget()
    with pytest.raises(Tangled):
        PatternSet(tangled).meeting(budget)
    assert budget.spent < STEPS_MAX + len(tangled) * 4


plain_token = st.sampled_from([b"a", b"b", b"c"])
literals = st.lists(plain_token, min_size=1, max_size=4)


@given(some, literals, literals)
@settings(max_examples=examples(300), deadline=None)
def test_tokens_behind_those_that_decide_make_no_difference(
    patterns: list[bytes], subject: list[bytes], other: list[bytes]
) -> None:
    both = PatternSet(patterns)
    decides = both.deciding(b".".join(subject))
    changed = subject[:decides] + [*other[decides:], *subject][: len(subject) - decides]
    assert both.deciding(b".".join(changed)) == decides
    assert both.covers(b".".join(changed)) == both.covers(b".".join(subject))


def test_as_few_tokens_decide_as_patterns_have() -> None:
    both = PatternSet([b"$JS.ACK.>", b"_INBOX.>", b"a.*.c"])
    subjects = (b"$JS.ACK.S.C.1", b"_INBOX.x.1", b"a.b.c", b"x.y.z")
    assert [both.deciding(subject) for subject in subjects] == [2, 1, 3, 1]
    assert PatternSet([b">"]).deciding(b"a.b") == 0
