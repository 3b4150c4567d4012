"""Consumers whose replica is on other servers than the one that leads their stream."""

import pytest

from tests.support.cluster_play import ClusterPlay
from tests.support.stream_requests import consumer, stream


def messages(play: ClusterPlay) -> int:
    """How many the stream has at its leader."""
    leader = play.leader(play.group_of("S"))
    count: int = leader.engine.assets.streams["A", "S"].store.state().messages
    return count


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
    client.ask("$JS.API.STREAM.UPDATE.S", **stream(retention="interest"))
    group = play.group_of("S")
    first = play.leader(group)

    def settled() -> bool:
        found = first.engine.meta.state.stream("A", "S")
        return found is not None and found.group.settled

    play.wait(settled, "three servers have the stream")
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
