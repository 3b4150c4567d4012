"""Followers hear that entries are committed with the next ones, or a moment later, where nobody at
their servers waits for that; at once where consumers do, or somebody reads there."""

import re
from typing import Any

import pytest

from jsctl.broker.jsapi.direct_gets import LEADERLESS_NS
from jsctl.broker.replication.groups import TELL_NS, Groups
from jsctl.broker.routing.delivery import Deliverer
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import SECOND_NS, PlayClient


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


def test_they_hear_of_it_at_once_where_a_consumer_waits() -> None:
    stream = Published()
    made = stream.leader.request_all(
        "$JS.API.CONSUMER.CREATE.S.C",
        5,
        stream_name="S",
        config={"durable_name": "C", "name": "C", "ack_policy": "explicit"},
    )
    assert "error" not in made[0], made
    stream.publish()
    assert stream.behind() == [0, 0]


def test_a_consumer_begins_with_what_is_acknowledged() -> None:
    """At whatever server; without time going by."""
    stream = Published(allow_direct=True)
    where = set()
    for number in range(1, 7):
        stream.publish()
        config = {"name": f"C{number}", "mem_storage": True, "num_replicas": 1}
        made = stream.client.ask(
            f"$JS.API.CONSUMER.CREATE.S.C{number}",
            stream_name="S",
            config={**config, "inactive_threshold": 300 * SECOND_NS},
        )
        assert made["num_pending"] == number
        where.add(made["cluster"]["leader"])
        stream.client.ask(f"$JS.API.CONSUMER.DELETE.S.C{number}")
    assert where - {stream.leader.name}, "one began at a follower"


class Read(Published):
    """One whose messages somebody gets from a follower, which his own server is."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        super().__init__(allow_direct=True)
        # Of all that answer, a server that answers itself is drawn.
        patch.setattr(Deliverer, "draw", lambda self, count: 0)
        self.follower = next(one for one in self.cluster if one is not self.leader)
        self.reader = self.follower.connect("a")
        self.reader.subscribe("got")
        self.cluster.run(1)

    def get(self) -> None:
        """Ask for the last message."""
        self.reader.publish("$JS.API.DIRECT.GET.S.s.a", b"", "got")

    @property
    def got(self) -> list[int]:
        """The sequences of the answers; 0: there was no message."""
        found = [re.search(rb"Nats-Sequence: (\d+)", one) for one in self.reader.heads]
        return [int(one[1]) if one else 0 for one in found]

    def wait_in_vain(self) -> None:
        """Of two messages the follower has, one is not committed; a get has nearly given up."""
        self.publish()
        self.cluster.run(1)
        self.hold_disks()
        self.client.publish("s.a", b"y", "ack")
        self.get()
        self.cluster.run(LEADERLESS_NS / 1e9 - 0.1)

    def hold_disks(self) -> None:
        """Nothing can be committed, although the follower has it."""
        for one in self.cluster:
            one.disk_held = one is not self.follower


def test_who_reads_at_a_follower_asks_for_what_is_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = Read(monkeypatch)
    stream.publish()
    assert stream.behind() == [1, 1]
    stream.get()
    assert stream.got == [1], "without time going by"
    assert sorted(stream.behind()) == [0, 1], "nobody else asked"


def test_who_asks_is_told_as_soon_as_it_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Read(monkeypatch)
    stream.hold_disks()
    stream.client.publish("s.a", b"x", "ack")
    stream.get()
    stream.get()
    assert stream.got == []
    stream.leader.release_disk()
    assert stream.got == [1, 1]


def test_who_asks_again_is_told_of_what_came_since(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Read(monkeypatch)
    for count in range(1, 4):
        stream.publish()
        stream.publish()
        stream.get()
        assert stream.got[-1] == 2 * count


def test_a_question_that_is_lost_costs_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Read(monkeypatch)
    monkeypatch.setattr(Groups, "ask", lambda self, group: None)
    stream.publish()
    stream.get()
    assert stream.got == []
    stream.wait_ns(TELL_NS)
    assert stream.got == [1]


def test_without_a_quorum_it_is_what_was_committed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Read(monkeypatch)
    stream.wait_in_vain()
    assert stream.got == []
    stream.cluster.run(0.3)
    assert stream.got == [1]


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


def test_the_two_seconds_go_on_where_the_replica_is_listened_for_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = Read(monkeypatch)
    stream.wait_in_vain()
    running = stream.follower.node._running
    assert running is not None and running.jetstream is not None
    jetstream = running.jetstream
    jetstream._direct.listen_anew("A")
    jetstream._direct.refresh()
    stream.get()
    stream.cluster.run(0.3)
    assert stream.got == [1, 1]
