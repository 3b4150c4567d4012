"""What it takes to create what clients ask for: syncs of the disk, and work.

And that what was told is durable then.
"""

import sys
from types import FrameType
from typing import Any

import pytest

from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import NodePlay, PlayClient
from tests.support.sim_disk import SimDisk
from tests.support.stream_requests import consumer, stream


def syncs(disk: SimDisk) -> int:
    """Files and directories, since the disk was made."""
    return disk.syncs + disk.directory_syncs


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_creating_takes_two_syncs(storage: str) -> None:
    """One for the decision, one for everything that begins a group."""
    play = NodePlay()
    client = play.connect("a")
    for name in "ST":
        before = syncs(play.disk)
        made = client.ask(
            f"$JS.API.STREAM.CREATE.{name}", **stream(name, replicas=1, storage=storage)
        )
        assert "error" not in made
        assert syncs(play.disk) - before == 2
    for name in "CD":
        before = syncs(play.disk)
        made = client.ask(f"$JS.API.CONSUMER.CREATE.S.{name}", **consumer(name))
        assert "error" not in made
        assert syncs(play.disk) - before == 2
    before = syncs(play.disk)
    client.publish("s.x", b"hello", "ack")
    assert syncs(play.disk) - before == (storage == "file")


def test_creating_replicas_takes_their_leader_three_syncs() -> None:
    """The decision, the vote, and everything that begins a group. Others may get to vote when
    they have noted already that the group is there."""
    cluster = ClusterPlay()
    for subject, body in (
        ("STREAM.CREATE.S", stream()),
        ("CONSUMER.CREATE.S.C", consumer()),
    ):
        before = [syncs(server.disk) for server in cluster]
        (answer,) = cluster["n1"].request_all(f"$JS.API.{subject}", 1, **body)
        assert "error" not in answer
        counts = [syncs(one.disk) - old for one, old in zip(cluster, before, strict=True)]
        assert min(counts) == 3 and max(counts) <= 4


CALLS_EACH_MAX = 15
"""Function calls that a stream may add to the creation of another: it is counted, not looked at."""


def calls_of_a_creation(client: PlayClient, name: str) -> int:
    """How many functions of Python are called from the request to its answer."""
    calls = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        made = client.ask(
            f"$JS.API.STREAM.CREATE.{name}", name=name, subjects=[name], storage="file"
        )
    finally:
        sys.setprofile(None)
    assert "error" not in made
    return calls


def test_creating_takes_little_more_where_there_are_many_streams() -> None:
    client = NodePlay().connect("a")
    calls = [calls_of_a_creation(client, f"S{number}") for number in range(100)]
    assert min(calls[90:]) - min(calls[:10]) < 90 * CALLS_EACH_MAX


def asked(client: PlayClient, subject: str) -> Any:
    return client.ask(f"$JS.API.{subject}")


@pytest.mark.parametrize("seed", range(20))
def test_what_was_told_survives_a_power_cut(seed: int) -> None:
    play = NodePlay()
    play.disk.rng.seed(seed)
    client = play.connect("a")
    client.publish("s.x", b"before")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    client.publish("s.x", b"1", "ack")
    client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer(deliver_policy="new"))
    client.publish("s.x", b"2", "ack")
    play.disk.crash()
    again = NodePlay(disk=play.disk)
    client = again.connect("a")
    assert asked(client, "STREAM.INFO.S")["state"]["messages"] == 2
    info = asked(client, "CONSUMER.INFO.S.C")
    assert (info["delivered"]["stream_seq"], info["num_pending"]) == (1, 1)
