"""The log on a disk that rots: damage is named, and harmless or noticed."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.store.wal.format import BLOCK, MIRROR_BYTES
from jsctl.broker.store.wal.log import Recovered, RecoveredGroup, Wal
from jsctl.broker.store.wal.recovery import Scan, segment_name
from tests.support.quick import examples, places
from tests.support.sim_disk import SimDisk
from tests.support.wal_rig import GROUP, IDENTITY, SMALL, commit, disk_of, entries, reopen


def sound_log() -> tuple[SimDisk, dict[bytes, RecoveredGroup]]:
    disk = disk_of()
    wal, _ = reopen(disk)
    wal.add_vote(GROUP, 2, b"peer")
    for i in range(1, 5):
        wal.add_entries(GROUP, entries(i, 1, 2))
        wal.add_entries(b"B", entries(i, 1, 1))
        commit(wal)
    wal.close()
    _, found = reopen(disk)
    return disk, found.groups


def honest(found: Recovered, whole: dict[bytes, RecoveredGroup]) -> bool:
    """Everything is there, or the group is not called whole."""
    if found.unsure:
        return True
    for name, want in whole.items():
        group = found.groups.get(name)
        if group is None:
            return False
        if group.standing == "unknown":
            continue
        if (group.term, group.vote) != (want.term, want.vote):
            return False
        suspected = (group.suspect_term, group.suspect_index) >= (want.last_term, want.last_index)
        if group.entries != want.entries and not (group.standing == "suspect" and suspected):
            return False
        if group.entries != want.entries[: len(group.entries)]:
            return False
    return True


def interesting(content: bytes) -> list[int]:
    """Offsets of the file's used bytes; runs of zeros are thinned out."""
    return [at for at in range(len(content)) if content[at] or at % 1024 == 0]


def test_every_flipped_bit_is_harmless_or_noticed() -> None:
    disk, whole = sound_log()
    path = next(p for p in disk.paths() if len(disk.content(p).strip(b"\0")))
    image = disk.content(path)
    mirrors = len(image) - MIRROR_BYTES
    for at, bit in places([(at, bit) for at in interesting(image) for bit in range(8)]):
        disk.flip_bit(path, 8 * at + bit)
        found = scan(disk)
        assert honest(found, whole), (at, bit, found.damage)
        if image[at] and at < mirrors:
            assert found.damage and not found.unsure
        disk.flip_bit(path, 8 * at + bit)


def scan(disk: SimDisk) -> Recovered:
    made = Scan(disk, "wal", IDENTITY)
    made.run()
    return made.recovered


def test_every_cut_is_noticed() -> None:
    disk, whole = sound_log()
    path = next(p for p in disk.paths() if len(disk.content(p).strip(b"\0")))
    image = disk.content(path)
    for length in [*range(0, len(image), 509), *range(4 * BLOCK)[::97], len(image) - 1]:
        disk.overwrite(path, image[:length])
        found = scan(disk)
        assert found.damage
        assert honest(found, whole), length


def test_a_missing_segment_is_noticed() -> None:
    disk, whole = sound_log()
    disk.remove(disk.paths()[0])
    found = scan(disk)
    assert found.empty or (found.damage and honest(found, whole))


def test_damage_is_remembered_until_the_group_is_whole() -> None:
    disk, _ = sound_log()
    disk.flip_bit(disk.paths()[0], 8 * (2 * BLOCK + 200))
    wal, found = reopen(disk)
    group = found.groups[GROUP]
    assert (group.standing, group.suspect_term, group.suspect_index) == ("suspect", 2, 4)
    assert [e[0] for e in group.entries] == [1, 2]
    commit(wal)
    for _ in range(2):
        wal, found = reopen(disk)
        assert found.groups[GROUP].standing == "suspect"
        assert not found.damage
    wal.add_entries(GROUP, entries(3, 3, 3))
    wal.add_standing(GROUP, "whole")
    commit(wal)
    _, found = reopen(disk)
    assert found.groups[GROUP].standing == "whole"
    assert [e[0] for e in found.groups[GROUP].entries] == [1, 2, 3, 4, 5]


def spoil(disk: SimDisk, number: int) -> None:
    """A bit in the body of the frame with a number, where each has one block."""
    disk.flip_bit(sorted(disk.paths())[0], 8 * ((number - 1) * BLOCK + 100))


