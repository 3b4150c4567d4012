"""Files that rot, are cut, go, or cannot be read while a store is open: it goes on like a sound
one, and is whole again once what it lost was put back."""

import random
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.errors import Damaged
from jsctl.broker.store import contents
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.message_store import MessageStore, StoreOptions
from jsctl.broker.store.record import Record
from jsctl.broker.subject.matching import Filters
from tests.broker.store.test_retained import (
    COUNT,
    LIMITS,
    OPTIONS,
    fill,
    read_all,
    retained,
    row,
    segments,
    settle,
)
from tests.support.quick import examples
from tests.support.sim_disk import SimDisk

STEPS = 25
ROUNDS = 4


def flip(disk: SimDisk, path: str, rng: random.Random) -> None:
    disk.flip_bit(path, rng.randrange(8 * len(disk.content(path))))


def zero(disk: SimDisk, path: str, rng: random.Random) -> None:
    image = bytearray(disk.content(path))
    start = rng.randrange(len(image))
    image[start : start + 300] = bytes(len(image[start : start + 300]))
    disk.overwrite(path, bytes(image))


def cut(disk: SimDisk, path: str, rng: random.Random) -> None:
    image = disk.content(path)
    disk.overwrite(path, image[: rng.randrange(len(image))])


def remove(disk: SimDisk, path: str, rng: random.Random) -> None:
    disk.remove(path)


def refuse(disk: SimDisk, path: str, rng: random.Random) -> None:
    """Reads fail for a while."""
    start = rng.randrange(len(disk.content(path)))
    disk.unreadable.append((path, start, start + rng.choice([1, 300, 5000])))


FAULTS: list[Callable[[SimDisk, str, random.Random], None]] = [flip, zero, cut, remove, refuse]


def damage(disk: SimDisk, rng: random.Random, spoiled: dict[str, str] | None = None) -> None:
    """With `spoiled` of a segment either the file or its catalogue: without both nobody knows
    what there was."""
    spoiled = {} if spoiled is None else spoiled
    paths = [path for path in disk.paths() if path.endswith((".seg", ".cat"))]
    paths = [path for path in paths if disk.content(path)]
    fit = [path for path in paths if spoiled.get(path[:-4], path) == path]
    if fit:
        path = rng.choice(fit)
        spoiled[path[:-4]] = path
        rng.choice(FAULTS)(disk, path, rng)


def scrub(disk: SimDisk, store: MessageStore) -> int:
    """How much was found."""
    found = 0
    for check in store.resting():
        while not check.done:
            check.step(disk, 4096)
        found += bool(check.damage) and store.suspect(check) is not None
    return found


def view_all(store: MessageStore) -> None:
    """As somebody who takes a copy of everything."""
    view = store.view()
    try:
        while (portion := view.next_portion(200)) is not None:
            portion.read()
            view.settle(portion)
    except Damaged:
        pass
    finally:
        view.close()


LOOKS: list[Callable[[SimDisk, MessageStore], object]] = [
    lambda disk, store: read_all(store),
    scrub,
    lambda disk, store: store.excerpt(1, store.last_seq, 600),
    lambda disk, store: view_all(store),
    lambda disk, store: store.recount(),
    lambda disk, store: disk.unreadable.clear(),
]


def change(
    rng: random.Random, mark: int, *stores: MessageStore, limits: Iterable[str] = LIMITS
) -> None:
    kind, limit = rng.randrange(4), LIMITS[rng.choice(list(limits))]
    last = stores[-1].last_seq
    seqs = [last - 5, last - 11, rng.randrange(1, last)]
    for store in stores:
        if kind == 0:
            store.append(frame_of([row(seq) for seq in range(last + 1, last + 4)]), mark)
        elif kind == 1:
            store.remove(seqs, mark, erase=mark % 3 == 0)
        elif kind == 2:
            limit(store, mark)
        else:
            assert store.find_room()
            settle(store)


