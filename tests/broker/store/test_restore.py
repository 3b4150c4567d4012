"""What was damaged is put back: every question is answered as before, also after a power cut."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.errors import Damaged, DiskError
from jsctl.broker.store import record
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.index import StoreIndex
from jsctl.broker.store.memory_store import MemoryStore
from jsctl.broker.store.message_store import MessageStore
from jsctl.broker.store.stream_store import StreamStore
from jsctl.broker.subject.matching import Filters
from tests.broker.store.test_retained import (
    COUNT,
    DAMAGES,
    OPTIONS,
    SUBJECTS,
    fill,
    flipped,
    gone,
    read_all,
    retained,
    row,
    segments,
    settle,
)
from tests.support.frames import encode_frame
from tests.support.quick import examples
from tests.support.sim_disk import SimDisk

FILTERS = [Filters(), Filters((b"a.1",)), Filters((b"a.*",)), Filters((b"b", b"a.2"))]


def answers(store: StreamStore) -> tuple[object, ...]:
    """All questions that a stream asks."""
    first, last = store.first_seq, store.last_seq
    return (
        store.state(),
        store.digest(),
        store.deleted(),
        [store.load(seq) for seq in range(last + 2)],
        [store.next_many(one, at, 5) for one in FILTERS for at in range(first, last + 2, 7)],
        [store.next(one, at) for one in FILTERS for at in range(first, last + 2, 5)],
        [(store.first_for(one), store.last_for(one), store.count_for(one)) for one in SUBJECTS],
        [store.num_pending(one, at) for one in FILTERS for at in range(first, last, 11)],
        [store.multi_last(one, at) for one in FILTERS for at in range(first, last, 11)],
        [store.seq_at_time(1000 + at) for at in range(0, last + 2, 3)],
        list(map(store.subjects, FILTERS)),
    )


def frames_of(store: StreamStore, first: int, last: int) -> list[bytes]:
    """What a peer sends of a range."""
    found = []
    while seqs := store.live_seqs(first, last, 8):
        found.append(record.frame_of_raw(store.read_raw(seqs)))
        first = seqs[-1] + 1
    return found


def damaged(kind: Callable[[SimDisk, int], None], at: int) -> tuple[SimDisk, MessageStore, object]:
    """A store whose damage is known, beside the one that it was."""
    disk, twin_disk = SimDisk(random.Random(at)), SimDisk(random.Random(at))
    fill(disk).close()
    twin = fill(twin_disk)
    kind(disk, at)
    store = MessageStore.open(disk, "s", OPTIONS)
    read_all(store)
    return disk, store, twin


@pytest.mark.parametrize("at", [250, 390])
def test_what_was_put_back_is_read_with_what_follows_wherever_was_read_before(at: int) -> None:
    """In its own segment, too, where what was read last lies further on."""
    _, store, twin = damaged(lambda disk, at: disk.flip_bit(segments(disk)[2], 8 * at), at)
    assert isinstance(twin, MessageStore)
    ((first, last),) = store.lost.ranges()
    store.restore(first, last, frames_of(twin, first, last))
    for ahead in range(last + 2, last + 9):
        store.next_many(Filters(), 1, 2)  # Elsewhere, so that the next look begins where it says
        store.next_many(Filters(), ahead, 2)
        for one in (first, last):
            assert store.next_many(Filters(), one, 3) == twin.next_many(Filters(), one, 3)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_all_questions_are_answered_as_before(damage: Callable[[SimDisk, int], None]) -> None:
    came_back = 0
    tried = examples(25)
    for at in range(tried):
        disk, store, twin = damaged(damage, at)
        assert isinstance(twin, MessageStore)
        want = answers(twin)
        lost = store.state().lost
        for first, last in lost:
            count = store.restore(first, last, frames_of(twin, first, last))
            assert count == last + 1 - first
            came_back += count
        store.check_totals()
        assert answers(store) == want, at
        settle(store)
        assert answers(store) == want, at
        store.check_totals()
        for _ in range(2):
            disk.crash()
            store = MessageStore.open(disk, "s", OPTIONS)
            assert answers(store) == want, at
            if lost:
                assert not store.damage, store.damage
            settle(store, True)
        for one in (store, twin):
            one.append(frame_of([row(COUNT + 1)]), 21)
            one.keep_newest(20, 0, 21)
        assert answers(store) == answers(twin)
    assert came_back > tried / 2


def test_a_segment_without_its_catalogue_is_put_back_too() -> None:
    for at in range(len(segments(damaged(flipped, 0)[0]))):
        disk, twin_disk = SimDisk(random.Random(at)), SimDisk(random.Random(at))
        fill(disk).close()
        twin = fill(twin_disk)
        path = segments(disk)[at]
        disk.remove(path)
        disk.remove(path.replace(".seg", ".cat"))
        store = MessageStore.open(disk, "s", OPTIONS)
        for first, last in store.state().lost:
            store.restore(first, last, frames_of(twin, first, last))
        assert [store.load(seq) for seq in range(COUNT)] == [twin.load(n) for n in range(COUNT)]
        settle(store)
        disk.crash()
        store = MessageStore.open(disk, "s", OPTIONS)
        assert answers(store) == answers(twin), at


@settings(max_examples=examples(80), deadline=None)
@given(st.integers(0, 100_000))
def test_power_may_fail_while_it_is_put_back(seed: int) -> None:
    """A crash leaves the damage or what was put back, never something else."""
    rng = random.Random(seed)
    disk, store, twin = damaged(list(DAMAGES.values())[seed % 4], seed)
    assert isinstance(twin, MessageStore)
    want, totals = answers(twin), retained(twin)
    for _ in range(3):
        disk.power_fails_in = rng.randrange(14)
        try:
            for first, last in store.state().lost:
                middle = rng.randint(first, last)
                store.restore(first, middle, frames_of(twin, first, middle))
                if rng.random() < 0.3:
                    settle(store)
                if middle < last:
                    store.restore(middle + 1, last, frames_of(twin, middle + 1, last))
            settle(store, rng.random() < 0.3)
        except DiskError:
            pass
        disk.power_fails_in = None
        disk.crash()
        store = MessageStore.open(disk, "s", OPTIONS)
        read_all(store)
        assert retained(store) == totals
        store.check_totals()
        for seq in range(1, COUNT + 1):
            if not any(first <= seq <= last for first, last in store.state().lost):
                assert store.load(seq) == twin.load(seq)
    for first, last in store.state().lost:
        store.restore(first, last, frames_of(twin, first, last))
    assert answers(store) == want


def test_what_peers_do_not_have_is_removed() -> None:
    for at in range(8):
        _, store, twin = damaged(gone, at)
        assert isinstance(twin, MessageStore)
        twin.remove([21, 33], 20)
        store.restore(1, COUNT, frames_of(twin, 1, COUNT))
        assert answers(store) == answers(twin)


def test_another_message_is_refused() -> None:
    _, store, twin = damaged(gone, 3)
    assert isinstance(twin, MessageStore)
    ((first, last), *_) = store.state().lost
    before = retained(store), store.state()
    wrong = [row(seq)._replace(payload=b"other") for seq in range(first, last + 1)]
    with pytest.raises(Damaged):
        store.restore(first, last, [encode_frame(wrong)])
    good = frames_of(twin, first, last)
    with pytest.raises(Damaged):
        store.restore(first, last, [*good[:-1], good[-1][:-1] + b"?"])
    with pytest.raises(Damaged):
        store.restore(first, last - 1, good)
    assert (retained(store), store.state()) == before


def test_a_store_in_memory_has_nothing_to_put_back() -> None:
    store = MemoryStore()
    store.append(frame_of([row(seq) for seq in range(1, 10)]), 1)
    frames = frames_of(store, 1, 6)
    assert store.restore(1, 6, frames) == 0
    assert store.restore(1, 9, frames) == 0
    assert store.messages == 6
    store.check_totals()


def test_only_segments_concerned_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream may have millions of messages in others."""
    _, store, twin = damaged(gone, 3)
    assert isinstance(twin, MessageStore)
    ((first, last), *_) = store.state().lost
    store.restore(1, COUNT, frames_of(twin, 1, COUNT))
    looked, live = list[int](), StoreIndex.live

    def noted(self: StoreIndex, start: int, stop: int, count: int) -> list[int]:
        found = live(self, start, stop, count)
        looked.extend(found)
        return found

    monkeypatch.setattr(StoreIndex, "live", noted)
    assert store.checkpoint() is not None
    assert set(range(first, last + 1)) <= set(looked)
    assert len(looked) < store.messages // 2
