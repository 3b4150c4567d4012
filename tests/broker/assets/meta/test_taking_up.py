"""What a server alone takes up again from its disk when its log is lost, and what it leaves."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.stream import StreamConfig
from jsctl.broker.assets.assigned_files import (
    OLDER_FILE,
    PORTION,
    SPARE_BYTES,
    AssignedFiles,
    directory_of,
    read_all,
)
from jsctl.broker.assets.meta.taking_up import left_over
from jsctl.broker.jetstream.meta.assignments import (
    ConsumerAssignment,
    GroupAssignment,
    StreamAssignment,
    stream_document,
)
from jsctl.broker.jetstream.meta.entries import assign_stream, key_of
from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.jetstream.requests import ClientInfo
from jsctl.broker.replication.side_jobs import SideJobs
from jsctl.broker.replication.state_file import GroupState, encode
from tests.support.scarce_disk import ScarceDisk
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


def run(
    files: AssignedFiles, jobs: SideJobs, made: Sequence[StreamAssignment | ConsumerAssignment] = ()
) -> bool:
    """A second goes by; whether there was something to do."""
    files.write(lambda: made)
    some = jobs.seal()
    for job in some:
        job.run()
        jobs.done(job.ticket)
    return bool(some)


def write(disk: SimDisk, *made: StreamAssignment | ConsumerAssignment, alone: bool = True) -> None:
    jobs = SideJobs(count(1))
    files = AssignedFiles(disk, jobs, alone, all_taken_up=True)
    for one in made:
        files.note(one, known=False)
    run(files, jobs, made)


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
    write(disk, stream("S", "s.>"), stream("T", "t.>"))
    data = disk.content("assigned/1")
    at = data.index(b"s.>")
    disk.overwrite("assigned/1", data[:at] + b"x" + data[at + 1 :])
    for name in ("S-S", "S-T", "S-older"):
        disk.make_directory(f"streams/{name}")
    keys, texts = taken(disk)
    assert keys == [("A", "T", "")]
    assert sum("does not say what it is" in one for one in texts) == 2


def test_what_broke_off_takes_nothing_along_that_comes_behind_it(disk: SimDisk) -> None:
    write(disk, stream("S", "s.>"), stream("T", "t.>"))
    disk.overwrite("assigned/1", disk.content("assigned/1")[:-9])
    write(disk, stream("U", "u.>"))
    assert [key[1] for key in taken(disk)[0]] == ["S", "U"]


def test_what_an_earlier_version_wrote_counts_where_nothing_else_does(disk: SimDisk) -> None:
    for name in ("S", "T"):
        older = replace(stream(name, f"{name}.>"), revision=7)
        state = GroupState(0, 0, 0, b"", json.dumps(stream_document(older)).encode())
        disk.make_directory(f"streams/S-{name}")
        file = disk.open(f"streams/S-{name}/{OLDER_FILE}", create=True)
        file.write(0, [encode(state, f"streams/S-{name}")])
    write(disk, stream("S", "s.>"))
    found = [made for _, made in read_all(disk)]
    assert [one.revision for one in found if one is not None] == [1, 7]


def test_what_is_over_does_not_come_back(disk: SimDisk) -> None:
    jobs = SideJobs(count(1))
    files = AssignedFiles(disk, jobs, alone=True, all_taken_up=True)
    for name in ("S", "T"):
        files.note(stream(name), known=False)
    run(files, jobs)
    files.forget(stream("S"))
    run(files, jobs)
    assert [key[1] for key in taken(disk)[0]] == ["T"]
    disk.make_directory("streams/S-S")
    assert [key[1] for key in taken(disk)[0]] == ["T"]


@pytest.mark.slow
def test_files_do_not_grow_with_what_is_over(disk: SimDisk) -> None:
    jobs = SideJobs(count(1))
    files = AssignedFiles(disk, jobs, alone=True, all_taken_up=True)
    there = {name: stream(name, f"{name}.>") for name in map("N{}".format, range(2 * PORTION + 9))}
    for one in there.values():
        files.note(one, known=False)
    run(files, jobs)
    largest, changes = 0, 0
    while changes < 9_000:
        for name in list(there)[changes % 500 : changes % 500 + 50]:
            changes += 1
            there[name] = replace(there[name], revision=there[name].revision + 1)
            files.note(there[name], known=False)
        gone = there.pop(next(iter(there)))
        files.forget(gone)
        there[gone.name] = gone
        files.note(replace(gone, group=group(f"S-{gone.name}")), known=False)
        run(files, jobs, list(there.values()))
        told = {made.name: made for _, made in read_all(disk) if made is not None}
        assert told == there
        numbers = disk.list("assigned")
        largest = max(largest, sum(len(disk.content(f"assigned/{one}")) for one in numbers))
    assert len(numbers) <= 2 and int(numbers[-1]) > 1
    assert largest < 6 * SPARE_BYTES, largest


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
        files = AssignedFiles(disk, jobs, alone=True, all_taken_up=True)
        files.note(made, known=known)
        run(files, jobs)
        assert [one for _, one in read_all(disk)] == [old if known else new]


def test_what_goes_before_it_is_written_leaves_nothing(disk: SimDisk) -> None:
    jobs = SideJobs(count(1))
    files = AssignedFiles(disk, jobs, alone=True, all_taken_up=True)
    files.note(stream("S"), known=False)
    files.forget(stream("S"))
    run(files, jobs)
    assert not list(read_all(disk))


@pytest.mark.parametrize("full_in", range(2))
def test_what_found_no_room_is_written_when_there_is_some(full_in: int) -> None:
    disk, jobs = ScarceDisk(random.Random(1)), SideJobs(count(1))
    files = AssignedFiles(disk, jobs, alone=True, all_taken_up=True)
    old, new = stream("S"), stream("T")
    if full_in:
        files.note(old, known=False)
        run(files, jobs, [old])
        files.forget(old)
    files.note(new, known=False)
    for room in (0, 1, 1):
        disk.full_in = room
        run(files, jobs, [new])
    disk.full_in = None
    for _ in range(3):
        run(files, jobs, [new])
    assert [one for _, one in read_all(disk)] == [new]
    assert len(disk.list("assigned")) == 1 and not run(files, jobs, [new])


def test_nothing_new_is_nothing_to_do(disk: SimDisk) -> None:
    jobs = SideJobs(count(1))
    files = AssignedFiles(disk, jobs, alone=True, all_taken_up=True)
    files.note(stream("S"), known=False)
    assert run(files, jobs) and not run(files, jobs)