def repair(disk: SimDisk, store: MessageStore, twin: MessageStore) -> None:
    """As the broker does it with a peer, until nothing is found any more."""
    for _ in range(ROUNDS):
        assert store.find_room()
        settle(store)
        found = scrub(disk, store)
        store.recount()
        read_all(store)
        if not found and not store.lost:
            return
        for first, last in list(store.lost.ranges()):
            store.restore(first, last, twin.excerpt(first, last, 1 << 20).frames)
    pytest.fail("damage comes back")


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, 1 << 30), st.booleans())
def test_a_store_keeps_step_with_a_sound_one(seed: int, reopened: bool) -> None:
    rng = random.Random(seed)
    disk = SimDisk(random.Random(seed))
    store, twin = fill(disk), fill(SimDisk(random.Random(seed)))
    if reopened:
        store.close()
        store = MessageStore.open(disk, "s", OPTIONS)
    spoiled: dict[str, str] = {}
    for mark in range(21, 21 + STEPS):
        kind = rng.randrange(4)
        if kind == 0:
            damage(disk, rng, spoiled)
        elif kind == 1:
            rng.choice(LOOKS)(disk, store)
        else:
            change(rng, mark, store, twin)
        assert retained(store) == retained(twin)
        store.check_totals()
    disk.unreadable.clear()
    repair(disk, store, twin)
    store.close()
    store = MessageStore.open(disk, "s", OPTIONS)
    read_all(store)
    assert not store.lost
    assert store.digest() == twin.digest()


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, 1 << 30))
def test_what_nobody_knew_counts_again_once_it_is_back(seed: int) -> None:
    """Of a segment with its catalogue nothing may be left: it goes on, and is right in the end."""
    rng = random.Random(seed)
    disk = SimDisk(random.Random(seed))
    twin = fill(SimDisk(random.Random(seed)))
    fill(disk).close()
    store = MessageStore.open(disk, "s", OPTIONS)
    for mark in range(21, 21 + STEPS):
        kind = rng.randrange(4)
        if kind < 2:
            damage(disk, rng)
        elif kind == 2:
            rng.choice(LOOKS)(disk, store)
        else:
            change(rng, mark, store, twin, limits=("messages", "a delete"))
        assert store.retained_messages == twin.retained_messages
        assert store.first_seq == twin.first_seq
        store.check_totals()
    disk.unreadable.clear()
    repair(disk, store, twin)
    store.check_totals()
    assert store.digest_is_whole
    assert retained(store) == retained(twin)


def closed_segments(disk: SimDisk) -> MessageStore:
    """A store that was opened anew, so that no tables are in memory."""
    fill(disk).close()
    return MessageStore.open(disk, "s", OPTIONS)


def test_a_seal_that_cannot_be_read_for_a_while_costs_no_message() -> None:
    disk = SimDisk(random.Random(1))
    store = closed_segments(disk)
    path = segments(disk)[0]
    end = len(disk.content(path))
    held = store.live_seqs(1, 12, 9)
    # Who reads one alone needs no table.
    assert store.load(held[0]) is not None
    disk.unreadable.append((path, end - 20, end))
    store.append(frame_of([row(61)]), 21)
    assert len(store.load_range(held[0], 3)) == 3
    assert not store.lost


@pytest.mark.parametrize("gap", ["readable", "unreadable"])
def test_a_single_message_is_read_whatever_lies_behind_it(gap: str) -> None:
    """A frame ends behind each third message: what follows is no record of anybody."""
    disk = SimDisk(random.Random(1))
    store = closed_segments(disk)
    sealed = segments(disk)[:-1]
    checked = 0
    for seq in store.live_seqs(1, 60, 60):
        raw = store.read_raw((seq,))[0]
        store.close()
        store = MessageStore.open(disk, "s", OPTIONS)
        path = next(one for one in segments(disk) if raw in disk.content(one))
        end = disk.content(path).index(raw) + len(raw)
        if gap == "unreadable":
            disk.unreadable = [(path, end, end + 1)]
        found = store.load(seq)
        assert found is not None
        assert found.seq == seq
        assert not store.lost
        disk.unreadable.clear()
        checked += path in sealed
    assert checked > 20


