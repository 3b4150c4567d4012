"""Batches on whole servers: what becomes of them when servers die, restart, or hand over."""

import json
from typing import Any

import pytest

from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import PlayClient
from tests.support.stream_requests import stream

INCOMPLETE = 10176


def headers(name: str, seq: int, commit: str = "") -> bytes:
    """Of one message of a batch."""
    lines = f"Nats-Batch-Id: {name}\r\nNats-Batch-Sequence: {seq}\r\n"
    if commit:
        lines += f"Nats-Batch-Commit: {commit}\r\n"
    return f"NATS/1.0\r\n{lines}\r\n".encode()


def answers(client: PlayClient, inbox: str) -> list[Any]:
    """What came to an inbox so far; None for an empty answer."""
    found = [body for to, _, body in client.messages if to == inbox]
    return [json.loads(body) if body else None for body in found]


def send(client: PlayClient, name: str, count: int, *, first: int = 1, commit: str = "1") -> str:
    """Messages of a batch, the last one commits it; where the answer to that goes."""
    inbox = f"answer.{name}.{first}"
    client.subscribe(inbox)
    for seq in range(first, count):
        client.publish(f"s.{name}.{seq}", b"x", "", headers(name, seq))
    client.publish(f"s.{name}.{count}", b"x", inbox, headers(name, count, commit))
    return inbox


def subjects(server: ServerPlay, group: str) -> list[str]:
    """What a replica holds."""
    units = server.engine.assets.streams.values()
    store = next(one.stream.store for one in units if one.group.name == group)
    found = [store.subject_of(seq) for seq in range(1, store.last_seq + 1)]
    return [subject.decode() for subject in found if subject is not None]


def batch(name: str, count: int) -> list[str]:
    return [f"s.{name}.{seq}" for seq in range(1, count + 1)]


@pytest.fixture(params=["file", "memory"])
def cluster(request: pytest.FixtureRequest) -> ClusterPlay:
    """Three servers with a replicated stream."""
    made = ClusterPlay()
    client = made["n1"].connect("a")
    config = stream(storage=request.param, allow_atomic=True, allow_batched=True)
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", **config)
    made.run(1)
    return made


def test_replicas_have_all_of_a_batch(cluster: ClusterPlay) -> None:
    group = cluster.group_of("S")
    for number, server in enumerate(cluster):
        client = server.connect("a")
        inbox = send(client, f"b{number}", 4, commit="1" if number else "eob")
        cluster.run(0.5)
        count = 4 if number else 3
        (answer,) = answers(client, inbox)
        assert answer["batch"] == f"b{number}" and answer["count"] == count
    wanted = batch("b0", 3) + batch("b1", 4) + batch("b2", 4)
    assert [subjects(server, group) for server in cluster] == [wanted] * 3


def test_who_leads_next_knows_nothing_of_a_batch_that_was_begun(cluster: ClusterPlay) -> None:
    group = cluster.group_of("S")
    leader = cluster.leader(group)
    client = leader.connect("a")
    client.publish("s.b.1", b"x", "", headers("b", 1))
    assert leader.engine.context.room.atomic == 1
    assert "error" not in client.ask("$JS.API.STREAM.LEADER.STEPDOWN.S")
    cluster.wait(lambda: cluster.maybe_leader(group) not in (None, leader), "another one leads")
    cluster.run(1)
    assert leader.engine.context.room.atomic == 0
    assert leader.engine.context.room.staged_bytes == 0
    inbox = send(client, "b", 3, first=2)
    cluster.run(0.5)
    (refused,) = answers(client, inbox)
    assert refused["error"]["err_code"] == INCOMPLETE
    inbox = send(client, "b", 3)
    cluster.run(0.5)
    assert answers(client, inbox)[0]["count"] == 3
    assert [subjects(server, group) for server in cluster] == [batch("b", 3)] * 3