def test_a_segment_of_which_nothing_checks_goes_with_the_others() -> None:
    disk = disk_of()
    wal, _ = reopen(disk)
    for index in range(1, 24):
        wal.add_entries(GROUP, entries(index, 1))
        commit(wal)
    wal.close()
    second = f"wal/{segment_name(2, SMALL.segment_bytes)}"
    disk.overwrite(second, b"\x55" * len(disk.content(second)))
    wal, found = reopen(disk)
    assert found.damage
    for index in range(30, 60):
        wal.add_entries(GROUP, entries(index, 1, 2))
        wal.add_base(GROUP, index, 2, b"m")
        wal.release(GROUP, index)
        commit(wal)
    wal.close()
    _, found = reopen(disk)
    assert not found.damage
    assert not disk.is_file(second)


def test_damage_behind_what_was_examined_is_damage() -> None:
    """A start finds that a place cannot be read in which nothing was; a frame rots later."""
    disk, _ = sound_log()
    path = sorted(disk.paths())[0]
    disk.unreadable.append((path, 6 * BLOCK, 7 * BLOCK))
    wal, found = reopen(disk)
    assert found.damage and found.groups[GROUP].standing == "whole"
    commit(wal)
    spoil(disk, 4)
    wal, found = reopen(disk)
    assert found.groups[GROUP].standing != "whole"
    commit(wal)
    wal, found = reopen(disk)
    assert found.groups[GROUP].standing != "whole"


def test_who_was_called_whole_is_not_when_a_frame_before_that_rots() -> None:
    disk, _ = sound_log()
    wal, _ = reopen(disk)
    wal.add_standing(GROUP, "unknown")
    commit(wal)
    wal.add_standing(GROUP, "whole")
    commit(wal)
    spoil(disk, 3)
    wal, found = reopen(disk)
    assert found.groups[GROUP].standing != "whole"
    commit(wal)
    wal.add_entries(GROUP, entries(3, 2, 2))
    wal.add_standing(GROUP, "whole")
    commit(wal)
    wal, found = reopen(disk)
    assert found.groups[GROUP].standing == "whole" and not found.damage
    assert [one[0] for one in found.groups[GROUP].entries] == [1, 2, 3, 4]


def test_a_last_frame_that_is_bad_like_its_claim_was_not_torn() -> None:
    """A crash tears a frame before its claim is written."""
    disk, _ = sound_log()
    spoil(disk, 4)
    assert scan(disk).groups[GROUP].standing == "suspect"
    disk.flip_bit(sorted(disk.paths())[0], 8 * (SMALL.segment_bytes - MIRROR_BYTES + 40))
    found = scan(disk)
    assert found.groups[GROUP].standing == "unknown" and found.torn == 1


def test_doubt_is_not_forgotten_with_the_frame_that_told_of_it() -> None:
    disk = disk_of()
    wal, _ = reopen(disk)
    wal.add_standing(GROUP, "unknown")
    commit(wal)
    wal.add_entries(GROUP, entries(1, 2))
    commit(wal)
    spoil(disk, 1)
    _, found = reopen(disk)
    assert found.groups[GROUP].standing == "unknown"


def fill_up(wal: Wal, found: Recovered, want: dict[bytes, RecoveredGroup]) -> None:
    """As leaders do it: what is in doubt gets what it lacks, and is whole then."""
    for name, one in want.items():
        group = found.groups.get(name, RecoveredGroup(standing="unknown"))
        if group.standing != "whole" or found.unsure:
            wal.add_vote(name, one.term, one.vote)
            wal.add_entries(name, one.entries[len(group.entries) :])
            wal.add_standing(name, "whole")
    commit(wal)


@given(st.lists(st.tuples(st.sampled_from("evvedrr"), st.integers(0, 99)), max_size=40))
@settings(max_examples=examples(200), deadline=None)
def test_what_rots_is_noticed_over_many_lives(script: list[tuple[str, int]]) -> None:
    disk = disk_of()
    wal, _ = reopen(disk)
    want = {name: RecoveredGroup() for name in (GROUP, b"B")}
    for kind, n in script:
        name = GROUP if n % 2 else b"B"
        one = want[name]
        if kind == "e":
            some = entries(one.last_index + 1, 1 + n % 3, one.term)
            wal.add_entries(name, some)
            one.entries += some
        elif kind == "v":
            one.term, one.vote = one.term + 1, b"%d" % n
            wal.add_vote(name, one.term, one.vote)
        elif kind == "d":
            used = [
                (path, at)
                for path in disk.paths()
                for at in range(0, SMALL.segment_bytes - MIRROR_BYTES, BLOCK)
                if any(disk.content(path)[at : at + BLOCK])
            ]
            path, at = used[n % len(used)] if used else ("", 0)
            if path:
                disk.flip_bit(path, 8 * (at + n) + n % 8)
        else:
            wal, found = reopen(disk)
            assert honest(found, {k: v for k, v in want.items() if v != RecoveredGroup()}), found
            fill_up(wal, found, want)
        commit(wal)
