"""A damaged store is sent all the same: what is whole arrives, what is not is lost there, too."""

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from jsctl.broker.errors import Damaged
from jsctl.broker.store import record
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.memory_store import MemoryStore
from jsctl.broker.store.message_store import MessageStore
from jsctl.broker.store.stream_store import StreamStore
from jsctl.broker.store.transfer import export
from tests.broker.store.test_restore import answers, frames_of
from tests.broker.store.test_retained import (
    DAMAGES,
    LIMITS,
    OPTIONS,
    fill,
    kept,
    read_all,
    retained,
    row,
    settle,
)
from tests.support.quick import examples, places
from tests.support.sim_disk import SimDisk


def damaged(kind: Callable[[SimDisk, int], None], at: int, known: bool) -> MessageStore:
    """A store with damage, which it may have to find out about itself."""
    filled, _ = kept()
    disk = filled.copy()
    kind(disk, at)
    store = MessageStore.open(disk, "s", OPTIONS)
    if known:
        read_all(store)
    return store


def received(source: StreamStore, seed: int) -> tuple[SimDisk, MessageStore]:
    """Another store with all that was sent, durable."""
    disk = SimDisk(random.Random(seed))
    store = MessageStore.open(disk, "s", OPTIONS)
    done = [store.import_chunk(chunk) for chunk in source.export_chunks()]
    assert done[-1] and not any(done[:-1])
    settle(store)
    return disk, store


def readable(store: StreamStore) -> dict[int, bytes]:
    """Every message that can be read, as it is stored."""
    found = {}
    for seq in store.live_seqs(0, store.last_seq, store.last_seq):
        try:
            found[seq] = store.read_raw((seq,))[0]
        except Damaged:
            assert store.state().lost
    return found


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_what_is_whole_arrives_and_what_is_not_is_named(
    damage: Callable[[SimDisk, int], None], known: bool
) -> None:
    lost = 0
    for at in range(examples(40)):
        source = damaged(damage, at, known)
        disk, store = received(source, at)
        lost += len(source.state().lost)
        for crash in (None, disk.kill, disk.crash):
            if crash is not None:
                crash()
                store = MessageStore.open(disk, "s", OPTIONS)
            assert store.state() == source.state(), at
            assert retained(store) == retained(source), at
            assert readable(store) == readable(source), at
            store.check_totals()
    assert lost or not known


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS.keys())
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_both_go_on_removing_the_same(
    damage: Callable[[SimDisk, int], None], limit: Callable[[MessageStore, int], object]
) -> None:
    for at in range(examples(12)):
        source = damaged(damage, at, True)
        disk, store = received(source, at)
        disk.kill()
        store = MessageStore.open(disk, "s", OPTIONS)
        for one in (source, store):
            one.append(frame_of([row(61), row(62)]), 30)
            limit(one, 31)
        settle(store)
        disk.crash()
        store = MessageStore.open(disk, "s", OPTIONS)
        assert retained(store) == retained(source), at
        assert store.state().lost == source.state().lost, at


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_what_was_lost_on_the_way_is_put_back(damage: Callable[[SimDisk, int], None]) -> None:
    twin = fill(SimDisk(random.Random(1)))
    put_back = 0
    for at in range(examples(25)):
        disk, store = received(damaged(damage, at, True), at)
        if at % 2:
            disk.kill()
            store = MessageStore.open(disk, "s", OPTIONS)
        for first, last in store.state().lost:
            put_back += store.restore(first, last, frames_of(twin, first, last))
        assert answers(store) == answers(twin), at
        settle(store)
        disk.crash()
        store = MessageStore.open(disk, "s", OPTIONS)
        assert not store.damage
        assert answers(store) == answers(twin), at
    assert put_back


def test_damage_that_shows_while_it_is_read_is_named_too() -> None:
    class Rotting:
        """Rows that are damaged one after the other, from behind, whenever they are looked at."""

        def __init__(self) -> None:
            self.store = MemoryStore()
            self.store.append(frame_of([row(seq) for seq in range(1, 8)]), 1)
            self.bad = {7: 1, 4: 2, 3: 3}
            self.looks = 0

        def __getattr__(self, name: str) -> object:
            return getattr(self.store, name)

        def read_raw(self, seqs: list[int]) -> list[bytes]:
            self.looks += 1
            for seq in seqs:
                if self.bad.get(seq, self.looks + 1) <= self.looks:
                    raise Damaged("rot", path="x", first_seq=seq, last_seq=seq)
            return self.store.read_raw(seqs)

        def lost_records(self, seqs: list[int]) -> bytes:
            return b",".join(b"%d" % seq for seq in seqs)

    source: Any = Rotting()
    told = [(one[0], one[5:]) for one in export(source, 0)]
    rows = [
        record.raw_seq_at(body, at)
        for kind, body in told
        if kind == 2
        for at in record.offsets(body, record.FRAME_HEADER_BYTES, len(body))
    ]
    lost = [int(seq) for kind, body in told if kind == 4 for seq in body.split(b",")]
    assert sorted(rows + lost) == list(range(1, 8))
    assert lost == [3, 4, 7]


def test_rows_of_damage_that_do_not_decode_are_refused() -> None:
    source = next(
        one for at in range(20) if (one := damaged(DAMAGES["zeros"], at, True)).state().lost
    )
    chunks = list(source.export_chunks())
    at = next(number for number, one in enumerate(chunks) if one[0] == 4)
    body = chunks[at][5:]
    for size in places(range(len(body))):
        store = MessageStore.open(SimDisk(random.Random(0)), "s", OPTIONS)
        for chunk in chunks[:at]:
            store.import_chunk(chunk)
        with suppress(Damaged):
            store.import_lost(body[:size])
            store.check_totals()
    store = MessageStore.open(SimDisk(random.Random(0)), "s", OPTIONS)
    for chunk in chunks[: at + 1]:
        store.import_chunk(chunk)
    with pytest.raises(Damaged, match="go back"):
        store.import_lost(body)
    with pytest.raises(Damaged, match="in memory"):
        memory = MemoryStore()
        for chunk in chunks[: at + 1]:
            memory.import_chunk(chunk)


def test_the_time_of_a_damaged_last_message_is_known() -> None:
    disk = SimDisk(random.Random(1))
    twin = fill(disk)
    last = twin.last_seq + 1
    twin.append(frame_of([row(last)]), 50)
    settle(twin)
    spoiled = disk.copy()
    newest = max(path for path in disk.paths() if path.endswith(".seg"))
    spoiled.flip_bit(newest, 8 * (len(disk.content(newest)) - 3))
    spoiled.overwrite(newest.replace(".seg", ".cat"), b"")
    store = MessageStore.open(spoiled, "s", OPTIONS)
    assert store.state().lost == ((last, last),)
    assert store.last_time_ns == twin.last_time_ns
    store.restore(last, last, frames_of(twin, last, last))
    assert retained(store) == retained(twin)