def test_a_leader_that_dies_leaves_all_or_nothing(cluster: ClusterPlay) -> None:
    """The batch reaches one follower, or none: who leads next has it whole or not at all."""
    group = cluster.group_of("S")
    leader = cluster.leader(group)
    others = [server for server in cluster if server is not leader]
    client = leader.connect("a")
    whole = send(client, "w", 5)
    cluster.run(0.5)
    assert answers(client, whole)[0]["seq"] == 5
    cluster.isolate(leader.name)
    lost = send(client, "lost", 5)
    leader.halt(noticed=False)
    cluster.wait(lambda: cluster.maybe_leader(group) in others, "another one leads")
    leader.begin()
    cluster.cut.clear()
    cluster.run(5)
    assert answers(client, lost) == []
    held = [subjects(server, group) for server in cluster]
    assert held in ([batch("w", 5)] * 3, [batch("w", 5) + batch("lost", 5)] * 3)
    again = send(cluster.leader(group).connect("a"), "again", 2)
    cluster.run(0.5)
    assert again and all(subjects(server, group)[-2:] == batch("again", 2) for server in cluster)


@pytest.mark.parametrize("synced", [False, True])
def test_a_server_that_dies_alone_has_all_or_nothing(synced: bool) -> None:
    play = ClusterPlay()
    config = stream(replicas=1, allow_atomic=True, allow_batched=True)
    assert "error" not in play["n1"].connect("a").ask("$JS.API.STREAM.CREATE.S", **config)
    play.run(1)
    group = play.group_of("S")
    server = play.leader(group)
    client = server.connect("a")
    send(client, "first", 3)
    play.run(0.5)
    server.disk_held = not synced
    inbox = send(client, "b", 4)
    client.publish("s.c.1", b"x", "", headers("c", 1))
    play.run(0.2)
    assert len(answers(client, inbox)) == synced, "no answer before it is safe"
    server.halt()
    server.disk_held = False
    server.begin()
    play.run(5)
    play.leader(group)
    held = subjects(server, group)
    assert held == batch("first", 3) + (batch("b", 4) if synced else [])
    client = server.connect("a")
    inbox = send(client, "c", 2, first=2)
    play.run(0.5)
    assert answers(client, inbox)[0]["error"]["err_code"] == INCOMPLETE


def test_no_consumer_sees_a_part(cluster: ClusterPlay) -> None:
    client = cluster["n1"].connect("a")
    config = {"durable_name": "C", "ack_policy": "none", "deliver_subject": "got"}
    made = client.ask("$JS.API.CONSUMER.DURABLE.CREATE.S.C", stream_name="S", config=config)
    assert "error" not in made
    client.subscribe("got")
    client.publish("s.b.1", b"x", "", headers("b", 1))
    client.publish("s.plain", b"x")
    cluster.run(1)
    assert delivered(client) == ["1"]
    send(client, "b", 3, first=2)
    cluster.run(1)
    assert delivered(client) == ["1", "2", "3", "4"]


def delivered(client: PlayClient) -> list[str]:
    """Sequences of what a consumer delivered."""
    replies = [reply for _, reply, _ in client.messages if reply.startswith("$JS.ACK.")]
    return [reply.split(".")[5] for reply in replies]


# Fast batches


def say(client: PlayClient, seq: int, operation: int, gaps: str = "fail") -> None:
    """A message of a fast batch, whose publisher wants to hear of each."""
    reply = f"told.f.1.{gaps}.{seq}.{operation}.$FI"
    client.publish(f"s.f.{seq}", b"x", reply)


def told(client: PlayClient) -> list[Any]:
    """What a publisher was told since the last call, in short."""
    found = client.heard("told.")
    client.messages.clear()
    return [(one.get("type", "done"), one["seq"]) for one in found]


