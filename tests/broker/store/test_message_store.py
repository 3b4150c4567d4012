"""The file store under damage: what does not check is named, everything else is served."""

import random
from contextlib import suppress

import pytest

from jsctl.broker.errors import Damaged, DiskError, DiskFull, SyncFailed
from jsctl.broker.store.checkpoint import CheckpointJob
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.memory_store import MemoryStore
from jsctl.broker.store.message_store import MessageStore, StoreOptions
from jsctl.broker.store.record import Record
from jsctl.broker.subject.matching import Filters
from tests.support.quick import examples, places
from tests.support.scarce_disk import ScarceDisk
from tests.support.sim_disk import SimDisk

OPTIONS = StoreOptions(segment_bytes=400)
ALL = Filters()


def row(seq: int, size: int = 20) -> Record:
    return Record(seq, 1000 + seq, b"s.%d" % (seq % 3), b"", b"%04d" % seq + bytes(size))


def open_store(disk: SimDisk, options: StoreOptions = OPTIONS) -> MessageStore:
    return MessageStore.open(disk, "s", options)


def settle(store: MessageStore, index: bool = False) -> None:
    job = store.checkpoint(index)
    if job is not None:
        job.run()
        store.done(job)


def filled(count: int = 9, index: bool = False) -> SimDisk:
    """A store of frames with three messages each, one message removed, all of it durable."""
    disk = SimDisk(random.Random(3))
    store = open_store(disk)
    for mark, first in enumerate(range(1, count + 1, 3), 1):
        store.append(frame_of([row(seq) for seq in range(first, first + 3)]), mark)
    store.remove([4], 100)
    settle(store, index)
    store.close()
    return disk


def check(disk: SimDisk, whole: set[int], quiet: bool = False) -> bool:
    """Every sequence is right, removed rightly, or named as damaged; whether all is there."""
    store = open_store(disk)
    state = store.state()
    assert state.last_seq == 9
    assert state.mark == 100
    lost: set[int] = set()
    for first, last in state.lost:
        lost.update(range(first, last + 1))
    for seq in range(1, 10):
        try:
            found = store.load(seq)
        except Damaged as error:
            assert error.first_seq <= seq <= error.last_seq
            lost.add(seq)
            continue
        # A removal that is lost with its envelope may bring a message back, but is noticed.
        assert found == (row(seq) if seq in whole else None) or (seq == 4 and store.damage), seq
    assert not lost or quiet or store.damage
    store.close()
    return not lost


@pytest.mark.parametrize("index", [False, True])
def test_every_flipped_bit_of_a_segment_is_noticed(index: bool) -> None:
    disk = filled(index=index)
    whole = set(range(1, 10)) - {4}
    assert check(disk, whole)
    for path in [p for p in disk.paths() if p.endswith(".seg")]:
        image = disk.content(path)
        for bit in places(range(0, 8 * len(image), 1 if not index else 5)):
            rotten = disk.copy()
            rotten.flip_bit(path, bit)
            check(rotten, whole, quiet=index)


def test_every_cut_of_a_segment_is_noticed() -> None:
    disk = filled()
    whole = set(range(1, 10)) - {4}
    for path in [p for p in disk.paths() if p.endswith(".seg")]:
        image = disk.content(path)
        for length in places(range(len(image))):
            short = disk.copy()
            short.overwrite(path, image[:length])
            check(short, whole)


