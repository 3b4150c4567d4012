"""What a server alone takes up again from its disk when its log is lost, and what it leaves."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.stream import StreamConfig
from jsctl.broker.assets.assigned_files import FILE, AssignedFiles, directory_of, read_all
from jsctl.broker.assets.meta.taking_up import left_over
from jsctl.broker.jetstream.meta.assignments import (
    ConsumerAssignment,
    GroupAssignment,
    StreamAssignment,
)
from jsctl.broker.jetstream.meta.entries import assign_stream, key_of
from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.jetstream.requests import ClientInfo
from jsctl.broker.replication.side_jobs import SideJobs
from tests.support.sim_disk import SimDisk

ME = "a"


def group(name: str, storage: str = "file", peers: tuple[str, ...] = (ME,)) -> GroupAssignment:
    return GroupAssignment(name, peers, storage, incarnations=dict.fromkeys(peers, 7))


def stream(name: str, *subjects: str, **more: Any) -> StreamAssignment:
    config = StreamConfig(name=name, subjects=subjects)
    return StreamAssignment("A", name, config, group(f"S-{name}", **more), 5, ClientInfo("A"), None)


def consumer(of: str, name: str, durable: str = "", **more: Any) -> ConsumerAssignment:
    config, made = ConsumerConfig(durable_name=durable), group(f"C-{of}-{name}", **more)
    return ConsumerAssignment("A", of, name, config, made, 5, ClientInfo("A"), None)


class Context:
    """As much of a `ReplicaContext` as is needed."""

    me = ME

    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk
        self.texts: list[str] = []

    def log(self, level: object, text: str) -> None:
        self.texts.append(text)


@pytest.fixture
def disk() -> SimDisk:
    return SimDisk(random.Random(1))


def write(disk: SimDisk, *made: StreamAssignment | ConsumerAssignment, alone: bool = True) -> None:
    jobs = SideJobs(count(1))
    files = AssignedFiles(disk, jobs, alone)
    for one in made:
        files.note(one, known=False)
    files.write()
    for job in jobs.seal():
        job.run()


def taken(
    disk: SimDisk, *known: StreamAssignment
) -> tuple[list[tuple[str, str, str]], Sequence[str]]:
    """Keys of what is taken up by a server that knows some streams; and what is logged."""
    meta, context = Meta(), Context(disk)
    indexes = count(1)
    for one in known:
        meta.apply(next(indexes), assign_stream(one))
    entries = []
    for entry in left_over(context, meta):  # type: ignore[arg-type]
        meta.note_in_flight([entry])
        entries.append(entry)
    for entry in entries:
        meta.apply(next(indexes), entry)
    before = set(map(key_of, known))
    return [one for one in map(key_of, meta.assets()) if one not in before], context.texts


def test_streams_come_back_with_their_consumers(disk: SimDisk) -> None:
    write(disk, consumer("S", "C", "C"), stream("S", "s.>"))
    assert taken(disk)[0] == [("A", "S", ""), ("A", "S", "C")]
    found = [made for _, made in read_all(disk)]
    assert found == [stream("S", "s.>"), consumer("S", "C", "C")]


def test_what_is_known_stays_as_it_is(disk: SimDisk) -> None:
    write(disk, stream("S", "s.>"), consumer("S", "C", "C"))
    keys, texts = taken(disk, stream("S", "s.>"))
    assert keys == [("A", "S", "C")] and len(texts) == 1


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (replace(stream("S", "s.>"), group=group("S-older")), "there is a stream 'S'"),
        (stream("T", "s.x"), "another stream takes messages of 'T'"),
        (stream("U", "u", peers=("b",)), "it was made for other servers"),
        (consumer("GONE", "C", "C"), "there is no stream 'GONE'"),
    ],
)
def test_nothing_is_taken_by_force(
    disk: SimDisk, other: StreamAssignment | ConsumerAssignment, why: str
) -> None:
    write(disk, other)
    keys, texts = taken(disk, stream("S", "s.>"))
    assert not keys
    assert texts == [
        f"'{directory_of(other)}' belongs to nothing that there is, and stays as it is: {why}"
    ]


def test_of_two_that_take_the_same_messages_one_comes_back(disk: SimDisk) -> None:
    write(disk, stream("A1", "s.>"), stream("A2", "s.x"))
    assert len(taken(disk)[0]) == 1


def test_what_does_not_say_what_it_is_is_told(disk: SimDisk) -> None:
    write(disk, stream("S", "s.>"))
    path = f"streams/S-S/{FILE}"
    disk.overwrite(path, disk.content(path)[:-9])
    disk.make_directory("streams/S-older")
    keys, texts = taken(disk)
    assert not keys and sum("does not say what it is" in one for one in texts) == 2


def test_only_what_outlives_the_process_is_written(disk: SimDisk) -> None:
    write(disk, stream("M", "m", storage="memory"), consumer("S", "e", storage="memory"))
    assert not list(read_all(disk))


def test_a_server_of_a_cluster_writes_none(disk: SimDisk) -> None:
    write(disk, stream("S", "s.>"), alone=False)
    assert not list(read_all(disk))


def test_what_is_known_already_is_written_only_where_it_lacks(disk: SimDisk) -> None:
    old, new = stream("S", "s.>"), stream("S", "s.>", "more")
    write(disk, old)
    for made, known in ((new, True), (new, False)):
        jobs = SideJobs(count(1))
        files = AssignedFiles(disk, jobs, alone=True)
        files.note(made, known=known)
        files.write()
        for job in jobs.seal():
            job.run()
        assert [one for _, one in read_all(disk)] == [old if known else new]


def test_what_goes_before_it_is_written_leaves_nothing(disk: SimDisk) -> None:
    jobs = SideJobs(count(1))
    files = AssignedFiles(disk, jobs, alone=True)
    files.note(stream("S"), known=False)
    files.forget(stream("S"))
    files.write()
    assert not jobs.seal()
