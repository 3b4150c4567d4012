"""What it takes to create what clients ask for: syncs of the disk, and work.

And that what was told is durable then.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import SECOND_NS, NodePlay, PlayClient
from tests.support.sim_disk import SimDisk
from tests.support.stream_requests import consumer, stream

pytestmark = pytest.mark.slow


def syncs(disk: SimDisk) -> int:
    """Files and directories, since the disk was made."""
    return disk.syncs + disk.directory_syncs


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_creating_takes_one_sync(storage: str) -> None:
    """That of the decision: what begins a group on its only server follows from it, and goes
    along with what is synced next."""
    play = NodePlay()
    client = play.connect("a")
    for name in "ST":
        before = syncs(play.disk)
        made = client.ask(
            f"$JS.API.STREAM.CREATE.{name}", **stream(name, replicas=1, storage=storage)
        )
        assert "error" not in made
        assert syncs(play.disk) - before == 1
    for name in "CD":
        before = syncs(play.disk)
        made = client.ask(f"$JS.API.CONSUMER.CREATE.S.{name}", **consumer(name))
        assert "error" not in made
        assert syncs(play.disk) - before == 1
    for subject in ("CONSUMER.DELETE.S.D", "STREAM.DELETE.T"):
        before = syncs(play.disk)
        assert client.ask(f"$JS.API.{subject}")["success"]
        assert syncs(play.disk) - before == 1
    for _ in range(2):
        before = syncs(play.disk)
        client.publish("s.x", b"hello", "ack")
    assert syncs(play.disk) - before == (storage == "file")


def ephemeral(number: int, **more: object) -> dict[str, object]:
    """What a reader of a bucket makes, or an ordered consumer."""
    config = {"name": f"E{number}", "ack_policy": "none", "mem_storage": True, "num_replicas": 1}
    config["inactive_threshold"] = 300 * SECOND_NS
    return {"stream_name": "S", "config": config | {"deliver_subject": f"to.{number}"} | more}


def test_what_ends_with_the_process_takes_no_sync() -> None:
    """Nor does its end. What is told of others waits for the disk as ever."""
    play = NodePlay()
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    before = syncs(play.disk)
    for number in range(3):
        for body in (ephemeral(number), ephemeral(number, inactive_threshold=SECOND_NS)):
            made = client.ask(f"$JS.API.CONSUMER.CREATE.S.E{number}", **body)
            assert "error" not in made
    assert client.ask("$JS.API.CONSUMER.DELETE.S.E1")["success"]
    names = client.ask("$JS.API.CONSUMER.NAMES.S")["consumers"]
    assert (names, syncs(play.disk)) == (["E0", "E2"], before)
    for name, memory in (("C", False), ("D", True)):
        before = syncs(play.disk)
        client.ask(f"$JS.API.CONSUMER.CREATE.S.{name}", **consumer(name, mem_storage=memory))
        assert syncs(play.disk) == before + 1
        client.ask("$JS.API.CONSUMER.CREATE.S.E3", **ephemeral(3))
        assert syncs(play.disk) == before + 1
    play.run(2)
    assert syncs(play.disk) == before + 2


def test_what_passes_by_does_not_take_along_what_waits() -> None:
    """Made before and behind something that has to be on the disk first."""
    play = NodePlay()
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    bodies = [ephemeral(1), consumer("D"), ephemeral(2)]
    names = ("E1", "D", "E2")
    client.subscribe("answers")
    for _ in range(3):
        before = len(client.messages)
        play.hold_disk = True
        for name, body in zip(names, bodies, strict=True):
            text = json.dumps(body).encode()
            client.publish(f"$JS.API.CONSUMER.CREATE.S.{name}", text, "answers")
        assert len(client.messages) - before == names.index("D")
        play.hold_disk = False
        client.send(b"")
        assert len(client.messages) - before == len(names)
        for name in names:
            assert client.ask(f"$JS.API.CONSUMER.DELETE.S.{name}")["success"]
        bodies, names = bodies[1:] + bodies[:1], names[1:] + names[:1]


@pytest.mark.parametrize("seed", range(10))
def test_what_was_told_survives_beside_what_passes_by(seed: int) -> None:
    play = NodePlay()
    play.disk.rng.seed(seed)
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    kept: list[str] = []
    for number in range(seed + 2):
        client.ask(f"$JS.API.CONSUMER.CREATE.S.E{number}", **ephemeral(number))
        if number % 3 == seed % 3:
            client.ask(f"$JS.API.CONSUMER.CREATE.S.C{number}", **consumer(f"C{number}"))
            kept.append(f"C{number}")
        if number % 4 == 3:
            client.ask(f"$JS.API.CONSUMER.DELETE.S.E{number - 1}")
    play.disk.crash()
    again = NodePlay(disk=play.disk)
    client = again.connect("a")
    names = client.ask("$JS.API.CONSUMER.NAMES.S")["consumers"] or []
    assert [name for name in names if name.startswith("C")] == kept
    client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer())
    client.ask("$JS.API.CONSUMER.CREATE.S.E", **ephemeral(0, name="E"))
    client.publish("s.x", b"1", "ack")
    assert asked(client, "CONSUMER.INFO.S.C")["num_pending"] == 1
    client.subscribe("to.0")
    assert b"1" in [payload for _, _, payload in client.messages]
    again.disk.crash()
    client = NodePlay(disk=again.disk).connect("a")
    assert asked(client, "CONSUMER.INFO.S.C")["num_pending"] == 1


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


def calls_in(turns: Callable[[], object]) -> int:
    """How many functions of Python are called meanwhile."""
    calls = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        turns()
    finally:
        sys.setprofile(None)
    return calls


def calls_of(client: PlayClient, subject: str, **body: object) -> int:
    """From a request to its answer."""
    answers: list[Any] = []
    calls = calls_in(lambda: answers.append(client.ask(f"$JS.API.{subject}", **body)))
    assert "error" not in answers[0]
    return calls


def uncounted(client: PlayClient, subject: str, **body: object) -> int:
    """The same without counting, which takes its time."""
    assert "error" not in client.ask(f"$JS.API.{subject}", **body)
    return 0


FIRST, MORE = 20, 200
SPREAD = 40
"""Calls that differ between creations: hash tables grow, lists of names are not all alike."""


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["file", "memory"])
def test_creating_takes_no_more_where_there_are_many(storage: str) -> None:
    """Neither streams nor consumers look at those that are there already."""
    client = NodePlay().connect("a")
    streams, consumers, watches, infos = [], [], [], []
    for number in range(FIRST + MORE):
        name = f"S{number}"
        take = partial(uncounted if FIRST <= number < MORE else calls_of, client)
        body = {"name": name, "subjects": [name], "storage": storage}
        streams.append(take(f"STREAM.CREATE.{name}", **body))
        made = consumer(f"C{number}") | {"stream_name": "S0"}
        consumers.append(take(f"CONSUMER.CREATE.S0.C{number}", **made))
        config = {"deliver_subject": f"_INBOX.{number}", "flow_control": True}
        config |= {"idle_heartbeat": SECOND_NS, "ack_policy": "none", "mem_storage": True}
        watch = {"stream_name": "S0", "config": config | {"name": f"W{number}"}}
        watches.append(take(f"CONSUMER.CREATE.S0.W{number}", **watch))
        infos.append(take(f"STREAM.INFO.{name}"))
    for calls in (streams, consumers, watches, infos):
        # Before there is one that pushes, nothing follows who listens.
        assert min(calls[-FIRST:]) - min(calls[1:FIRST]) < SPREAD


def test_what_consumers_that_push_cost_others() -> None:
    """A turn in which nobody begins to listen, or ceases to, asks none of them; another one asks
    those that deliver there."""
    client = NodePlay().connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    one = consumer("C", deliver_subject="to.one")
    assert "error" not in client.ask("$JS.API.CONSUMER.CREATE.S.C", **one)
    counts = []
    for _ in range(2):
        quiet = min(calls_in(lambda: client.publish("nobody", b"")) for _ in range(FIRST))
        counts.append((quiet, min(calls_of(client, "STREAM.INFO.S") for _ in range(FIRST))))
        for number in range(MORE):
            config = consumer(f"C{number}", deliver_subject=f"to.{number}")
            assert "error" not in client.ask(f"$JS.API.CONSUMER.CREATE.S.C{number}", **config)
    (quiet, listens), (quiet_then, listens_then) = counts
    assert quiet_then - quiet < SPREAD
    assert listens_then - listens < SPREAD


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


@pytest.mark.parametrize("seed", range(20))
def test_what_was_created_survives_a_power_cut_right_behind_the_answer(seed: int) -> None:
    """What begins the groups is lost then; they begin again, and work as before."""
    play = NodePlay()
    play.disk.rng.seed(seed)
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    client.publish("s.x", b"1", "ack")
    for name, policy in (("C", "new"), ("D", "last"), ("E", "all")):
        client.ask(f"$JS.API.CONSUMER.CREATE.S.{name}", **consumer(name, deliver_policy=policy))
    client.ask("$JS.API.STREAM.CREATE.T", name="T", subjects=["t"], storage="memory")
    client.ask("$JS.API.STREAM.CREATE.U", name="U", subjects=["u"])
    play.disk.crash()
    again = NodePlay(disk=play.disk)
    client = again.connect("a")
    client.publish("s.x", b"2", "ack")
    client.publish("t", b"1", "ack")
    client.publish("u", b"1", "ack")
    again.disk.crash()
    client = NodePlay(disk=again.disk).connect("a")
    waiting = [asked(client, f"CONSUMER.INFO.S.{name}")["num_pending"] for name in "CDE"]
    assert waiting == [1, 2, 2]
    counts = [asked(client, f"STREAM.INFO.{name}")["state"]["messages"] for name in "STU"]
    assert counts == [2, 0, 1]