def test_some_messages_end_before_the_first_that_is_damaged() -> None:
    disk = SimDisk(random.Random(1))
    store = fill(disk)
    held = store.live_seqs(1, 60, 60)
    bad = held[20]
    raw = store.read_raw((bad,))[0]
    path = next(one for one in segments(disk) if raw in disk.content(one))
    disk.flip_bit(path, 8 * (disk.content(path).index(raw) + len(raw) - 1))
    store.close()
    store = MessageStore.open(disk, "s", OPTIONS)
    wanted = [seq for seq in held if seq % 3]
    assert bad in wanted
    for _ in range(2):
        found = store.load_many(wanted)
        assert [one[0] for one in found] == wanted[: wanted.index(bad)]
        with pytest.raises(Damaged) as told:
            store.load_many(wanted[wanted.index(bad) :])
        assert told.value.first_seq == told.value.last_seq == bad
    behind = wanted[wanted.index(bad) + 1 :]
    assert [one[0] for one in store.load_many(behind)] == behind


def test_a_table_made_while_the_disk_failed_is_made_once_more() -> None:
    """What nobody asked for meanwhile must not be missing later."""
    disk = SimDisk(random.Random(1))
    store = closed_segments(disk)
    path = segments(disk)[1]
    disk.unreadable.append((path, 0, 1 << 20))
    first, second, *_ = store.live_seqs(20, 60, 9)
    with pytest.raises(Damaged):
        store.load_range(first, 2)
    assert list(store.lost.ranges()) == [(first, first)]
    disk.unreadable.clear()
    store.append(frame_of([row(61)]), 21)
    settle(store)
    assert len(store.load_range(second, 4)) == 4


def test_the_newest_file_is_written_once_more_where_it_was_removed() -> None:
    """With the checkpoint that follows the log lets go of what only this file has."""
    disk = SimDisk(random.Random(1))
    store = fill(disk)
    store.append(frame_of([row(61), row(62)]), 21)
    disk.remove(segments(disk)[-1])
    assert store.find_room()
    settle(store)
    store.append(frame_of([row(63)]), 22)
    settle(store)
    disk.crash()
    again = MessageStore.open(disk, "s", OPTIONS)
    read_all(again)
    assert not again.lost and not again.damage
    assert [found[0] for found in again.load_range(61, 9)] == [61, 62, 63]


def test_a_file_that_was_removed_is_no_room_for_what_it_held() -> None:
    disk = SimDisk(random.Random(1))
    store = fill(disk)
    store.append(frame_of([row(61)]), 21)
    disk.remove(segments(disk)[-1])
    disk.capacity, room = disk.capacity - disk.free_bytes(), disk.capacity
    assert not store.find_room()
    store.append(frame_of([row(62)]), 22)
    assert len(store.load_range(61, 2)) == 2
    disk.capacity = room
    assert store.find_room()
    settle(store)
    store.close()
    assert len(MessageStore.open(disk, "s", OPTIONS).load_range(61, 2)) == 2


def test_a_copy_of_a_store_ends_at_a_file_that_was_cut() -> None:
    disk = SimDisk(random.Random(1))
    store = closed_segments(disk)
    view = store.view()
    portion = view.next_portion(100)
    assert portion is not None
    disk.overwrite(segments(disk)[0], b"")
    portion.read()
    with pytest.raises(Damaged):
        view.settle(portion)


