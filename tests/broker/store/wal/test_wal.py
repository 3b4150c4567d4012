"""The log: what is durable comes back, a torn tail does not."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jsctl.broker.errors import DiskError, DiskFull, SyncFailed
from jsctl.broker.store.wal.format import BLOCK, MIRROR_BYTES
from jsctl.broker.store.wal.log import RecoveredGroup, Wal, WalOptions
from jsctl.broker.store.wal.recovery import segment_name
from tests.support.quick import examples
from tests.support.scarce_disk import ScarceDisk
from tests.support.sim_disk import SimDisk
from tests.support.wal_rig import (
    GROUP,
    SMALL,
    commit,
    commit_tightly,
    disk_of,
    entries,
    reopen,
)


def test_what_was_written_comes_back() -> None:
    disk = disk_of()
    wal, found = reopen(disk)
    assert found.empty and not found.damage and not found.groups
    wal.add_vote(GROUP, 3, b"peerpeer")
    wal.add_entries(GROUP, entries(1, 10, 3))
    commit(wal)
    wal.add_truncate(GROUP, 8)
    wal.add_entries(GROUP, entries(8, 1, 4))
    wal.add_base(GROUP, 2, 3, b"members")
    wal.add_vote(b"other", 1, b"")
    wal.add_vote(b"gone", 1, b"")
    commit(wal)
    wal.add_drop(b"gone")
    commit(wal)
    disk.crash()
    _, found = reopen(disk)
    assert set(found.groups) == {GROUP, b"other"}
    assert not found.damage and not found.unsure and not found.empty
    want = entries(3, 5, 3) + entries(8, 1, 4)
    group = found.groups[GROUP]
    assert group == RecoveredGroup(3, b"peerpeer", 2, 3, b"members", want, "whole", 0, 0, False)
    assert (group.last_index, group.last_term) == (8, 4)


def test_an_identity_does_not_read_anothers_log() -> None:
    disk = disk_of()
    wal, _ = reopen(disk)
    wal.add_entries(GROUP, entries(1, 3))
    commit(wal)
    _, found = reopen(disk, WalOptions(b"incarnation-0002", SMALL.segment_bytes))
    assert not found.groups
    assert found.unsure


def test_what_a_killed_process_left_unsynced_is_synced_before_it_counts() -> None:
    class Killing(SimDisk):
        killed = False

        def count_down(self) -> None:
            if self.killed:
                raise DiskError("killed before the sync")
            super().count_down()

    disk = Killing(random.Random(3))
    wal, _ = reopen(disk)
    wal.add_entries(GROUP, entries(1, 3))
    batch = wal.take_batch()
    assert batch is not None
    disk.killed = True
    with pytest.raises(DiskError):
        batch.run()
    disk.kill()
    disk.killed = False
    _, found = reopen(disk)
    assert found.groups[GROUP].entries == entries(1, 3)
    disk.crash()
    _, found = reopen(disk)
    assert found.groups[GROUP].entries == entries(1, 3)


def test_members_of_a_group_without_entries_outlive_its_first_segment() -> None:
    disk = disk_of()
    wal, _ = reopen(disk)
    wal.add_base(b"idle", 0, 0, b"members")
    commit(wal)
    wal, _ = reopen(disk)
    for first in range(1, 60, 2):
        wal.add_entries(GROUP, entries(first, 2, size=900))
        wal.add_base(GROUP, first + 1, 1, b"m")
        wal.release(GROUP, first + 1)
        commit(wal)
    _, found = reopen(disk)
    assert found.groups[b"idle"].members == b"members"


def test_segments_are_used_again_when_released() -> None:
    disk = disk_of()
    wal, _ = reopen(disk)
    wal.add_vote(b"quiet", 7, b"voted")
    wal.add_base(b"quiet", 5, 2, b"them")
    for i in range(1, 200):
        wal.add_entries(GROUP, entries(i, 1, size=3000))
        if i > 4:
            wal.add_base(GROUP, i - 4, 1, b"m")
            wal.release(GROUP, i - 4)
        commit(wal)
    assert len(disk.paths()) <= 4
    disk.crash()
    wal, found = reopen(disk)
    assert not found.damage
    group = found.groups[GROUP]
    assert (group.base_index, [e[0] for e in group.entries]) == (195, [196, 197, 198, 199])
    quiet = found.groups[b"quiet"]
    assert (quiet.term, quiet.vote) == (7, b"voted")
    assert (quiet.base_index, quiet.base_term, quiet.members) == (5, 2, b"them")


def test_laggards_are_named() -> None:
    disk = disk_of()
    wal, _ = reopen(disk)
    wal.add_entries(b"slow", entries(1, 1))
    for i in range(1, 40):
        wal.add_entries(GROUP, entries(i, 1, size=3000))
        wal.add_base(GROUP, i, 1, b"")
        wal.release(GROUP, i)
        commit(wal)
    assert wal.pinned() == [(b"slow", 1)]
    count = len(disk.paths())
    assert count > 4
    wal.add_base(b"slow", 1, 1, b"")
    wal.release(b"slow", 1)
    for i in range(40, 60):
        wal.add_entries(GROUP, entries(i, 1))
        commit(wal)
    assert len(disk.paths()) < count


def test_a_frame_larger_than_a_segment_gets_a_larger_one() -> None:
    disk = disk_of()
    wal, _ = reopen(disk)
    for first in (1, 101, 201):
        wal.add_entries(GROUP, entries(first, 100, size=5000))
        commit(wal)
    _, found = reopen(disk)
    assert found.groups[GROUP].last_index == 300
    assert not found.damage


def renewed(wal: Wal, first: int, last: int) -> None:
    """Frames with one entry each, of which only the last is needed."""
    for index in range(first, last + 1):
        wal.add_entries(GROUP, entries(index, 1, 9))
        wal.add_base(GROUP, index, 9, b"m")
        wal.release(GROUP, index)
        commit(wal)


def test_a_segment_too_short_for_a_frame_is_given_up_in_its_turn() -> None:
    disk = disk_of()
    wal, _ = reopen(disk)
    wal.add_entries(GROUP, entries(1, 1))
    commit(wal)
    wal.add_entries(GROUP, entries(2, 1, size=12 * BLOCK))
    commit(wal)
    wal.close()
    wal, _ = reopen(disk)
    renewed(wal, 3, 40)
    wal.close()
    _, found = reopen(disk)
    assert not found.damage
    assert segment_name(2, SMALL.segment_bytes) not in disk.list("wal")


@pytest.mark.parametrize("restarts", [False, True])
def test_entries_that_are_void_keep_no_segment(*, restarts: bool) -> None:
    disk = disk_of()
    wal, _ = reopen(disk)
    wal.add_base(GROUP, 0, 0, b"m")
    wal.add_entries(GROUP, entries(1, 100))
    commit(wal)
    wal.add_entries(GROUP, entries(101, 20))
    wal.add_truncate(GROUP, 51)
    wal.add_base(GROUP, 50, 1, b"m")
    commit(wal)
    if restarts:
        wal.close()
        wal, _ = reopen(disk)
    wal.release(GROUP, 50)
    for term in range(60):
        wal.add_vote(b"S:two", term, b"")
        commit(wal)
    assert not wal.pinned()
    assert len(disk.list("wal")) <= 4


def test_a_failed_sync_is_final() -> None:
    disk = disk_of()
    wal, _ = reopen(disk)
    wal.add_entries(GROUP, entries(1, 1))
    batch = wal.take_batch()
    assert batch is not None
    disk.fail_syncs = 1
    for _ in range(2):
        with pytest.raises(SyncFailed):
            batch.run()


@pytest.mark.parametrize("frames", [1, 3, 8])
def test_what_a_failed_sync_left_in_the_page_cache_is_no_promise(frames: int) -> None:
    disk = disk_of()
    wal, _ = reopen(disk)
    for index in range(1, frames):
        wal.add_entries(GROUP, entries(index, 1))
        commit(wal)
    wal.add_entries(GROUP, entries(frames, 1))
    disk.fail_syncs = 1
    with pytest.raises(SyncFailed):
        commit(wal)
    disk.kill()
    wal, found = reopen(disk)
    assert found.groups[GROUP].last_index == frames
    wal.add_entries(GROUP, entries(frames + 1, 1))
    commit(wal)
    disk.crash()
    _, found = reopen(disk)
    assert not found.damage
    assert found.groups[GROUP].last_index == frames + 1


def test_a_full_disk_is_noticed_before_the_log_needs_room() -> None:
    disk = disk_of()
    wal, _ = reopen(disk)
    disk.capacity = disk.capacity - disk.free_bytes()
    written, batch = 0, None
    with pytest.raises(DiskFull):
        for written in range(1, 1000):
            wal.add_entries(GROUP, entries(written, 1, size=3000))
            batch = wal.take_batch()
            assert batch is not None
            batch.run()
            wal.done(batch.ticket)
    assert batch is not None
    disk.capacity = 1 << 40
    batch.run()
    wal.done(batch.ticket)
    wal.add_entries(GROUP, entries(written + 1, 1))
    commit(wal)
    _, found = reopen(disk)
    assert not found.damage
    assert found.groups[GROUP].last_index == written + 1


steps = st.lists(
    st.tuples(
        st.sampled_from(["entries", "vote", "base", "cut", "crash", "kill"]), st.integers(1, 9)
    ),
    min_size=3,
    max_size=25,
)


@given(steps, st.integers(0, 2**32))
@settings(max_examples=examples(80), deadline=None)
def test_nothing_durable_is_lost_in_crashes(script: list[tuple[str, int]], seed: int) -> None:
    disk = disk_of(seed)
    wal, _ = reopen(disk)
    want = RecoveredGroup()
    for name, n in script:
        if name in ("crash", "kill"):
            wal.add_entries(GROUP, entries(want.last_index + 1, n, 99, 1500))
            batch = wal.take_batch()
            assert batch is not None
            file = batch.writer.file(*batch.segment)
            room = SMALL.segment_bytes - MIRROR_BYTES - batch.offset
            file.write(batch.offset, [(bytes(range(200)) * 30)[:room]])
            disk.crash() if name == "crash" else disk.kill()
            wal, found = reopen(disk)
            assert not found.unsure
            if want.last_index or want.term:
                assert found.groups[GROUP] == want
            continue
        if name == "entries":
            made = entries(want.last_index + 1, n, want.term, 900)
            wal.add_entries(GROUP, made)
            want.entries += made
        elif name == "vote":
            want.term += 1
            want.vote = b"%d" % n
            wal.add_vote(GROUP, want.term, want.vote)
        elif name == "base":
            index = max(want.base_index, want.last_index - n)
            term = next((e[1] for e in want.entries if e[0] == index), want.base_term)
            wal.add_base(GROUP, index, term, b"m")
            wal.release(GROUP, index)
            want.base_index, want.base_term, want.members = index, term, b"m"
            want.entries = [e for e in want.entries if e[0] > index]
        else:
            index = max(want.base_index + 1, want.last_index - n)
            wal.add_truncate(GROUP, index)
            want.entries = [e for e in want.entries if e[0] < index]
        commit(wal)


@given(st.integers(0, 2**32))
@example(694735)  # Two crashes, each of which tears the other copy of the same claims.
@settings(max_examples=examples(150), deadline=None)
def test_power_may_fail_at_any_sync(seed: int) -> None:
    rng = random.Random(seed)
    disk = disk_of(seed)
    done = next_index = 0
    based = 0
    for _ in range(5):
        wal, found = reopen(disk)
        assert not found.damage, found.damage
        group = found.groups.get(GROUP, RecoveredGroup())
        assert group.last_index >= done
        assert group.base_index <= max(based, 0)
        assert [e[0] for e in group.entries] == list(
            range(group.base_index + 1, group.last_index + 1)
        )
        assert all(e == entries(e[0], 1, 1, 2000)[0] for e in group.entries)
        next_index = done = group.last_index
        disk.power_fails_in = rng.randrange(40)
        try:
            for _ in range(40):
                count = rng.randrange(1, 4)
                wal.add_entries(GROUP, entries(next_index + 1, count, 1, 2000))
                next_index += count
                if rng.random() < 0.4:
                    based = max(based, done - rng.randrange(5))
                    wal.add_base(GROUP, based, 1, b"m")
                    wal.release(GROUP, based)
                commit(wal)
                done = next_index
        except DiskError:
            continue
        disk.power_fails_in = None
        disk.crash()


def test_a_batch_that_finds_no_room_runs_again_wherever_it_stopped() -> None:
    """Segments are made, used again and removed meanwhile."""
    again = 0
    for change in range(400):
        disk = ScarceDisk(random.Random(change))
        wal, _ = reopen(disk)
        disk.full_in = change
        written: list[tuple[int, int, int, bytes]] = []
        for first in range(1, 48, 3):
            written += (some := entries(first, 3, size=(first * 700) % 2_500))
            wal.add_entries(GROUP, some)
            again += commit_tightly(wal)
            if first % 2:
                wal.add_base(GROUP, first + 2, 1, b"m")
                wal.release(GROUP, first + 2)
        files = len(disk.paths())
        disk.crash()
        _, found = reopen(disk)
        assert not found.damage and not found.unsure, change
        group = found.groups[GROUP]
        assert group.entries and group.entries == written[-len(group.entries) :], change
        assert files <= 4, "what is not needed goes"
        if disk.full_in is not None:
            break
    assert again > 30, "it was to be full in a batch"


def test_behind_a_frame_that_could_not_be_written_none_is() -> None:
    """Whoever hears that a later one is durable takes this one for durable, too."""
    disk = disk_of()
    wal, _ = reopen(disk)
    batches = []
    for first in (1, 2):
        wal.add_entries(GROUP, entries(first, 1))
        batch = wal.take_batch()
        assert batch is not None
        batches.append(batch)
    disk.remove(disk.paths()[0])
    with pytest.raises(DiskError, match="cannot open"):
        batches[0].run()
    disk.crash()
    with pytest.raises(SyncFailed, match="cannot open"):
        batches[1].run()
