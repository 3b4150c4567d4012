"""The sequence set against a Python set."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.errors import Damaged
from jsctl.broker.store.seqset import SeqSet
from tests.support.quick import examples

numbers = st.integers(0, 40)
steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "add_many", "add_range", "remove", "remove_range"]),
        numbers,
        numbers,
    ),
    max_size=40,
)


def check(made: SeqSet, model: set[int]) -> None:
    assert list(made) == sorted(model)
    assert len(made) == len(model)
    assert SeqSet.decode(made.encode()) == made
    assert made == SeqSet((n, n) for n in sorted(model))
    assert (made.first, made.last) == (min(model, default=0), max(model, default=0))
    for n in range(42):
        assert (n in made) == (n in model)
        assert made.next_absent(n) == next(i for i in range(n, 100) if i not in model)
        assert made.previous_absent(n) == next(i for i in range(n, -2, -1) if i not in model)
        assert made.next_present(n) == min((i for i in model if i >= n), default=None)
        assert made.count_range(n, n + 7) == len([i for i in model if n <= i <= n + 7])
        absent = [i for i in range(n, 40) if i not in model]
        assert made.absent(n, 39, 5) == absent[:5]
        some = range(n, 50, 3)
        assert made.absent_of(some) == [i for i in some if i not in model]


@given(steps, st.sampled_from([1, 2, 512]))
@settings(max_examples=examples(120), deadline=None)
def test_behaves_like_a_set(script: list[tuple[str, int, int]], block_ranges: int) -> None:
    made, model = SeqSet(block_ranges=block_ranges), set[int]()
    for name, a, b in script:
        span = set(range(a, b + 1))
        if name == "add":
            assert made.add(a) == (a not in model)
            model.add(a)
        elif name == "add_many":
            some = sorted({a, b, (a * b) % 37, *range(a, min(a + 3, 41), 2)})
            made.add_many(some)
            model |= set(some)
        elif name == "remove":
            assert made.remove(a) == (a in model)
            model.discard(a)
        elif name == "add_range":
            assert made.add_range(a, b) == len(span - model)
            model |= span
        else:
            assert made.remove_range(a, b) == len(span & model)
            model -= span
    check(made, model)
    copy = made.copy()
    copy.clear()
    assert not copy and list(made) == sorted(model)


@given(st.randoms(use_true_random=False), st.sampled_from([2, 8]))
@settings(max_examples=examples(40), deadline=None)
def test_many_far_from_each_other(chance: Random, block_ranges: int) -> None:
    made, model = SeqSet(block_ranges=block_ranges), set[int]()
    for size in (300, 20, 20, 150, 20, 20):
        some = sorted(chance.sample(range(800), size))
        made.add_many(some)
        model |= set(some)
        assert list(made) == sorted(model)
        assert len(made) == len(model) == made.count_range(0, 800)
        # Equal sets have equal bytes: no ranges touch.
        assert made.encode() == SeqSet((seq, seq) for seq in sorted(model)).encode()


@given(st.lists(st.lists(st.tuples(numbers, st.integers(0, 5)), max_size=8), max_size=5))
def test_a_union_has_what_any_of_them_has(some: list[list[tuple[int, int]]]) -> None:
    sets = [SeqSet((a, a + more) for a, more in one) for one in some]
    made = SeqSet.union(sets)
    assert sorted({seq for one in sets for seq in one}) == list(made)
    assert SeqSet.decode(made.encode()) == made
    made.add_range(0, 50)
    assert all(len(one) <= 46 for one in sets)


def test_far_ranges_cost_as_little_as_near_ones() -> None:
    made = SeqSet([(1, 10**15), (2**64 - 5, 2**64 - 1)])
    assert len(list(made.ranges())) == 2
    assert len(made) == 10**15 + 5
    assert SeqSet.decode(made.encode()) == made
    assert len(made.encode()) < 64


@pytest.mark.parametrize("data", [b"", b"\x02\x01\x00\x00\x00\x00", SeqSet([(1, 2)]).encode()[:-1]])
def test_refuses_what_it_did_not_write(data: bytes) -> None:
    with pytest.raises(Damaged):
        SeqSet.decode(data)


@given(st.binary(max_size=40))
def test_any_bytes_are_refused_or_round_trip(data: bytes) -> None:
    try:
        made = SeqSet.decode(data)
    except Damaged:
        return
    assert SeqSet.decode(made.encode()) == made
