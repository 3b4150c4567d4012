"""A check that goes on while a store changes: what was written anew meanwhile is not damage."""

import pytest

from jsctl.broker.store.message_store import MessageStore
from jsctl.broker.store.scrub import EnvelopeCheck, FileCheck
from tests.broker.store.test_message_store import filled, open_store, settle
from tests.support.sim_disk import SimDisk


def findings(disk: SimDisk, store: MessageStore, checks: list[FileCheck]) -> list[str]:
    """Of checks that began before; what the store makes of them."""
    found = []
    for check in checks:
        while not check.done:
            check.step(disk, 4096)
        if check.damage and store.suspect(check) is not None:
            found.append(check.damage)
    return found


def test_files_of_a_store_that_was_replaced_are_not_its_own() -> None:
    disk = filled()
    store = open_store(disk)
    old = MessageStore.open(disk, "older")
    settle(old)
    checks = old.resting()
    assert any(check.path == "older/durable" for check in checks)
    old.delete()
    assert findings(disk, store, checks) == []


def test_a_segment_that_is_written_anew_is_not_damaged_meanwhile() -> None:
    disk = filled()
    store = open_store(disk)
    store.remove([1, 2], 101)
    store.remove([5, 7], 102)
    checks = store.resting()
    job = store.checkpoint()
    assert job is not None
    job.run()
    # The disk has the new files, and the store does not know yet.
    assert findings(disk, store, checks) == []
    for check in (again := store.resting()):
        while not check.done:
            check.step(disk, 4096)
    store.done(job)
    assert any(check.damage for check in again)
    assert findings(disk, store, again) == []
    assert findings(disk, store, store.resting()) == []


def test_damage_beside_a_segment_that_is_written_anew_is_told() -> None:
    disk = filled()
    store = open_store(disk)
    store.remove([1, 2], 101)
    last = [one for one in store.resting() if isinstance(one, EnvelopeCheck)][-1]
    disk.flip_bit(last.path, 8 * (len(disk.content(last.path)) // 2))
    checks = store.resting()
    job = store.checkpoint()
    assert job is not None
    job.run()
    assert len(findings(disk, store, checks)) == 1


def test_the_disk_of_the_tests_has_segments_to_rewrite() -> None:
    disk = filled()
    store = open_store(disk)
    store.remove([1, 2], 101)
    before = {path: disk.content(path) for path in disk.paths()}
    settle(store)
    changed = [path for path, content in before.items() if disk.content(path) != content]
    assert any(path.endswith(".seg") for path in changed)


@pytest.mark.parametrize("portion", [1, 64, 4096, 1 << 20])
def test_a_catalogue_that_is_larger_than_a_portion_is_sound(portion: int) -> None:
    disk = filled()
    store = open_store(disk)
    catalogues = [one for one in store.resting() if one.path.endswith(".cat")]
    assert catalogues
    for check in catalogues:
        while not check.done:
            check.step(disk, portion)
        assert not check.damage
        assert check.read == len(disk.content(check.path))