def test_a_segment_that_is_gone_is_not_written_anew_without_what_lives_in_it() -> None:
    disk = SimDisk(random.Random(1))
    store = MessageStore.open(disk, "s", OPTIONS)
    for mark, first in enumerate(range(1, COUNT + 1, 3), 1):
        store.append(frame_of([row(seq) for seq in range(first, first + 3)]), mark)
    settle(store)
    store.close()
    store = MessageStore.open(disk, "s", OPTIONS)
    path = segments(disk)[1]
    disk.remove(path)
    store.remove(range(13, 23), 21)
    settle(store)
    assert not disk.exists(path)
    with pytest.raises(Damaged):
        store.load(23)


@pytest.mark.parametrize("slot", range(4))
def test_a_bad_copy_of_the_position_has_no_damage_cut_off(slot: int) -> None:
    """Behind an older position what does not check would count as never promised."""
    disk = SimDisk(random.Random(1))
    store = fill(disk)
    store.append(frame_of([row(61), row(62)]), 21)
    settle(store)
    store.append(frame_of([row(63)]), 22)
    settle(store)
    store.close()
    newest = segments(disk)[-1]
    disk.flip_bit("s/durable", 8 * (512 * slot + 20))
    disk.flip_bit(newest, 8 * (len(disk.content(newest)) - 5))
    again = MessageStore.open(disk, "s", OPTIONS)
    read_all(again)
    assert again.last_seq == 63 and list(again.lost) == [63]


@pytest.mark.parametrize("filters", [Filters((b"s.*",)), Filters((b"s.0", b"s.*")), Filters()])
def test_what_is_found_before_damage_is_read_first(filters: Filters) -> None:
    disk = SimDisk(random.Random(3))
    store = MessageStore.open(disk, "s")
    for seq in range(1, 31):
        store.append(frame_of([(seq, 1, b"s.%d" % (seq % 3), b"", b"%04d" % seq)]), seq)
    settle(store)
    (path,) = (one for one in disk.paths() if one.endswith(".seg"))
    disk.flip_bit(path, 8 * disk.content(path).index(b"0011"))
    assert [one[0] for one in store.next_many(filters, 1, 20)] == list(range(1, 11))
    with pytest.raises(Damaged):
        store.next_many(filters, 11, 20)


def test_an_excerpt_ends_where_very_much_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_LOST_MAX", 5)
    monkeypatch.setattr(contents, "_EXCERPT_RECORDS", 2)
    disk = SimDisk(random.Random(1))
    store = fill(disk)
    live = store.live_seqs(1, store.last_seq, COUNT)
    for path in segments(disk):
        disk.remove(path)
    store.close()
    at, found = 1, list[int]()
    while at <= store.last_seq:
        told = store.excerpt(at, store.last_seq, 1 << 20)
        assert told.up_to >= at and len(told.lost) <= 6
        found += told.lost
        at = told.up_to + 1
    assert found == live


def test_damage_in_what_is_removed_keeps_nothing_on_the_disk() -> None:
    """Two segments that do not check were tried again each time, and none behind them ever."""
    disk = SimDisk(random.Random(1))
    store = MessageStore.open(disk, "S-1/messages", StoreOptions(segment_bytes=1000))
    for first in range(1, 61, 3):
        some = [Record(seq, seq, b"s", b"", b"%050d" % seq) for seq in range(first, first + 3)]
        store.append(frame_of(some), first)
    settle(store)
    paths = segments(disk)
    before = [len(disk.content(path)) for path in paths]
    live = [seq for seq in range(1, 61) if seq % 3 == 1]
    removed = [seq for seq in range(1, 61) if seq % 3 != 1]
    for path in paths[:2]:
        at = next(at for seq in removed if (at := disk.content(path).find(b"%050d" % seq)) > 0)
        disk.flip_bit(path, 8 * at)
    store.remove(removed, 100)
    settle(store)
    assert len(store.take_suspects()) == 2 and not store.take_suspects()
    for _ in paths:
        settle(store)
    assert [row[0] for row in store.load_many(live)] == live
    after = [len(disk.content(path)) for path in paths]
    assert all(2 * now < was for now, was in zip(after[:-1], before, strict=False))
    store.check_totals()