@pytest.mark.parametrize("killed", [False, True])
def test_a_new_leader_goes_on_with_a_fast_batch(cluster: ClusterPlay, killed: bool) -> None:
    group = cluster.group_of("S")
    leader = cluster.leader(group)
    others = [server for server in cluster if server is not leader]
    client = others[0].connect("a")
    client.subscribe("told.>")
    for seq in (1, 2, 3):
        say(client, seq, min(seq - 1, 1))
    cluster.run(0.5)
    assert told(client) == [("ack", 0), ("ack", 1), ("ack", 2), ("ack", 3)]
    if killed:
        leader.halt()
    else:
        assert "error" not in client.ask("$JS.API.STREAM.LEADER.STEPDOWN.S")
    cluster.wait(lambda: cluster.maybe_leader(group) in others, "another one leads")
    cluster.run(0.5)
    assert told(client) == [("ack", 3)], "who leads now says that it is there"
    say(client, 4, 1)
    say(client, 5, 2)
    cluster.run(0.5)
    assert told(client) == [("ack", 4), ("done", 5)]
    if killed:
        leader.begin()
        cluster.run(5)
    assert [subjects(server, group) for server in cluster] == [batch("f", 5)] * 3
    units = [server.engine.assets.streams.values() for server in cluster]
    assert all(one.stream.batches == {} for some in units for one in some)


@pytest.mark.parametrize("synced", [False, True])
def test_a_server_that_starts_again_goes_on_with_a_fast_batch(synced: bool) -> None:
    play = ClusterPlay()
    config = stream(replicas=1, allow_batched=True)
    assert "error" not in play["n1"].connect("a").ask("$JS.API.STREAM.CREATE.S", **config)
    play.run(1)
    group = play.group_of("S")
    server = play.leader(group)
    client = next(one for one in play if one is not server).connect("a")
    client.subscribe("told.>")
    say(client, 1, 0)
    say(client, 2, 1)
    play.run(0.5)
    server.disk_held = not synced
    say(client, 3, 1)
    play.run(0.2)
    last = 3 if synced else 2
    assert told(client) == [("ack", seq) for seq in range(last + 1)]
    server.halt()
    server.disk_held = False
    server.begin()
    play.run(5)
    play.leader(group)
    assert told(client) == [("ack", last)]
    say(client, 4, 2)
    play.run(0.5)
    assert told(client) == ([("done", 4)] if synced else [("gap", 4), ("done", 2)])
    assert subjects(server, group) == batch("f", 4 if synced else 2)


def test_a_replica_that_gets_the_whole_state_knows_of_fast_batches() -> None:
    """It leads next, and goes on."""
    play = ClusterPlay(4)
    client = play["n1"].connect("a")
    config = stream(replicas=1, allow_batched=True)
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", **config)
    play.run(1)
    first = play.leader(play.group_of("S"))
    client = next(one for one in play if one is not first).connect("a")
    client.subscribe("told.>")
    for seq in (1, 2, 3):
        say(client, seq, min(seq - 1, 1), "ok")
    play.run(0.5)
    assert "error" not in client.ask("$JS.API.STREAM.UPDATE.S", **{**config, "num_replicas": 3})
    group = play.group_of("S")
    play.wait(lambda: sum(holds(one, group) for one in play) == 3, "three have it", 60)
    marks = [
        dict(one.stream.batches) for server in play for one in server.engine.assets.streams.values()
    ]
    assert [set(one) for one in marks] == [{b"f"}] * 3 and marks[0] == marks[1] == marks[2]
    raft = first.engine.groups.by_name[group].raft
    play.wait(lambda: len(raft.members.voters) == 3, "three vote", 60)
    told(client)
    first.halt()
    play.wait(lambda: play.maybe_leader(group) is not None, "another one leads")
    play.run(1)
    assert told(client)[-1] == ("ack", 3)


def holds(server: ServerPlay, group: str) -> bool:
    """Whether a server has a replica that is up to date."""
    units = server.engine.assets.streams.values()
    return any(one.group.name == group and one.stream.batches for one in units)
