"""Directories are deleted once the log says so, and nothing is built there before."""

import random
from itertools import count

from jsctl.broker.replication.disk_jobs import DiskJob, Removal
from jsctl.broker.replication.removals import DirectoryRemover
from tests.support.groups_rig import Checkpoint, lone_group
from tests.support.sim_disk import SimDisk


def test_a_directory_is_being_discarded_until_its_batch_ran() -> None:
    disk = SimDisk(random.Random(1))
    disk.make_directory("a/b")
    remover = DirectoryRemover(count(-1, -1))
    remover.discard(disk, "a")
    assert [remover.discarding(place) for place in ("a", "b")] == [True, False]
    assert not remover.idle
    (batch,) = remover.seal(log_idle=True)
    assert remover.discarding("a") and not remover.seal(log_idle=True)
    batch.run()
    assert remover.done(batch.ticket) and not remover.done(batch.ticket)
    assert [remover.idle, remover.discarding("a"), disk.exists("a/b")] == [True, False, False]


def test_a_directory_stays_until_the_log_is_durable() -> None:
    disk = SimDisk(random.Random(1))
    disk.make_directory("a")
    remover = DirectoryRemover(count(-1, -1))
    remover.discard(disk, "a")
    assert remover.waiting and not remover.seal(log_idle=False)
    remover.synced(1)
    assert remover.waiting, "an older batch says nothing of it"
    remover.sealed(2)
    assert [remover.waiting, remover.seal(log_idle=False)] == [False, []]
    assert [remover.discarding("a"), remover.idle] == [True, False]
    remover.synced(2)
    assert [one.directory for one in remover.seal(log_idle=False)] == ["a"]


def test_while_the_disk_is_full_only_jobs_of_the_same_group_are_waited_for() -> None:
    removal = Removal(-3, SimDisk(random.Random(1)), "streams/S-1/store.2")
    own, other = (DiskJob(-1, lone_group(name), Checkpoint(1)) for name in ("S-1", "S-2"))
    assert removal.may_overtake([]) and removal.may_overtake([other])
    assert not removal.may_overtake([other, own])
