"""Directories are deleted by the disk thread, and nothing is built there before."""

import random
from itertools import count

from jsctl.broker.replication.removals import DirectoryRemover
from tests.support.sim_disk import SimDisk


def test_a_directory_is_being_discarded_until_its_batch_ran() -> None:
    disk = SimDisk(random.Random(1))
    disk.make_directory("a/b")
    remover = DirectoryRemover(count(-1, -1))
    remover.discard(disk, "a")
    assert [remover.discarding(place) for place in ("a", "b")] == [True, False]
    assert not remover.idle
    (batch,) = remover.seal()
    assert remover.discarding("a") and not remover.seal()
    batch.run()
    assert remover.done(batch.ticket) and not remover.done(batch.ticket)
    assert [remover.idle, remover.discarding("a"), disk.exists("a/b")] == [True, False, False]
