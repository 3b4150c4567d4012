"""Sequences of a subject that has many, against a list, with blocks of a few."""

from bisect import bisect_left
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.store import subject_index
from jsctl.broker.store.sequences import packed as packed_seqs
from jsctl.broker.store.sequences import positions
from jsctl.broker.store.sequences.packed import PackedSeqs
from jsctl.broker.store.subject_index import SubjectIndex
from jsctl.broker.subject.matching import Filters
from tests.support.quick import examples

steps = st.lists(st.sampled_from([1, 1, 1, 2, 7, 300, 70_000, 1 << 33]), max_size=60)


@pytest.fixture(autouse=True, scope="module")
def _blocks_of_a_few() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_seqs, "BLOCK_SEQS", 4)
        patch.setattr(packed_seqs, "TAIL_SEQS_MAX", 8)
        patch.setattr(positions, "BLOCK_SEQS", 4)
        patch.setattr(positions, "TAIL_SEQS_MAX", 8)
        patch.setattr(subject_index, "TAIL_SEQS_MAX", 8)
        yield


def check(made: PackedSeqs, model: list[int]) -> None:
    assert (len(made), list(made)) == (len(model), model)
    assert [made[at] for at in range(len(model))] == model
    assert [made[-at] for at in range(1, len(model) + 1)] == model[::-1]
    with pytest.raises(IndexError):
        made[len(model)]
    for start in range(0, len(model) + 1, 3):
        assert list(made[start : start + 5]) == model[start : start + 5]
    for seq in {1, *model, *(seq + 1 for seq in model)}:
        assert made.left(seq) == bisect_left(model, seq)
    assert [seq for block in made.blocks() for seq in _seqs(block)] == model
    if model:
        assert list(PackedSeqs.of_blocks(made.blocks())) == model


def _seqs(block: range | packed_seqs.Steps) -> list[int]:
    return list(block if isinstance(block, range) else block.unpacked())


@given(steps, st.data())
@settings(max_examples=examples(200), deadline=None)
def test_behaves_like_a_list(gaps: list[int], data: st.DataObject) -> None:
    model = list(accumulate(gaps, initial=1))
    made = PackedSeqs(model)
    check(made, model)
    for _ in range(data.draw(st.integers(0, 12))):
        action = data.draw(st.sampled_from(["append", "drop", "pop", "insert"]))
        if action == "append" or not model:
            model.append((model or [0])[-1] + data.draw(st.integers(1, 3)))
            made.append(model[-1])
        elif action == "drop":
            count = data.draw(st.integers(0, len(model)))
            made.drop(count)
            del model[:count]
        elif action == "pop":
            assert made.pop() == model.pop()
        else:
            seq = data.draw(st.integers(1, model[-1] + 2).filter(lambda n: n not in model))
            made.insert(made.left(seq), seq)
            model.insert(bisect_left(model, seq), seq)
        check(made, model)


@given(st.integers(1, 90), st.sampled_from([1, 3]), st.data())
@settings(max_examples=examples(200), deadline=None)
def test_positions_of_many_are_those_of_few(count: int, every: int, data: st.DataObject) -> None:
    """What is removed in any order, put back, asked for and saved."""
    index, model = SubjectIndex(), list(range(1, count * every + 1, every))
    for at in range(0, count, 7):
        some = model[at : at + 7]
        index.add_many(some, [b"s"] * len(some))
    gone = data.draw(st.lists(st.sampled_from(model), unique=True, max_size=count - 1))
    for seq in gone:
        assert index.remove(b"s", seq) and not index.remove(b"s", seq)
    left = sorted(set(model) - set(gone))
    for seq in data.draw(st.lists(st.sampled_from(gone), unique=True)) if gone else ():
        index.insert(b"s", seq)
        left = sorted([*left, seq])
    bound = data.draw(st.integers(0, model[-1]))
    assert index.live(b"s") == left
    assert (index.first(b"s"), index.last(b"s")) == (left[0], left[-1])
    assert index.below([(b"s", bound)]) == [seq for seq in left if seq < bound]
    assert index.next_seqs([b"s"], bound, 9) == [seq for seq in left if seq >= bound][:9]
    assert index.last_up_to(b"s", bound) == max((n for n in left if n <= bound), default=None)
    kept = left[-5:][0]
    assert index.purged(Filters((b"*",)), model[-1] + 1, 5) == (
        [(b"s", kept)] if left[0] < kept else []
    )
    saved = SubjectIndex()
    saved.put_singles(*zip(*index.singles().items(), strict=True)) if len(left) == 1 else None
    for subject, blocks in index.others():
        saved.put(subject, list(blocks))
    assert saved.live(b"s") == left
    index.cut([(b"s", bound)])
    assert index.live(b"s") == [seq for seq in left if seq >= bound]


def test_what_comes_back_below_the_first_one_is_found_in_order() -> None:
    index = SubjectIndex()
    index.add_many(range(1, 10), [b"s"] * 9)
    for seq in range(1, 7):
        index.remove(b"s", seq)
    for seq in (1, 2):
        index.insert(b"s", seq)
    assert index.live(b"s") == [1, 2, 7, 8, 9] and index.last_up_to(b"s", 2) == 2


def test_what_was_removed_from_the_front_is_put_back_in_any_order() -> None:
    index = SubjectIndex()
    index.add_many(range(1, 13), [b"s"] * 12)
    for seq in range(1, 7):
        index.remove(b"s", seq)
    for seq in (3, 5, 1, 4, 2):
        index.insert(b"s", seq)
    assert index.live(b"s") == [1, 2, 3, 4, 5, *range(7, 13)]
    assert [index.last_up_to(b"s", seq) for seq in (1, 5, 6)] == [1, 5, 5]
