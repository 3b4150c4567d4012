"""Consumers with one replica that go from one server of their stream to another one."""

import json

from jsctl.broker.jetstream.meta.entries import assign_consumer, assign_stream
from jsctl.dataclass import replace
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.stream_requests import consumer, stream


def moving(play: ClusterPlay) -> tuple[ServerPlay, ServerPlay]:
    """A stream and its consumer are to leave a server that does not lead the stream, the consumer
    for another one of the stream's, which stands still; from where and where it goes."""
    client = play["n1"].connect("a")
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", **stream())
    assert "error" not in client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer(num_replicas=1))
    servers = {one.peer: one for one in play}
    state = play["n1"].engine.meta.state
    made, moved = state.stream("A", "S"), state.consumer("A", "S", "C")
    assert made is not None and moved is not None
    (home,) = [servers[peer] for peer in moved.group.peers]
    while (leader := play.leader(made.group.name)) is home:
        client.ask("$JS.API.STREAM.LEADER.STEPDOWN.S")
        play.run(1)
    (other,) = [servers[peer] for peer in made.group.peers if servers[peer] not in (home, leader)]
    (spare,) = [one for one in play if one.peer not in made.group.peers]
    other.pause()
    play.run(3)
    lives = {**made.group.incarnations, spare.peer: spare.engine.options.life}
    lives.pop(home.peer)
    peers, former = (leader.peer, other.peer, spare.peer), (home.peer,)
    going = replace(made.group, peers=peers, former=former, incarnations=lives)
    life = {other.peer: other.engine.options.life}
    following = replace(moved.group, peers=(other.peer,), former=former, incarnations=life)
    entries = [
        assign_stream(replace(made, group=going, request=None)),
        assign_consumer(replace(moved, group=following, request=None)),
    ]
    assert play.leader().engine.meta.propose(entries, None)
    play.run(2)
    return home, other


def is_settled(server: ServerPlay) -> bool:
    """Whether the stream is where it is to be."""
    made = server.engine.meta.state.stream("A", "S")
    return made is not None and made.group.settled


def test_a_server_keeps_a_stream_until_its_consumers_have_left_it() -> None:
    """Also one that the stream's leader has no replica of: it would have been dropped with the
    stream, before anybody else knew what it has consumed, and never had a leader again."""
    play = ClusterPlay(4)
    _, other = moving(play)
    other.go_on()
    group = play.group_of("S", "C")
    play.wait(lambda: play.maybe_leader(group) is other, "the consumer is led where it is to be")
    play.wait(lambda: is_settled(other), "the stream is where it is to be")


def test_a_consumer_on_its_way_from_a_server_that_is_removed_begins_anew() -> None:
    """Nobody else has what it knew, and its stream would wait for it for ever."""
    play = ClusterPlay(4)
    home, other = moving(play)
    home.halt()
    other.go_on()
    play.run(3)
    system = other.connect("sys")
    system.subscribe("answer")
    body = json.dumps({"peer": home.name}).encode()
    system.publish("$JS.API.SERVER.REMOVE", body, "answer")
    play.wait(lambda: bool(system.messages), "the server is removed")
    assert b'"success":true' in system.messages[0][2]
    (answer,) = other.request_all("$JS.API.CONSUMER.INFO.S.C", 3)
    assert answer["cluster"]["leader"] == other.name
    play.wait(lambda: is_settled(other), "the stream is where it is to be")


def test_a_stream_does_not_wait_for_who_makes_consumers_again() -> None:
    """One that is not durable, and has its only replica on a server that is down and that the
    stream leaves, ends: the stream could not be moved again until that server is back."""
    play = ClusterPlay(4)
    client = play["n1"].connect("a")
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", **stream())
    leader = play.leader(play.group_of("S"))
    body = consumer(num_replicas=1, inactive_threshold=10**12)
    body["config"]["name"] = body["config"].pop("durable_name")
    state = leader.engine.meta.state

    def is_elsewhere() -> bool:
        (answer,) = leader.request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **body)
        assert "error" not in answer
        return answer["cluster"]["leader"] not in (leader.name, play.leader().name)

    while not is_elsewhere():
        leader.request_all("$JS.API.CONSUMER.DELETE.S.C", 1)
    made = state.consumer("A", "S", "C")
    assert made is not None
    (home,) = [one for one in play if one.peer in made.group.peers]
    home.halt()
    play.run(2)
    (answer,) = leader.request_all("$JS.API.STREAM.PEER.REMOVE.S", 1, peer=home.name)
    assert "error" not in answer
    play.wait(lambda: is_settled(leader), "the stream is where it is to be")
    assert state.consumer("A", "S", "C") is None


def test_a_consumer_with_fewer_replicas_keeps_those_that_are_there() -> None:
    """As its stream does; one that is down would be one too few with the next failure."""
    play = ClusterPlay()
    (answer,) = play["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    assert "error" not in answer
    (answer,) = play["n1"].request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **consumer())
    assert "error" not in answer
    group = play.group_of("S", "C")
    made = play["n1"].engine.meta.state.consumer("A", "S", "C")
    assert made is not None
    leader = play.leader(group)
    first = next(peer for peer in made.group.peers if peer != leader.peer)
    (away,) = [one for one in play if one.peer == first]
    away.halt()
    play.run(3)
    (answer,) = leader.request_all("$JS.API.CONSUMER.CREATE.S.C", 2, **consumer(num_replicas=2))
    assert "error" not in answer
    fewer = leader.engine.meta.state.consumer("A", "S", "C")
    assert fewer is not None
    assert len(fewer.group.peers) == 2 and away.peer not in fewer.group.peers
