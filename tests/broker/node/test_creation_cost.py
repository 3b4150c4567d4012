"""How often the disk is synced for what clients ask, and that what was told is durable then."""

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
