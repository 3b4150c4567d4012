"""Which state file is written next, and whether there is anything new to write."""

import random

from jsctl.broker.assets.replicas.replica_files import ReplicaFiles
from jsctl.broker.replication.state_file import load
from tests.support.sim_disk import SimDisk


def test_a_file_is_written_when_it_says_more_than_the_newest() -> None:
    files = ReplicaFiles(SimDisk(random.Random(1)), "consumers/C")
    assert not files.is_due(0)
    assert files.is_due(5)
    assert not files.is_due(5) and not files.is_due(4)
    assert files.is_due(6)


def test_after_another_state_took_its_place_any_entry_is_worth_a_file() -> None:
    files = ReplicaFiles(SimDisk(random.Random(1)), "consumers/C")
    assert files.is_due(9)
    files.overtaken()
    assert files.is_due(0) and not files.is_due(0)


def test_the_newest_file_counts_after_a_restart() -> None:
    disk = SimDisk(random.Random(1))
    disk.make_directory("consumers")
    disk.make_directory("consumers/C")
    files = ReplicaFiles(disk, "consumers/C", generation=7)
    for index in (3, 4, 5):
        files.write(index, 1, b"members", b"state %d" % index).run()
    found = load(disk, "consumers/C").state
    assert found is not None
    assert (found.generation, found.index, found.snapshot) == (10, 5, b"state 5")
