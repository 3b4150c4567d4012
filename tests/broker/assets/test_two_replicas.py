"""Streams with two replicas, one of them on a server that an operator removes from the cluster."""

import json

import pytest

from jsctl.broker.raft.types import StandingKind
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.stream_requests import consumer, stream

COUNT = 5


def removed(play: ClusterPlay, gone: ServerPlay) -> None:
    """The server is removed."""
    asked = next(one for one in play if one.running and one is not gone)
    system = asked.connect("sys")
    system.subscribe("answer")
    body = json.dumps({"peer": gone.name}).encode()
    system.publish("$JS.API.SERVER.REMOVE", body, "answer")
    play.wait(lambda: bool(system.messages), "an answer")
    assert b'"success":true' in system.messages[0][2]


def two(play: ClusterPlay, storage: str) -> list[ServerPlay]:
    """The servers of a stream with messages and a consumer, who leads it first."""
    client = play["n1"].connect("a")
    made = stream(replicas=2, storage=storage)
    for subject, body in (("STREAM.CREATE.S", made), ("CONSUMER.CREATE.S.C", consumer())):
        (answer,) = play["n1"].request_all(f"$JS.API.{subject}", 1, **body)
        assert "error" not in answer
    client.subscribe("ack")
    for _ in range(COUNT):
        client.publish("s.x", b"kept", "ack")
    play.wait(lambda: len(client.messages) == COUNT, "all is acknowledged")
    leader = play.leader(play.group_of("S"))
    return sorted(
        (one for one in play if ("A", "S") in one.engine.assets.streams),
        key=lambda one: one is not leader,
    )


@pytest.mark.parametrize("storage", ["file", "memory"])
@pytest.mark.parametrize("leads", [False, True])
@pytest.mark.parametrize("lives", [False, True])
def test_the_other_one_goes_on_alone(storage: str, leads: bool, lives: bool) -> None:
    """It has all that was acknowledged, and nobody else would ever be a majority with it."""
    play = ClusterPlay(4)
    gone, left = two(play, storage)[:: 1 if leads else -1]
    if not lives:
        gone.halt()
        play.run(2)
    removed(play, gone)
    state = left.engine.meta.state

    def whole() -> bool:
        made, follows = state.stream("A", "S"), state.consumer("A", "S", "C")
        assert made is not None and follows is not None
        groups = made.group, follows.group
        return all(one.settled and play.maybe_leader(one.name) for one in groups)

    play.wait(whole, "stream and consumer are where they are to be", 20)
    made = state.stream("A", "S")
    assert made is not None and len(made.group.peers) == 2 and gone.peer not in made.group.peers
    leader = play.leader(made.group.name)
    assert leader.engine.assets.streams["A", "S"].store.state().messages == COUNT


def test_who_may_lack_something_does_not_go_on_alone() -> None:
    """Its log is damaged: only an operator may give up what it lacks."""
    play = ClusterPlay(5)
    gone, left = two(play, "file")
    gone.halt()
    left.halt()
    left.wipe()
    left.begin()
    play.run(3)
    removed(play, gone)
    play.run(5)
    raft = left.engine.groups.by_name[play.group_of("S")].raft
    assert raft.standing.kind is StandingKind.UNKNOWN and raft.leader is None
