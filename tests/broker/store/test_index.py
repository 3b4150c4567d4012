"""The index alone: what can be read and what there would be without damage are kept apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.store.index import UNKNOWN, Facts, LostRecords, StoreIndex
from jsctl.broker.store.record import Columns
from jsctl.broker.store.subject_index import SubjectIndex
from jsctl.broker.subject.matching import Filters

SUBJECTS = [b"a.1", b"a.2", b"b"]


def facts(seq: int) -> Facts:
    return Facts(seq * 31, 40 + seq, 1000 + seq, SUBJECTS[seq % 3])


def filled(count: int) -> StoreIndex:
    made = StoreIndex()
    rows = [facts(seq) for seq in range(1, count + 1)]
    columns = Columns(
        [],
        [one.crc for one in rows],
        [one.size for one in rows],
        list(range(1, count + 1)),
        [one.time_ns for one in rows],
        [one.subject for one in rows],
    )
    made.count_in(columns, sum(columns.lengths))
    return made


def retained(index: StoreIndex) -> tuple[object, ...]:
    return (
        index.retained_messages,
        index.retained_bytes,
        index.retained_digest,
        [index.retained_for(one) for one in SUBJECTS],
        [index.oldest(one, 3) for one in SUBJECTS],
        [sorted(index.excess(SUBJECTS, limit)) for limit in (1, 3)],
        [index.behind_oldest([(one, count) for one in SUBJECTS]) for count in (1, 3)],
        sorted(index.retained_subjects(Filters((b"a.*",)))),
        [purged(index, 21, keep) for keep in range(12)],
        [purged(index, 9, keep) for keep in (0, 1, 5)],
        [sorted(index.crowded(limit)) for limit in (1, 3, 6)],
    )


def purged(index: StoreIndex, bound: int, keep: int) -> list[int]:
    """What a purge takes, damaged or not."""
    bounds = index.purged(Filters((b"a.*",)), bound, keep)
    return sorted(seq for one, below in bounds for seq in index.oldest(one, 99) if seq < below)


@given(st.lists(st.integers(1, 20), unique=True), st.data())
def test_what_is_lost_counts_until_it_is_removed(lost: list[int], data: st.DataObject) -> None:
    index, whole = filled(20), filled(20)
    want = retained(index)
    for seq in lost:
        index.lose(seq, facts(seq))
        index.check()
    assert retained(index) == want
    assert index.messages == 20 - len(lost)
    assert index.bytes == sum(facts(seq).size for seq in range(1, 21) if seq not in lost)
    gone = sorted(data.draw(st.sets(st.sampled_from(lost)) if lost else st.just(set())))
    index.drop_lost(gone)
    whole.drop(gone, map(facts, gone))
    index.settle()
    whole.settle()
    index.check()
    assert retained(index) == retained(whole)
    for seq in lost:
        if seq not in gone:
            index.put_back(seq, facts(seq))
    index.check()
    assert (index.messages, index.bytes, index.digest) == (
        whole.messages,
        whole.bytes,
        whole.digest,
    )
    assert [index.subjects.live(one) for one in SUBJECTS] == [
        whole.subjects.live(one) for one in SUBJECTS
    ]


def test_what_nobody_knows_counts_as_a_message_without_size() -> None:
    lost = LostRecords()
    lost.add_unknown(3, 5)
    lost.add(7, UNKNOWN)
    assert (len(lost), lost.bytes, lost.digest) == (4, 0, 3 + 4 + 5 + 7)
    assert lost.remove(4) is UNKNOWN
    with pytest.raises(AssertionError):
        lost.add(3, facts(3))
    with pytest.raises(AssertionError):
        lost.remove(4)
    lost.clear()
    assert (len(lost), lost.digest) == (0, 0)


def test_totals_that_do_not_fit_are_noticed() -> None:
    index = filled(5)
    index.messages -= 1
    with pytest.raises(AssertionError):
        index.check()


@given(st.lists(st.integers(1, 60), unique=True, min_size=1), st.data())
def test_a_sequence_can_be_added_anywhere(seqs: list[int], data: st.DataObject) -> None:
    index = SubjectIndex()
    known: set[int] = set()
    for seq in seqs:
        index.insert(b"s", seq)
        known.add(seq)
        if data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(sorted(known)))
            assert index.remove(b"s", gone)
            known.discard(gone)
            if data.draw(st.booleans()):
                index.insert(b"s", gone)
                known.add(gone)
        assert index.live(b"s") == sorted(known)
        assert (index.first(b"s"), index.last(b"s")) == (
            min(known, default=None),
            max(known, default=None),
        )
