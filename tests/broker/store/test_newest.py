"""The newest message of each subject, found a portion at a time while the store goes on."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jsctl.broker.store import subject_index
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.index import StoreIndex
from jsctl.broker.store.memory_store import MemoryStore
from jsctl.broker.store.views import newest
from jsctl.broker.store.views.newest import KNOWN, NewestOfEach
from jsctl.broker.subject.matching import Filters
from tests.support.quick import examples

FILTERS = (Filters(), Filters((b"k.>",)), Filters((b"k.1", b"k.2", b"no")), Filters((b"*.3",)))
subjects = st.integers(0, 40).map(lambda number: b"k.%d" % number)
change = st.tuples(st.lists(subjects, max_size=4), st.integers(1, 80), st.integers(0, 3))
"""What comes, how much goes, and how many steps a search takes before."""
Change = tuple[list[bytes], int, int]


def store(names: list[bytes], mark: int = 1, into: MemoryStore | None = None) -> MemoryStore:
    """A store with a message for each of these names behind what it has."""
    made = into or MemoryStore()
    first = made.last_seq + 1
    if names:
        made.append(
            frame_of([(first + n, 1, name, b"", b"") for n, name in enumerate(names)]), mark
        )
    return made


def index_of(made: MemoryStore) -> StoreIndex:
    """What it knows."""
    return made._index


@settings(max_examples=examples(300), deadline=None)
@given(names=st.lists(subjects, max_size=80), filters=st.sampled_from(FILTERS))
def test_portions_find_what_one_look_finds(names: list[bytes], filters: Filters) -> None:
    made = store(names)
    for portion in (1, 3, 16, 1000):
        search = NewestOfEach(index_of(made), filters, portion)
        steps = 1
        while not search.step():
            steps += 1
        assert search.found.tolist() == made.multi_last(filters)
        assert search.step(), "and nothing is added"
        assert search.found.tolist() == made.multi_last(filters)
        assert portion < 1000 or steps == 1


@settings(max_examples=examples(300), deadline=None)
@given(
    names=st.lists(subjects, min_size=20, max_size=80),
    changes=st.lists(change, max_size=8),
    filters=st.sampled_from(FILTERS),
)
def test_what_comes_meanwhile_does_not_count_and_what_goes_may_be_missing(
    names: list[bytes], changes: list[Change], filters: Filters
) -> None:
    made = store(names)
    before = made.multi_last(filters)
    search = NewestOfEach(index_of(made), filters, 4)
    for mark, (more, gone, steps) in enumerate(changes, 2):
        for _ in range(steps):
            search.step()
        store(more, mark, made)
        made.remove([gone, gone + 3], mark)
    while not search.step():
        pass
    found = search.found.tolist()
    assert found == sorted(set(found))
    assert all(seq <= search.up_to == len(names) for seq in found)
    kept = {seq for seq in before if made.is_live(seq)}
    assert kept <= set(found), "what is still there was not missed"


def test_no_step_looks_at_more_than_a_portion() -> None:
    made = store([b"k.%d" % (number * 7919 % 10_007) for number in range(10_000)])
    looked: list[int] = []

    class Counting(Filters):
        __slots__ = ()

        def select(self, subjects: object) -> list[bytes]:
            found = super().select(subjects)  # type: ignore[arg-type]
            looked.append(len(found))
            return found

    search = NewestOfEach(index_of(made), Counting((b"k.>",)), 256)
    sizes: list[int] = []
    while True:
        before = len(search.found)
        done = search.step()
        sizes.append(len(search.found) - before)
        if done:
            break
    assert max(looked) <= 256
    assert max(sizes) <= 2 * 256, "parts of the merged run are about a portion"
    assert search.found.tolist() == list(range(1, 10_001))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many subjects are few."""
    monkeypatch.setattr(newest, "SHORT", 10)


def all_steps(search: NewestOfEach) -> list[int]:
    while not search.step():
        pass
    return search.found.tolist()


