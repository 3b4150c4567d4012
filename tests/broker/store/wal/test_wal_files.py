"""Files of the log that are gone, empty or zeros as a whole: what was in them is missed."""

import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from jsctl.broker.assets.lost_log import find_loss
from jsctl.broker.assets.meta.group_file import write_founding
from jsctl.broker.errors import DiskError
from jsctl.broker.peers.items import Founding
from jsctl.broker.store.wal import format as fmt
from jsctl.broker.store.wal.batch import WalWriter
from jsctl.broker.store.wal.format import BLOCK, MIRROR_SLOT, Claim
from jsctl.broker.store.wal.log import Wal
from jsctl.broker.store.wal.recovery import Scan, segment_name
from tests.broker.store.wal.test_wal_damage import honest, scan
from tests.support.sim_disk import SimDisk
from tests.support.wal_rig import GROUP, IDENTITY, commit, disk_of, entries, reopen

Way = Callable[[SimDisk, str], None]


def remove(disk: SimDisk, path: str) -> None:
    disk.remove(path)


def zero(disk: SimDisk, path: str) -> None:
    disk.overwrite(path, bytes(len(disk.content(path))))


def empty(disk: SimDisk, path: str) -> None:
    disk.overwrite(path, b"")


def zero_all_but_the_last_block(disk: SimDisk, path: str) -> None:
    content = disk.content(path)
    disk.overwrite(path, bytes(len(content) - BLOCK) + content[-BLOCK:])


def zero_all_but_the_first_block(disk: SimDisk, path: str) -> None:
    content = disk.content(path)
    disk.overwrite(path, content[:BLOCK] + bytes(len(content) - BLOCK))


WAYS: tuple[Way, ...] = (
    remove,
    zero,
    empty,
    zero_all_but_the_last_block,
    zero_all_but_the_first_block,
)


def written(frames: int, *, kept: int = 0) -> tuple[SimDisk, Wal]:
    """A server's log with so many frames, eight in a segment; all are needed, or only the last
    ones: when that are 8, a segment is released just when a reserve is to be made of it."""
    disk = disk_of()
    wal, _ = reopen(disk)
    write_founding(disk, Founding("m", ("a",), (1,)))
    for index in range(1, frames + 1):
        wal.add_vote(GROUP, index, b"peer")
        wal.add_entries(GROUP, entries(index, 1, index))
        if kept and index > kept:
            wal.add_base(GROUP, index - kept, index - kept, b"m")
            wal.release(GROUP, index - kept)
        commit(wal)
    return disk, wal


def segments(disk: SimDisk) -> list[str]:
    """Files of the log, ascending: the last one is the reserve."""
    return [path for path in disk.paths() if path.endswith(".wal")]


LOGS = {
    "one frame": lambda: written(1),
    "one segment": lambda: written(5),
    "several": lambda: written(20),
    "just begun": lambda: written(17),
    "released": lambda: written(61, kept=3),
    "reused": lambda: written(61, kept=8),
    "just reused": lambda: written(65, kept=8),
}


def settled(disk: SimDisk, wal: Wal) -> None:
    wal.close()


def killed(disk: SimDisk, wal: Wal) -> None:
    """A frame is written, and nobody was told."""
    wal.add_vote(GROUP, 99, b"late")
    batch = wal.take_batch()
    assert batch is not None
    batch.run()
    disk.kill()


def power_cut(disk: SimDisk, wal: Wal) -> None:
    """The claim of the last frame may be lost."""
    disk.crash()


ENDS = (settled, killed, power_cut)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("also_reserve", [False, True])
def test_what_was_in_the_newest_segment_is_missed(
    log: str, way: Way, end: Callable[[SimDisk, Wal], None], also_reserve: bool
) -> None:
    disk, wal = LOGS[log]()
    end(disk, wal)
    sound = scan(disk)
    assert not sound.damage
    *_, newest, reserve = segments(disk)
    way(disk, newest)
    if also_reserve:
        remove(disk, reserve)
    _, found = reopen(disk)
    assert find_loss(disk, found) or honest(found, sound.groups), found
    assert found.damage


@pytest.mark.parametrize("slot", [1, 2])
@pytest.mark.parametrize("log", LOGS)
def test_a_damaged_blank_of_the_reserve_is_no_loss(log: str, slot: int) -> None:
    """The segment before says that nothing was in it."""
    disk, wal = LOGS[log]()
    settled(disk, wal)
    path = segments(disk)[-1]
    at = len(disk.content(path)) - slot * MIRROR_SLOT
    disk.flip_bit(path, at * 8 + 3)
    _, recovered = reopen(disk)
    assert not recovered.unsure and not recovered.damage
    assert not scan(disk).damage, "it is a blank again"


@pytest.mark.parametrize("slot", [1, 2])
@pytest.mark.parametrize("log", ["just begun", "just reused"])
def test_a_segment_that_began_with_little_left_of_it_is_missed(log: str, slot: int) -> None:
    """Its frame is zeros, and so is a bit of its claim, or of the blank beside that."""
    disk, wal = LOGS[log]()
    settled(disk, wal)
    sound = scan(disk)
    path = segments(disk)[-2]
    content = bytearray(disk.content(path))
    content[: -fmt.MIRROR_BYTES] = bytes(len(content) - fmt.MIRROR_BYTES)
    content[-slot * MIRROR_SLOT] ^= 8
    disk.overwrite(path, bytes(content))
    _, found = reopen(disk)
    assert found.damage and honest(found, sound.groups)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("way", [remove, zero])
