"""Damage does not change what limits remove: a damaged store goes on like one without damage."""

import random
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.errors import Damaged
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.message_store import MessageStore, StoreOptions
from jsctl.broker.store.record import Record
from jsctl.broker.subject.matching import Filters
from tests.support.quick import examples
from tests.support.sim_disk import SimDisk

OPTIONS = StoreOptions(segment_bytes=900)
ALL = Filters()
SUBJECTS = [b"a.1", b"a.2", b"b"]
COUNT = 60


def row(seq: int) -> Record:
    headers = b"NATS/1.0\r\n\r\n" if seq % 4 == 0 else b""
    return Record(seq, 1000 + seq, SUBJECTS[seq * 7 % 3], headers, bytes(seq % 11) + b"%d" % seq)


def settle(store: MessageStore, index: bool = False) -> None:
    job = store.checkpoint(index)
    if job is not None:
        job.run()
        store.done(job)


def fill(disk: SimDisk, index: bool = False) -> MessageStore:
    """Frames of three over several segments, with removals and checkpoints between them."""
    store = MessageStore.open(disk, "s", OPTIONS)
    for mark, first in enumerate(range(1, COUNT + 1, 3), 1):
        store.append(frame_of([row(seq) for seq in range(first, first + 3)]), mark)
        if mark % 4 == 0:
            store.remove([first - 4, first - 9], mark)
        if mark % 5 == 0:
            settle(store)
    store.truncate_front(5, 20)
    settle(store, index)
    return store


@cache
def kept(index: bool = False) -> tuple[SimDisk, tuple[object, ...]]:
    """A filled store that is closed: its disk, to be copied, and what it retained."""
    disk = SimDisk(random.Random(3))
    store = fill(disk, index)
    found = retained(store)
    store.close()
    return disk, found


def retained(store: MessageStore) -> tuple[object, ...]:
    """All that limits look at, and what follows from the log."""
    state = store.state()
    return (
        store.retained_messages,
        store.retained_bytes,
        {name: store.retained_for(name) for name in SUBJECTS},
        store.digest(),
        (state.first_seq, state.last_seq, state.num_deleted, state.mark, state.last_time_ns),
        store.deleted(),
    )


def read_all(store: MessageStore) -> None:
    """Meet all damage that there is."""
    start = store.first_seq
    while start <= store.last_seq:
        try:
            rows = store.next_many(ALL, start, 7)
            start = rows[-1][0] + 1 if rows else store.last_seq + 1
        except Damaged as error:
            start = error.last_seq + 1


LIMITS: dict[str, Callable[[MessageStore, int], object]] = {
    "messages": lambda store, mark: store.keep_newest(30, 0, mark),
    "bytes": lambda store, mark: store.keep_newest(0, 1500, mark),
    "a subject": lambda store, mark: store.remove_oldest([(b"a.1", 9)], mark),
    "the last of a subject": lambda store, mark: store.keep_last(SUBJECTS[:2], mark),
    "a purge": lambda store, mark: store.purge(Filters((b"a.*",)), None, 4, mark),
    "a purge up to": lambda store, mark: store.purge(Filters((b"b",)), 40, 0, mark),
    "a purge of all": lambda store, mark: store.purge(None, None, 11, mark),
    "a delete": lambda store, mark: store.remove(range(8, 33), mark),
}


def segments(disk: SimDisk) -> list[str]:
    return [path for path in disk.paths() if path.endswith(".seg")]


def flipped(disk: SimDisk, at: int) -> None:
    path = segments(disk)[at % len(segments(disk))]
    disk.flip_bit(path, at * 7919 % (8 * len(disk.content(path))))


def zeroed(disk: SimDisk, at: int) -> None:
    path = segments(disk)[at % len(segments(disk))]
    image = bytearray(disk.content(path))
    start = at * 7919 % len(image)
    image[start : start + 300] = bytes(len(image[start : start + 300]))
    disk.overwrite(path, bytes(image))


