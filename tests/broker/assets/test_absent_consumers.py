"""Consumers whose replica is on other servers than the one that leads their stream."""

import json

import pytest

from jsctl.broker.jetstream.meta.entries import assign_stream
from jsctl.dataclass import replace
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.stream_requests import consumer, stream


def messages(play: ClusterPlay) -> int:
    """How many the stream has at its leader."""
    leader = play.leader(play.group_of("S"))
    count: int = leader.engine.assets.streams["A", "S"].store.state().messages
    return count


def spread(play: ClusterPlay, name: str) -> None:
    """All servers are to have a stream; its consumers stay where they are."""
    meta = play.leader().engine.meta
    made = meta.state.stream("A", name)
    assert made is not None
    lives = {one.peer: one.engine.options.life for one in play}
    peers = tuple(sorted(lives, key=lambda peer: peer not in made.group.peers))
    group = replace(made.group, peers=peers, incarnations=lives)
    config = replace(made.config, num_replicas=3)
    assert meta.propose([assign_stream(replace(made, config=config, group=group))], None)


def voters(server: ServerPlay, group: str) -> tuple[str, ...]:
    return server.engine.groups.by_name[group].raft.members.voters


@pytest.mark.parametrize("others", [False, True])
def test_a_server_that_gets_a_stream_keeps_what_is_for_consumers_elsewhere(others: bool) -> None:
    """The consumer has one replica, whatever its stream has: what is published while another server
    leads the stream is for it, and what others have acknowledged is, too."""
    play = ClusterPlay()
    client = play["n1"].connect("a")
    made = stream(replicas=1, retention="interest")
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", **made)
    only = consumer(num_replicas=1)
    assert "error" not in client.ask("$JS.API.CONSUMER.CREATE.S.C", **only)
    if others:
        assert "error" not in client.ask("$JS.API.CONSUMER.CREATE.S.D", **consumer("D"))
    group = play.group_of("S")
    first = play.leader(group)
    spread(play, "S")
    play.wait(lambda: len(voters(first, group)) == 3, "three servers have the stream")
    client.ask("$JS.API.STREAM.LEADER.STEPDOWN.S")
    play.wait(lambda: play.maybe_leader(group) not in (None, first), "another server leads it")
    (ack,) = client.request("s.x", b"one")
    assert b"error" not in ack
    if others:
        client.subscribe("got")
        client.publish("$JS.API.CONSUMER.MSG.NEXT.S.D", b"", "got")
        play.run(0.5)
        ((_, reply, _),) = [one for one in client.messages if one[1].startswith("$JS.ACK.S.D")]
        client.publish(reply, b"+ACK")
        play.run(1)
    assert messages(play) == 1


@pytest.mark.parametrize("retention", ["interest", "limits"])
def test_consumers_have_the_replicas_of_a_stream_that_lets_go_of_what_was_consumed(
    retention: str,
) -> None:
    """Also those that had one as their stream had one, or kept all: nothing would go while another
    server leads the stream."""
    play = ClusterPlay()
    first = play["n1"]
    made = stream(replicas=1 if retention == "interest" else 3, retention=retention)
    for subject, body in (
        ("STREAM.CREATE.S", made),
        ("CONSUMER.CREATE.S.C", consumer(num_replicas=1)),
        ("STREAM.UPDATE.S", stream(retention="interest")),
    ):
        (answer,) = first.request_all(f"$JS.API.{subject}", 1, **body)
        assert "error" not in answer
    found = play.leader().engine.meta.state.consumer("A", "S", "C")
    assert found is not None and len(found.group.peers) == found.config.num_replicas == 3
    play.wait(lambda: len(voters(first, found.group.name)) == 3, "three servers have it")
    (answer,) = first.request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **consumer(num_replicas=3))
    assert "error" not in answer


def test_consumers_whose_only_server_is_removed_begin_anew() -> None:
    """Or are gone, where whoever made them makes others; their stream is free to go elsewhere."""
    play = ClusterPlay(4)
    asked, first = play["n1"], play["n1"].engine.meta.state
    (answer,) = asked.request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    for number in range(12):
        name = f"C{number}"
        body = consumer(name, num_replicas=1, inactive_threshold=10**12)
        body["config"]["name"] = name
        if not number % 2:
            del body["config"]["durable_name"]
        (answer,) = asked.request_all(f"$JS.API.CONSUMER.CREATE.S.{name}", 0.5, **body)
        assert "error" not in answer
    held: dict[str, list[set[str]]] = {one.peer: [set(), set()] for one in play}
    for one in first.consumers("A", "S").values():
        held[one.group.peers[0]][bool(one.config.durable_name)].add(one.name)
    others = [one for one in play if one not in (asked, play.leader())]
    gone = next(one for one in others if all(held[one.peer]))
    passing, durable = held[gone.peer]
    gone.halt()
    play.run(3)
    system = asked.connect("sys")
    system.subscribe("answer")
    system.publish("$JS.API.SERVER.REMOVE", json.dumps({"peer": gone.name}).encode(), "answer")
    play.wait(lambda: bool(system.messages), "the server is removed")
    assert (passing | durable) & first.consumers("A", "S").keys() == durable
    for name in durable:
        (answer,) = asked.request_all(f"$JS.API.CONSUMER.INFO.S.{name}", 3)
        assert "error" not in answer

    def settled() -> bool:
        made = first.stream("A", "S")
        return made is not None and made.group.settled

    play.wait(settled, "the stream is where it is to be", 40)