@pytest.mark.parametrize("name", ["s/index", "s/durable"])
def test_every_flipped_bit_beside_the_segments_is_harmless(name: str) -> None:
    disk = filled(index=True)
    whole = set(range(1, 10)) - {4}
    image = disk.content(name)
    for bit in places([b for b in range(8 * len(image)) if image[b // 8] or not b % 64]):
        disk.flip_bit(name, bit)
        assert check(disk, whole), bit
        disk.overwrite(name, image)
    for length in places(range(len(image))):
        disk.overwrite(name, image[:length])
        assert check(disk, whole), length


@pytest.mark.parametrize("slot", [0, 512])
def test_one_copy_of_the_durable_position_that_cannot_be_read_is_harmless(slot: int) -> None:
    disk = filled()
    disk.unreadable = [("s/durable", slot, slot + 512)]
    assert check(disk, set(range(1, 10)) - {4})


def test_what_cannot_be_read_does_not_take_its_neighbours_along() -> None:
    """A look ahead ends there; what lies before and behind is read all the same."""
    disk = filled()
    store = open_store(disk)
    path, at = next(
        (path, disk.content(path).find(b"0006"))
        for path in disk.paths()
        if b"0006" in disk.content(path)
    )
    disk.unreadable = [(path, at, at + 1)]
    assert [one[0] for one in store.load_range(1, 10)] == [1, 2, 3, 5]
    with pytest.raises(Damaged) as caught:
        store.load_range(6, 10)
    assert (caught.value.first_seq, caught.value.last_seq) == (6, 6)
    assert [one[0] for one in store.load_range(7, 10)] == [7, 8, 9]
    assert store.state().lost == ((6, 6),)


def test_a_missing_segment_is_lost_and_not_deleted() -> None:
    disk = filled()
    disk.remove("s/0000000002.seg")
    store = open_store(disk)
    assert store.state().lost and store.state().last_seq == 9
    with pytest.raises(Damaged) as caught:
        store.next(ALL, store.state().lost[0][0])
    assert caught.value.last_seq == store.state().lost[0][1]
    assert store.next(ALL, caught.value.last_seq + 1) is not None


def test_damage_found_while_reading_stops_in_front_of_it() -> None:
    disk = filled()
    store = open_store(disk)
    for path in disk.paths():
        at = disk.content(path).find(b"0006")
        if at >= 0 and path.endswith(".seg"):
            disk.flip_bit(path, 8 * at)
    assert [one[0] for one in store.next_many(ALL, 1, 20)] == [1, 2, 3, 5]
    with pytest.raises(Damaged):
        store.load(6)
    with pytest.raises(Damaged):
        store.next_many(Filters([b"s.0"]), 4, 20)
    assert [one[0] for one in store.next_many(ALL, 7, 20)] == [7, 8, 9]
    assert store.state().lost == ((6, 6),)
    assert store.state().messages == 7
    assert store.remove([6], 101) == 1
    assert store.state().lost == ()
    assert store.load(6) is None


def test_an_unsynced_tail_is_brought_back_by_replay() -> None:
    for seed in range(examples(60)):
        disk = SimDisk(random.Random(seed))
        store = open_store(disk)
        frames = [
            frame_of([row(seq) for seq in range(first, first + 3)]) for first in range(1, 31, 3)
        ]
        for mark, frame in enumerate(frames[:5], 1):
            store.append(frame, mark)
        settle(store, bool(seed % 2))
        for mark, frame in enumerate(frames[5:], 6):
            store.append(frame, mark)
        disk.crash()
        store = open_store(disk)
        assert not store.damage
        assert store.state().mark >= 5
        for mark, frame in enumerate(frames, 1):
            store.append(frame, mark)
        assert [one[0] for one in store.next_many(ALL, 1, 100)] == list(range(1, 31))


@pytest.mark.parametrize("known", [0, 3, 6])
def test_what_a_failed_sync_left_in_the_page_cache_is_no_promise(known: int) -> None:
    disk = SimDisk(random.Random(3))
    store = open_store(disk)
    for seq in range(1, 21):
        store.append(frame_of([row(seq)]), seq)
        if seq == known:
            settle(store)
    job = store.checkpoint()
    assert job is not None
    disk.fail_syncs = 100
    for path in disk.paths():
        # All that the system wrote back by itself before it failed.
        with pytest.raises(SyncFailed):
            disk.open(path).sync()
    disk.fail_syncs = 0
    disk.kill()
    store = open_store(disk)
    assert store.last_seq == 20
    settle(store)
    disk.crash()
    store = open_store(disk)
    assert not store.damage
    assert [one[0] for one in store.load_range(1, 30)] == list(range(1, 21))


def test_mostly_dead_segments_are_rewritten_and_dead_ones_go() -> None:
    disk = SimDisk(random.Random(5))
    store = open_store(disk)
    for mark, first in enumerate(range(1, 61, 3), 1):
        store.append(frame_of([row(seq, 60) for seq in range(first, first + 3)]), mark)
    settle(store)
    before = sum(len(disk.content(path)) for path in disk.paths())
    keep = {10, 11, 25, 40, 58, 59, 60}
    store.remove([seq for seq in range(1, 61) if seq not in keep], 100)
    for _ in range(10):
        settle(store)
    assert sum(len(disk.content(path)) for path in disk.paths()) < before / 2
    state, digest = store.state(), store.digest()
    for _ in range(2):
        assert {one[0] for one in store.next_many(ALL, 1, 100)} == keep
        disk.crash()
        store = open_store(disk)
        assert not store.damage
        assert (store.state(), store.digest()) == (state, digest)


def test_erased_bytes_leave_the_disk() -> None:
    disk = SimDisk(random.Random(5))
    store = open_store(disk, StoreOptions())
    store.append(frame_of([(1, 1, b"s", b"", b"keep"), (2, 1, b"s", b"", b"hush")]), 1)
    store.remove([2], 2, erase=True)
    settle(store)
    assert not any(b"hush" in disk.content(path) for path in disk.paths())
    assert store.load(1) is not None


def test_bytes_are_erased_although_the_process_ended_before() -> None:
    """What was removed is gone for the store that starts, but the log tells it once more."""
    disk = SimDisk(random.Random(5))
    store = open_store(disk)
    for mark in range(1, 4):
        store.append(frame_of([row(mark)]), mark)
    settle(store)
    store.remove([2], 4, erase=True)
    store.append(frame_of([row(4)]), 5)
    disk.kill()
    store = open_store(disk)
    assert store.mark == 5
    assert not store.remove([2], 4, erase=True)
    settle(store)
    assert not any(b"0002" in disk.content(path) for path in disk.paths())
    assert [one[0] for one in store.load_range(1, 9)] == [1, 3, 4]


def test_replicas_write_equal_bytes() -> None:
    images = []
    for _ in range(2):
        disk = filled()
        images.append({p: disk.content(p) for p in disk.paths() if p.endswith(".seg")})
    assert images[0] == images[1]
    assert len(images[0]) > 1


def test_a_deleted_store_leaves_nothing() -> None:
    disk = filled()
    open_store(disk).delete()
    assert not disk.paths()


def change(store: MessageStore, kind: str) -> None:
    if kind == "append":
        store.append(frame_of([row(10, 200), row(11, 200)]), 101)
    elif kind == "remove":
        store.remove([2, 9], 101, erase=True)
    else:
        store.truncate_front(5, 101)


def test_what_finds_no_room_waits_in_memory_and_is_written_when_there_is_some() -> None:
    sound = filled()
    for room in places(range(0, 900, 7)):
        disk, twin_disk = sound.copy(), sound.copy()
        store, twin = open_store(disk), open_store(twin_disk)
        disk.capacity -= disk.free_bytes() - room
        for one in (store, twin):
            for kind in ("append", "remove", "truncate"):
                change(one, kind)
            for mark in range(102, 110):
                one.append(frame_of([row(mark - 90, 150)]), mark)
        assert not store.find_room() and twin.find_room(), room
        for check in store.resting():
            check.step(disk, 1 << 20)
            assert not check.damage, "what waits for room is no damage"
        assert (store.state(), store.digest()) == (twin.state(), twin.digest())
        assert store.load_range(0, 99) == twin.load_range(0, 99)
        # A process that ends now has promised nothing of it beyond its log.
        lost = open_store(disk.copy())
        assert not lost.damage and lost.mark <= store.mark
        disk.capacity = 1 << 40
        if room % 2:
            assert store.find_room()
        for one in (store, twin):
            one.append(frame_of([row(20)]), 110)
            assert one.find_room()
            settle(one)
            one.close()
        disk.crash()
        store, twin = open_store(disk), open_store(twin_disk)
        assert not store.damage
        assert (store.state(), store.digest()) == (twin.state(), twin.digest())
        assert store.load_range(0, 99) == twin.load_range(0, 99)


def with_two_to_write_anew(disk: SimDisk) -> MessageStore:
    """Both go in the next checkpoint: the first has a part of its catalogue, and the other one
    needs more room than that leaves."""
    store = open_store(disk, StoreOptions(segment_bytes=500))
    for mark, first in enumerate(range(1, 9, 2), 1):
        store.append(frame_of([row(first), row(first + 1)]), mark)
        if mark in (1, 3):
            settle(store)
    store.append(frame_of([row(9), row(10), row(11, 900)]), 5)
    store.append(frame_of([row(12)]), 6)
    store.remove([5, 6, 7, 9, 10], 7)
    return store


def resumes(disk: SimDisk, store: MessageStore, job: CheckpointJob, what: object) -> None:
    """A job runs once more, to its end; the store is what it was, now and after a power cut."""
    before = store.state(), store.digest(), store.load_range(0, 99)
    job.run()
    store.done(job)
    for file in store.resting():
        file.step(disk, 1 << 20)
        assert file.done and not file.damage, (what, file.damage)
    store.close()
    disk.crash()
    store = open_store(disk)
    assert not store.damage
    assert (store.state(), store.digest(), store.load_range(0, 99)) == before


def test_a_checkpoint_that_finds_no_room_runs_again() -> None:
    """Wherever its first run came to an end: segments may have been written anew by then."""
    between = 0
    for room in places(range(0, 3_000, 9)):
        disk = SimDisk(random.Random(3))
        store = with_two_to_write_anew(disk)
        job = store.checkpoint(index=True)
        assert isinstance(job, CheckpointJob)
        disk.capacity -= disk.free_bytes() - room
        with suppress(DiskFull):
            job.run()
        between += [one.made is not None for one in job.rewrites] == [True, False]
        disk.capacity = 1 << 40
        resumes(disk, store, job, room)
    assert between, "there was room for one of the two"


def test_a_checkpoint_runs_again_whichever_change_finds_no_room() -> None:
    stopped = 0
    for change in range(100):
        disk = ScarceDisk(random.Random(3))
        store = with_two_to_write_anew(disk)
        store.remove([1, 2, 3, 4], 8)
        job = store.checkpoint(index=True)
        assert isinstance(job, CheckpointJob)
        disk.full_in = change
        try:
            job.run()
        except DiskFull:
            stopped += 1
        over, disk.full_in = disk.full_in is not None, None
        resumes(disk, store, job, change)
        if over:
            break
    assert stopped > 10, "it was to be full in the job"


def test_an_import_can_be_interrupted_and_begun_again() -> None:
    source = open_store(filled())
    chunks = list(source.export_chunks())
    for stop in range(len(chunks) + 1):
        for crash in (False, True):
            disk = SimDisk(random.Random(stop))
            store = open_store(disk)
            store.append(frame_of([row(seq) for seq in range(1, 4)]), 1)
            settle(store)
            for chunk in chunks[:stop]:
                store.import_chunk(chunk)
            disk.crash() if crash else disk.kill()
            store = open_store(disk)
            assert store.mark in (1, 100)
            for chunk in chunks:
                done = store.import_chunk(chunk)
            assert done
            settle(store)
            disk.crash()
            store = open_store(disk)
            assert not store.damage
            assert (store.state(), store.digest()) == (source.state(), source.digest())


def test_a_damaged_chunk_is_refused() -> None:
    chunks = list(open_store(filled()).export_chunks())
    for at, chunk in enumerate(chunks):
        for bit in places(range(8 * len(chunk))):
            store = MemoryStore()
            for before in chunks[:at]:
                store.import_chunk(before)
            damaged = bytearray(chunk)
            damaged[bit // 8] ^= 1 << (bit % 8)
            with pytest.raises(Damaged):
                store.import_chunk(bytes(damaged))


def test_power_may_fail_at_any_sync() -> None:
    for seed in range(examples(80)):
        rng = random.Random(seed)
        disk = SimDisk(random.Random(seed))
        model: dict[int, Record] = {}
        history: list[tuple[str, list[int]]] = []
        for _ in range(4):
            store = open_store(disk)
            assert not store.damage, (seed, store.damage)
            for mark, (kind, seqs) in enumerate(history, 1):
                apply(store, kind, seqs, mark)
            assert {one[0] for one in store.next_many(ALL, 1, 1000)} == set(model)
            disk.power_fails_in = rng.randrange(12)
            try:
                for _ in range(30):
                    last = store.last_seq
                    kind = rng.choice(["append", "append", "remove", "cut", "settle"])
                    seqs = [last + 1, last + 2] if kind == "append" else [rng.randint(1, last + 1)]
                    if kind == "settle":
                        settle(store, rng.random() < 0.3)
                        continue
                    history.append((kind, seqs))
                    apply(store, kind, seqs, len(history))
                    if kind == "append":
                        model.update((seq, row(seq)) for seq in seqs)
                    gone = seqs if kind == "remove" else range(seqs[0] if kind == "cut" else 0)
                    for seq in gone:
                        model.pop(seq, None)
            except DiskError:
                continue
            disk.power_fails_in = None
            disk.crash()


def apply(store: MessageStore, kind: str, seqs: list[int], mark: int) -> None:
    if kind == "append":
        store.append(frame_of([row(seq) for seq in seqs]), mark)
    elif kind == "remove":
        store.remove(seqs, mark)
    else:
        store.truncate_front(seqs[0], mark)


@pytest.mark.parametrize("seed", range(8))
def test_a_checkpoint_makes_the_directory_itself_durable(seed: int) -> None:
    disk = SimDisk(random.Random(seed))
    store = MessageStore.open(disk, "streams/G/store.0", OPTIONS)
    store.append(frame_of([row(1)]), 1)
    settle(store)
    disk.crash()
    assert MessageStore.open(disk, "streams/G/store.0", OPTIONS).state().messages == 1


def test_an_empty_store_is_durable_with_its_first_checkpoint() -> None:
    disk = SimDisk(random.Random(1))
    store = MessageStore.open(disk, "s")
    assert not disk.exists("s")
    job = store.checkpoint()
    assert job is not None
    job.run()
    store.done(job)
    disk.crash()
    again = MessageStore.open(disk, "s")
    assert not again.damage and again.state().messages == 0
    assert disk.exists("s/durable")