def cut(disk: SimDisk, at: int) -> None:
    path = segments(disk)[at % len(segments(disk))]
    image = disk.content(path)
    disk.overwrite(path, image[: at * 7919 % len(image)])


def gone(disk: SimDisk, at: int) -> None:
    disk.remove(segments(disk)[at % len(segments(disk))])


DAMAGES = {"a bit": flipped, "zeros": zeroed, "a cut": cut, "a missing file": gone}


@pytest.mark.parametrize("index", [False, True], ids=["segments", "index"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_totals_of_a_damaged_store_are_those_without_damage(
    damage: Callable[[SimDisk, int], None], index: bool
) -> None:
    lost = 0
    tried = examples(60)
    for at in range(tried):
        filled, want = kept(index)
        disk = filled.copy()
        damage(disk, at)
        for _ in range(3):
            store = MessageStore.open(disk, "s", OPTIONS)
            read_all(store)
            assert retained(store) == want, at
            store.check_totals()
            settle(store)
            store.close()
        lost += bool(store.state().lost)
    assert lost > tried / 5


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS.keys())
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_limits_remove_the_same(
    damage: Callable[[SimDisk, int], None], limit: Callable[[MessageStore, int], object]
) -> None:
    disk = SimDisk(random.Random(3))
    want = limited(fill(disk), disk, limit)
    for at in range(examples(20)):
        disk = kept()[0].copy()
        damage(disk, at)
        store = MessageStore.open(disk, "s", OPTIONS)
        assert limited(store, disk, limit) == want, at


def limited(
    store: MessageStore, disk: SimDisk, limit: Callable[[MessageStore, int], object]
) -> tuple[object, ...]:
    """What is retained after a limit, one more message, and the limit again."""
    limit(store, 21)
    store.append(frame_of([row(COUNT + 1)]), 22)
    limit(store, 22)
    read_all(store)
    store.check_totals()
    settle(store)
    store.close()
    return retained(MessageStore.open(disk, "s", OPTIONS))


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS.keys())
def test_damage_while_it_runs_removes_the_same(
    limit: Callable[[MessageStore, int], object],
) -> None:
    def left(damage_at: int | None, read: bool) -> tuple[object, ...]:
        disk = SimDisk(random.Random(3))
        store = fill(disk)
        if damage_at is not None:
            (flipped if damage_at % 2 else zeroed)(disk, damage_at)
        if read:
            read_all(store)
        limit(store, 21)
        store.check_totals()
        return retained(store)

    want = {read: left(None, read) for read in (False, True)}
    for at in range(20):
        assert left(at, bool(at % 3)) == want[bool(at % 3)], at


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_power_cuts_beside_damage(data: st.DataObject) -> None:
    """A store that is damaged and loses power again and again keeps step with a sound one."""
    seed = data.draw(st.integers(0, 100_000))
    rng = random.Random(seed)
    disk, twin_disk = SimDisk(random.Random(seed)), SimDisk(random.Random(seed))
    store = fill(disk)
    twin = fill(twin_disk)
    store.close()
    list(DAMAGES.values())[seed % 4](disk, seed)
    history: list[tuple[int, int]] = []
    for _ in range(4):
        store = MessageStore.open(disk, "s", OPTIONS)
        for at, (kind, last) in enumerate(history):
            change(store, kind, last, 21 + at)
        assert retained(store) == retained(twin)
        for _ in range(6):
            history.append((rng.randrange(4), store.last_seq))
            for one in (store, twin):
                change(one, *history[-1], 20 + len(history))
            if rng.random() < 0.4:
                settle(store, rng.random() < 0.3)
        read_all(store)
        store.check_totals()
        disk.crash()


def change(store: MessageStore, kind: int, last: int, mark: int) -> None:
    if kind < 2:
        frame = frame_of([row(seq) for seq in range(last + 1, last + 4)])
        if mark >= store.mark:
            store.append(frame, mark)
            store.keep_newest(40, 2000, mark)
    elif kind == 2:
        store.purge(Filters((b"a.2",)), None, 3, mark)
    else:
        store.remove([last - 5, last - 11], mark)
