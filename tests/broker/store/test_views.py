"""Views of stores: what a view shows is one state, whatever happens to the store meanwhile."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.errors import Damaged
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.memory_store import MemoryStore
from jsctl.broker.store.message_store import MessageStore, StoreOptions
from jsctl.broker.store.record import Record
from jsctl.broker.store.stream_store import StreamStore
from jsctl.broker.store.views.view import StoreView
from tests.support.quick import examples
from tests.support.sim_disk import SimDisk

Step = tuple[str, int]


def row(seq: int) -> Record:
    return Record(seq, 1000 + seq, b"s.%d" % (seq % 3), b"", b"%04d" % seq + bytes(seq % 40))


def in_files() -> StreamStore:
    return MessageStore.open(SimDisk(random.Random(3)), "s", StoreOptions(segment_bytes=400))


STORES = {"memory": MemoryStore, "files": in_files}


def settle(store: StreamStore) -> None:
    job = store.checkpoint()
    if job is not None:
        job.run()
        store.done(job)


class Play:
    """A store, and what it has to hold."""

    def __init__(self, store: StreamStore) -> None:
        self.store = store
        self.live: dict[int, Record] = {}
        self._mark = 0

    def append(self, count: int) -> None:
        rows = [row(self.store.last_seq + 1 + at) for at in range(count)]
        self._mark += 1
        self.store.append(frame_of(rows), self._mark)
        self.live.update((one.seq, one) for one in rows)

    def take(self, step: Step) -> None:
        what, number = step
        self._mark += 1
        if what == "append":
            self.append(number % 5 + 1)
        elif what == "checkpoint":
            settle(self.store)
        elif what == "cut":
            first = number % (self.store.last_seq + 2)
            self.store.truncate_front(first, self._mark)
            self.live = {seq: one for seq, one in self.live.items() if seq >= first}
        elif self.live:
            seq = sorted(self.live)[number % len(self.live)]
            self.store.remove([seq], self._mark, erase=what == "erase")
            del self.live[seq]


STEPS = st.tuples(
    st.sampled_from(["append", "remove", "remove", "erase", "cut", "checkpoint"]),
    st.integers(0, 1000),
)


def all_of(view: StoreView, between: Callable[[], None]) -> list[Record]:
    found: list[Record] = []
    while (portion := view.next_portion(150)) is not None:
        between()
        portion.read()
        between()
        found += map(Record._make, view.settle(portion))
    return found


@pytest.mark.parametrize("kind", STORES)
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(STEPS, max_size=25), st.lists(STEPS, max_size=60))
def test_a_view_shows_what_was_there(kind: str, before: list[Step], meanwhile: list[Step]) -> None:
    play = Play(STORES[kind]())
    play.append(20)
    for step in before:
        play.take(step)
    then, left = dict(play.live), iter(meanwhile)

    def between() -> None:
        step = next(left, None)
        if step is not None:
            play.take(step)

    view = play.store.view()
    assert all_of(view, between) == [then[seq] for seq in sorted(then)]
    view.close()
    settle(play.store)
    now = play.store.load_range(1, 10_000)
    assert [one[0] for one in now] == sorted(play.live)
    play.store.check_totals()


@pytest.mark.parametrize("kind", STORES)
def test_what_was_held_goes_with_the_last_view(kind: str) -> None:
    play = Play(STORES[kind]())
    for _ in range(20):
        play.append(5)
    settle(play.store)
    first, second = play.store.view(), play.store.view()
    play.take(("cut", 101))
    settle(play.store)
    assert len(all_of(first, lambda: None)) == 100
    first.close()
    first.close()
    settle(play.store)
    assert len(all_of(second, lambda: None)) == 100
    second.close()
    settle(play.store)
    if isinstance(play.store, MessageStore):
        assert len(play.store.resting()) < 8, "the segments are given up"


def test_files_that_a_view_kept_are_found_as_they_were_after_a_restart() -> None:
    disk = SimDisk(random.Random(3))
    options = StoreOptions(segment_bytes=400)
    store = MessageStore.open(disk, "s", options)
    play = Play(store)
    for _ in range(20):
        play.append(5)
    settle(store)
    store.view()
    play.take(("cut", 90))
    settle(store)
    store.close()
    again = MessageStore.open(disk, "s", options)
    assert [one[0] for one in again.load_range(1, 1000)] == sorted(play.live)
    settle(again)
    again.check_totals()


def test_damage_is_named_and_what_is_put_back_is_shown() -> None:
    disk = SimDisk(random.Random(3))
    store = MessageStore.open(disk, "s", StoreOptions(segment_bytes=400))
    play = Play(store)
    for _ in range(20):
        play.append(5)
    settle(store)
    (raw,) = store.read_raw([3])
    path = next(path for path in disk.paths() if path.endswith(".seg"))
    at = disk.content(path).index(raw)
    disk.flip_bit(path, 8 * (at + len(raw) - 1))
    view = store.view()
    with pytest.raises(Damaged) as caught:
        all_of(view, lambda: None)
    assert (caught.value.first_seq, caught.value.last_seq) == (3, 3)
    view.close()


@pytest.mark.parametrize("kind", STORES)
def test_a_view_outlives_a_store_that_begins_anew(kind: str) -> None:
    disk, options = SimDisk(random.Random(3)), StoreOptions(segment_bytes=400)
    in_memory = kind == "memory"
    store = MemoryStore() if in_memory else MessageStore.open(disk, "s", options)
    for mark in range(1, 31):
        store.append(frame_of([row(mark)]), mark)
    settle(store)
    view, found = store.view(), list[int]()
    store.truncate_front(31, 31)
    store.set_first(1000, 31)
    settle(store)
    while (portion := view.next_portion(200)) is not None:
        portion.read()
        found += [row[0] for row in view.settle(portion)]
    assert found == list(range(1, 31))
    view.close()
    store.append(frame_of([row(1000)]), 32)
    settle(store)
    if not in_memory:
        again = MessageStore.open(disk, "s", options)
        assert not again.damage
        assert again.state() == store.state()
        assert len(again.resting()) < 10, "nothing of before is left"
