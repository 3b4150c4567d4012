"""Followers hear that entries are committed with the next ones, or a moment later, where nobody at
their servers waits for that; else at once."""

from collections.abc import Callable
from typing import Any

import pytest

from jsctl.broker.replication.groups import TELL_NS
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import PlayClient


class Published:
    """A stream with three replicas, and a client at its leader that publishes."""

    def __init__(self, **config: Any) -> None:
        self.cluster = ClusterPlay()
        made = self.cluster["n1"].request_all(
            "$JS.API.STREAM.CREATE.S",
            5,
            **{"name": "S", "subjects": ["s.>"], "num_replicas": 3, **config},
        )
        assert "error" not in made[0], made
        self.group = self.cluster.group_of("S")
        self.leader = self.cluster.leader(self.group)
        self.client: PlayClient = self.leader.connect("a")
        self.client.subscribe("ack")
        self.cluster.run(1)

    def publish(self) -> None:
        """Without time going by; it is acknowledged."""
        before = len(self.client.messages)
        self.client.publish("s.a", b"x", "ack")
        assert len(self.client.messages) == before + 1

    def behind(self) -> list[int]:
        """How many entries each of the others has not applied."""
        last = self.leader.engine.groups.by_name[self.group].raft.applied
        return [last - self.applied(one) for one in self.cluster if one is not self.leader]

    def applied(self, server: ServerPlay) -> int:
        return server.engine.groups.by_name[self.group].raft.applied

    def wait_ns(self, duration_ns: int) -> None:
        """Time goes by, and the leader has a turn."""
        self.cluster.now_ns += duration_ns
        self.leader.step()
        self.cluster.settle()


def test_they_hear_of_it_with_the_next_entry() -> None:
    stream = Published()
    stream.publish()
    assert stream.behind() == [1, 1]
    stream.publish()
    assert stream.behind() == [1, 1]


def test_they_hear_of_it_soon_when_nothing_follows() -> None:
    stream = Published()
    stream.publish()
    stream.wait_ns(TELL_NS - 1)
    assert stream.behind() == [1, 1]
    stream.wait_ns(1)
    assert stream.behind() == [0, 0]


def test_the_leader_wants_a_turn_for_that() -> None:
    stream = Published()
    stream.publish()
    assert stream.leader.engine.urgent_ns() == stream.cluster.now_ns + TELL_NS


def _with_direct_gets() -> Published:
    return Published(allow_direct=True)


def _with_a_consumer() -> Published:
    stream = Published()
    made = stream.leader.request_all(
        "$JS.API.CONSUMER.CREATE.S.C",
        5,
        stream_name="S",
        config={"durable_name": "C", "name": "C", "ack_policy": "explicit"},
    )
    assert "error" not in made[0], made
    return stream


@pytest.mark.parametrize("made", [_with_direct_gets, _with_a_consumer])
def test_they_hear_of_it_at_once_where_somebody_reads(made: Callable[[], Published]) -> None:
    stream = made()
    stream.publish()
    assert stream.behind() == [0, 0]


def test_a_new_leader_has_all_that_was_acknowledged() -> None:
    stream = Published()
    stream.publish()
    stream.leader.halt()
    stream.cluster.run(5)
    assert stream.cluster.leader(stream.group) is not stream.leader
    rest = [stream.applied(one) for one in stream.cluster if one is not stream.leader]
    messages = [
        one.engine.assets.streams["A", "S"].store.messages
        for one in stream.cluster
        if one is not stream.leader
    ]
    assert messages == [1, 1] and len(set(rest)) == 1