@pytest.mark.usefixtures("short")
def test_what_was_found_is_not_looked_for_again() -> None:
    made = store([b"k.%d" % (number % 500) for number in range(1000)])
    index = index_of(made)

    def search(filters: Filters) -> int:
        before = index.subjects.searched
        assert all_steps(NewestOfEach(index, filters, 64)) == made.multi_last(filters)
        return index.subjects.searched - before - len(index.subjects)

    every, other = Filters((b"k.>",)), Filters((b"*.3",))
    assert search(every) == 500
    assert search(Filters((b"k.>",))) == 500 // KNOWN
    assert search(other) == 500
    assert search(every) == 500, "one is kept"
    store([b"k.7", b"k.8", b"k.7", b"n.1", b"k.new"], 2, made)
    assert search(every) == 500 // KNOWN + 4
    made.remove([600], 3)
    assert search(every) == 501 // KNOWN + 1
    assert search(every) == 501 // KNOWN


@pytest.mark.usefixtures("short")
def test_an_array_that_was_given_is_not_changed() -> None:
    made = store([b"k.%d" % number for number in range(100)])
    first = NewestOfEach(index_of(made), FILTERS[0])
    assert first.step()
    same = NewestOfEach(index_of(made), FILTERS[0])
    assert same.step() and same.found is first.found
    store([b"k.7"], 2, made)
    assert all_steps(NewestOfEach(index_of(made), FILTERS[0])) == made.multi_last(FILTERS[0])
    assert first.found.tolist() == list(range(1, 101))


@pytest.mark.usefixtures("short")
@settings(
    max_examples=examples(300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    names=st.lists(subjects, min_size=30, max_size=80),
    changes=st.lists(change, max_size=12),
    filters=st.sampled_from(FILTERS),
)
def test_what_is_known_is_brought_up_to_date_with_what_changed(
    names: list[bytes], changes: list[Change], filters: Filters
) -> None:
    made = store(names)
    searches = [NewestOfEach(index_of(made), filters, 4)]
    for mark, (more, gone, steps) in enumerate(changes, 2):
        for _ in range(steps):
            searches[-1].step()
        if steps == 0:
            searches.append(NewestOfEach(index_of(made), filters, 4))
        store(more, mark, made)
        made.remove([gone, gone + 3], mark)
    all_steps(searches[-1])
    assert all_steps(NewestOfEach(index_of(made), filters, 1000)) == made.multi_last(filters)
    made.remove([made.last_seq], len(changes) + 2)
    assert all_steps(NewestOfEach(index_of(made), filters, 1000)) == made.multi_last(filters)


@pytest.mark.usefixtures("short")
def test_a_search_that_nobody_goes_on_with_keeps_nothing_from_others() -> None:
    made = store([b"k.%d" % number for number in range(100)])
    given_up = NewestOfEach(index_of(made), FILTERS[0], 16)
    given_up.step()
    store([b"k.7", b"k.new"], 2, made)
    beside = NewestOfEach(index_of(made), FILTERS[0], 16)
    beside.step()
    store([b"k.8"], 3, made)
    made.remove([99], 4)
    all_steps(beside)
    first = NewestOfEach(index_of(made), FILTERS[0])
    assert first.step() and first.found.tolist() == made.multi_last(FILTERS[0])
    second = NewestOfEach(index_of(made), FILTERS[0])
    assert second.step() and second.found is first.found
    assert not given_up.step(), "it may go on"


@pytest.mark.usefixtures("short")
def test_when_very_many_change_all_are_looked_for_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject_index, "_CHANGED_MAX", 10)
    made = store([b"k.%d" % number for number in range(100)])
    all_steps(NewestOfEach(index_of(made), FILTERS[0]))
    store([b"k.%d" % number for number in range(10)], 2, made)
    assert index_of(made).subjects.newest is not None
    store([b"k.77"], 3, made)
    assert index_of(made).subjects.newest is None
    assert all_steps(NewestOfEach(index_of(made), FILTERS[0])) == made.multi_last(FILTERS[0])
