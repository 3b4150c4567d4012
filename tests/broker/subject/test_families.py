"""Subjects that no pattern tells apart share one answer, and no longer once one does."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.subject.families import DEPTHS_MAX, FAMILIES_MAX, Families
from jsctl.broker.subject.matching import matches
from jsctl.broker.subject.sublist import CACHE_ENTRIES_MAX, MANY_FROM, Sublist
from tests.support.quick import examples

Answer = tuple[frozenset[int], frozenset[tuple[bytes, frozenset[int]]]]


@dataclass(eq=False, slots=True)
class Sub:
    pattern: bytes
    queue: bytes = b""


def build(plain: tuple[Sub, ...], groups: tuple[tuple[Sub, ...], ...]) -> Answer:
    of_queue = frozenset((one[0].queue, frozenset(map(id, one))) for one in groups)
    return frozenset(map(id, plain)), of_queue


def expected(subs: list[Sub], subject: bytes) -> Answer:
    found = [one for one in subs if matches(subject, one.pattern)]
    queues = {one.queue for one in found if one.queue}
    grouped = [(name, frozenset(id(one) for one in found if one.queue == name)) for name in queues]
    return frozenset(id(one) for one in found if not one.queue), frozenset(grouped)


def walked(subs: list[Sub], subject: bytes) -> Answer:
    fresh = Sublist[Sub, Answer](build)
    for one in subs:
        fresh.insert(one.pattern, one)
    return fresh.match(subject)


def make(*patterns: bytes) -> Sublist[Sub, Answer]:
    sublist = Sublist[Sub, Answer](build)
    for pattern in patterns:
        sublist.insert(pattern, Sub(pattern))
    return sublist


words = st.sampled_from([b"a", b"*"])
patterns = st.builds(
    lambda head, tail: b".".join([*head, tail]),
    st.lists(words, max_size=3),
    st.sampled_from([b"a", b"b", b"*", b">"]),
)
tails = st.lists(
    st.lists(st.sampled_from([b"a", b"b", b"c", b"*", b">", b""]), min_size=1, max_size=2),
    min_size=2,
    max_size=8,
)
bursts = st.builds(
    lambda head, tails: [b".".join(head + one) for one in tails],
    st.lists(words, max_size=3),
    tails,
)
"""Subjects that begin alike."""
steps = st.lists(
    st.one_of(
        st.tuples(patterns, st.sampled_from([b"", b"", b"q1", b"q2"])),
        st.integers(0, 50),
        bursts,
        bursts,
    ),
    max_size=12,
)


@given(st.lists(patterns, max_size=6), steps)
@settings(max_examples=examples(150), deadline=None)
def test_any_subject_is_answered_as_by_a_look_at_every_pattern(
    first: list[bytes], todo: list[tuple[bytes, bytes] | int | list[bytes]]
) -> None:
    sublist, model = Sublist[Sub, Answer](build), [Sub(one) for one in first]
    for one in model:
        sublist.insert(one.pattern, one)
    for step in todo:
        if isinstance(step, tuple):
            model.append(Sub(*step))
            sublist.insert(step[0], model[-1])
        elif isinstance(step, list):
            for subject in step:
                answer = sublist.match(subject)
                assert answer == walked(model, subject), subject
                many = sublist.match_many([subject, *step] * MANY_FROM)
                assert many == [walked(model, one) for one in (subject, *step)] * MANY_FROM
                if b">" not in subject:
                    valid = all(subject.split(b"."))
                    assert answer == expected(model if valid else [], subject), subject
        elif model:
            gone = model.pop(step % len(model))
            sublist.remove(gone.pattern, gone)


@pytest.mark.parametrize(
    ("first", "subject"),
    [
        (b"$JS.ACK.S.C.>", b"$JS.ACK.S.C.1.%d.%d.17.9"),
        (b"_INBOX.abc.*", b"_INBOX.abc.%d%d"),
        (b"orders.*.*", b"orders.%d.%d"),
        (b"nobody.listens", b"events.%d.%d"),
    ],
)
def test_subjects_that_are_used_once_are_walked_once(first: bytes, subject: bytes) -> None:
    sublist = make(first, b"$JS.ACK.S.D.>", b"$JS.API.*", b"_INBOX.abd.*", b"other.*.a")
    count = CACHE_ENTRIES_MAX + 10
    answers = [sublist.match(subject % (number, number)) for number in range(count)]
    assert all(one is answers[0] for one in answers)
    assert sublist.cache_misses == 1 and sublist.cache_hits == count - 1
    assert sublist.cache_count <= CACHE_ENTRIES_MAX


def test_a_pattern_that_tells_them_apart_ends_the_family() -> None:
    sublist = make(b"in.a.*", b"in.b.c")
    assert sublist.match(b"in.a.1") is sublist.match(b"in.a.2")
    told = Sub(b"in.a.3")
    sublist.insert(told.pattern, told)
    assert len(sublist.match(b"in.a.3")[0]) == 2 and len(sublist.match(b"in.a.4")[0]) == 1
    sublist.remove(told.pattern, told)
    assert len(sublist.match(b"in.a.3")[0]) == 1
    wide = Sub(b"in.*.5")
    sublist.insert(wide.pattern, wide)
    assert len(sublist.match(b"in.a.5")[0]) == 2 and len(sublist.match(b"in.a.6")[0]) == 1
    sublist.touch(b"in.>")
    assert len(sublist.match(b"in.a.5")[0]) == 2


def test_a_batch_of_one_family_is_answered_at_once() -> None:
    sublist = make(b"_INBOX.abc.*", b"_INBOX.abd.*", b"_INBOX.abc.told", b"orders.>")
    inboxes = [b"_INBOX.abc.%d" % number for number in range(MANY_FROM)]
    sublist.match(b"_INBOX.abd.x")
    for _ in range(2):
        sublist.match(b"_INBOX.abd.y")
    others = [b"_INBOX.abd.%d" % number for number in range(MANY_FROM)]
    count = sublist.cache_count
    answers = sublist.match_many(others)
    assert len(answers) == MANY_FROM and set(map(len, answers)) == {2}
    assert all(len(one[0]) == 1 and one is answers[0] for one in answers)
    assert sublist.cache_count == count
    for odd in (
        b"_INBOX.abd.",
        b"_INBOX.abd.1.2",
        b"_INBOX.abd..2",
        b"_INBOX.abd",
        b"_INBOX.abe.1",
    ):
        assert not sublist.match_many([*others, odd])[-1][0], odd
    told = sublist.match_many([*inboxes, b"_INBOX.abc.told"])
    assert [len(one[0]) for one in told] == [1] * MANY_FROM + [2]


def test_a_batch_of_siblings_is_answered_at_once_and_not_kept() -> None:
    """Inboxes of many clients, of which each comes once."""
    sublist = make(b"_INBOX.a.*", b"_INBOX.b.*")
    for name in (b"a", b"b"):
        sublist.match(b"_INBOX.%b.0" % name)
    count = sublist.cache_count
    inboxes = [b"_INBOX.%b.%d" % (name, number) for number in (1, 2, 3) for name in (b"a", b"b")]
    assert sublist.match_many(inboxes) == list(map(sublist.match, inboxes))
    assert sublist.cache_count == count
    for odd in (b"_INBOX.a.", b"_INBOX.c.1", b"_INBOX.a"):
        assert not sublist.match_many([*inboxes, odd])[-1][0], odd
    late = Sub(b"_INBOX.a.2")
    sublist.insert(late.pattern, late)
    assert [len(one[0]) for one in sublist.match_many(inboxes)] == [1, 1, 2, 1, 1, 1]


def test_empty_tokens_are_of_no_family() -> None:
    sublist = make(b"in.a.>", b"in.b.*")
    assert len(sublist.match(b"in.a.1.2")[0]) == 1
    for subject in (b"in.a..2", b"in.a.1.", b"in.b.", b"in..1", b".in.a.1"):
        assert sublist.match(subject) == (frozenset(), frozenset()), subject


def test_other_families_stay_when_a_literal_comes() -> None:
    sublist = make(b"in.a.*", b"in.b.*")
    for subject in (b"in.a.1", b"in.b.1"):
        sublist.match(subject)
    sublist.insert(b"in.a.2", Sub(b"in.a.2"))
    before = sublist.cache_misses
    sublist.match(b"in.b.9")
    assert sublist.cache_misses == before
    sublist.match(b"in.a.9")
    assert sublist.cache_misses == before + 1


def test_families_are_bounded() -> None:
    families = Families[int]()
    for number in range(FAMILIES_MAX + 1):
        families.add(b"a.%d.x" % number, 2, number)
    assert len(families) == 1 and families.find(b"a.%d.y" % FAMILIES_MAX) == FAMILIES_MAX
    deep = b".".join([b"t"] * (DEPTHS_MAX + 3))
    for depth in range(1, DEPTHS_MAX + 2):
        families.add(deep, depth, depth)
    assert len(families) == DEPTHS_MAX + 1
    families.drop(deep)
    assert families.find(deep) is None and len(families) == 1
    families.clear()
    assert len(families) == 0 and families.find(b"a.%d.y" % FAMILIES_MAX) is None