@pytest.mark.parametrize("log", LOGS)
def test_a_reserve_that_is_lost_is_made_anew(
    log: str, way: Way, end: Callable[[SimDisk, Wal], None]
) -> None:
    disk, wal = LOGS[log]()
    end(disk, wal)
    sound = scan(disk)
    before = [(path, len(disk.content(path))) for path in segments(disk)]
    way(disk, before[-1][0])
    wal, found = reopen(disk)
    assert not found.damage and not find_loss(disk, found)
    assert found.groups == sound.groups
    assert before == [(path, len(disk.content(path))) for path in segments(disk)]
    for index in range(100, 130):
        wal.add_vote(GROUP, index, b"peer")
        commit(wal)
    disk.crash()
    _, found = reopen(disk)
    assert not found.damage and found.groups[GROUP].term == 129


def as_before(patch: pytest.MonkeyPatch) -> None:
    """Segments are made as the version before blanks made them."""
    patch.setattr(fmt, "blank_mirror", lambda identity: b"")
    patch.setattr(WalWriter, "tell", lambda self, segment, claim: None)


def made_before(log: str, end: Callable[[SimDisk, Wal], None]) -> SimDisk:
    with pytest.MonkeyPatch.context() as patch:
        as_before(patch)
        disk, wal = LOGS[log]()
        end(disk, wal)
    return disk


def is_opened(disk: SimDisk) -> None:
    """The log opens as what it is, and knows from then on when zeros are damage."""
    sound = scan(disk)
    wal, found = reopen(disk)
    assert not found.damage and not find_loss(disk, found) and found.groups == sound.groups
    wal.close()
    made = Scan(disk, "wal", IDENTITY)
    made.run()
    begun = [f"wal/{segment_name(one.number, one.length)}" for one in made.segments if one.frames]
    if begun:
        zero(disk, begun[-1])
        _, found = reopen(disk)
        assert find_loss(disk, found) or honest(found, sound.groups)
        assert found.damage


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("log", LOGS)
def test_logs_of_before_are_sound(log: str, end: Callable[[SimDisk, Wal], None]) -> None:
    disk = made_before(log, end)
    assert not any(
        fmt.decode_mirror(disk.content(path)[-MIRROR_SLOT:], IDENTITY)[0] == Claim(0, fmt.NO_HASH)
        for path in segments(disk)
    )
    is_opened(disk)


@pytest.mark.parametrize("log", LOGS)
def test_the_power_may_fail_when_a_log_of_before_is_opened(log: str) -> None:
    before = made_before(log, settled)
    for seed in range(3):
        for sync in range(100):
            disk = before.copy()
            disk.rng.seed(seed)
            disk.power_fails_in = sync
            try:
                reopen(disk)
            except DiskError:
                is_opened(disk)
            else:
                break
        assert sync > 2


@pytest.mark.parametrize("log", LOGS)
def test_a_log_of_before_opens_where_there_is_no_room(log: str) -> None:
    disk = made_before(log, power_cut)
    disk.capacity = disk.capacity - disk.free_bytes()
    for _ in range(3):
        wal, found = reopen(disk)
        assert not found.damage and not find_loss(disk, found)
        wal.add_vote(GROUP, 200, b"peer")
        commit(wal)
        disk.crash()
    disk.capacity *= 2
    is_opened(disk)


def test_a_new_segment_costs_one_sync_of_the_one_before() -> None:
    """And what its reserve costs; no other batch costs more than one."""
    disk = disk_of()
    wal, _ = reopen(disk)
    costs = []
    for index in range(1, 60):
        wal.add_vote(GROUP, index, b"peer")
        wal.add_entries(GROUP, entries(index, 1))
        wal.add_base(GROUP, index, 1, b"m")
        wal.release(GROUP, index)
        before = disk.syncs, disk.directory_syncs
        batch = wal.take_batch()
        assert batch is not None
        batch.run()
        wal.done(batch.ticket)
        costs.append((disk.syncs - before[0], disk.directory_syncs - before[1]))
    begins, within = costs[8::8], [cost for at, cost in enumerate(costs) if at % 8]
    assert set(begins) == {(3, 1)}, "the frame, the notice, the reserve and its name"
    assert {syncs for syncs, _ in within} == {1}


class Tearing(random.Random):
    """Chance of a disk that tears each sector that is not synced at the same place."""

    def __init__(self, place: int, names: float) -> None:
        super().__init__()
        self.place = place
        self.names = names

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 1 if start == 3 else self.place

    def random(self) -> float:
        return self.names


@pytest.mark.parametrize("names", [0.1, 0.9])
@pytest.mark.parametrize("place", [2, 40, 80])
@pytest.mark.parametrize("frames", [8, 16, 64])
def test_the_power_may_fail_while_a_segment_begins(frames: int, place: int, names: float) -> None:
    for sync in range(6):
        disk, wal = written(frames, kept=8 if frames > 60 else 0)
        sound = scan(disk)
        disk.rng = Tearing(place, names)
        disk.power_fails_in = sync
        with suppress(DiskError):
            for index in range(200, 206):
                wal.add_vote(GROUP, index, b"peer")
                commit(wal)
        disk.power_fails_in = None
        wal, found = reopen(disk)
        assert not found.damage and not find_loss(disk, found)
        assert found.groups[GROUP].entries == sound.groups[GROUP].entries
        wal.close()
        disk.crash()
        assert not scan(disk).damage
