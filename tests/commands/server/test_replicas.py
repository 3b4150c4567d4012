"""`server stream-check` and `consumer-check`: what a comparison of replicas finds."""

import io
import json
from collections.abc import Callable

import pytest

from jsctl.api.cluster import ClusterInfo, PeerInfo
from jsctl.api.consumer import ConsumerInfo, SequenceInfo
from jsctl.api.monitoring.jsz import AccountDetail, Jsz, StreamDetail
from jsctl.api.server import ServerInfo
from jsctl.api.stream import StreamState
from jsctl.render.reports.server.replicas import (
    Replies,
    consumer_replicas,
    judged_streams,
    stream_replicas,
)
from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER
from tests.commands.conftest import Result, Server

Run = Callable[..., Result]
ENABLED = ["nats-server", "jsctl"]
of_both = pytest.mark.parametrize("server", ENABLED, indirect=True, scope="package")


def replica(
    name: str,
    *,
    leader: str = "n1",
    last: int = 5,
    messages: int = 5,
    delivered: int = 5,
    peers: tuple[PeerInfo, ...] = (),
) -> tuple[ServerInfo, Jsz]:
    """What one server has of a stream and its consumer."""
    cluster = ClusterInfo(name="C", leader=leader, raft_group="S-R3", replicas=peers)
    place = SequenceInfo(consumer_seq=delivered, stream_seq=delivered)
    consumer = ConsumerInfo(name="C", cluster=cluster, delivered=place, ack_floor=place)
    state = StreamState(messages=messages, bytes=messages, first_seq=1, last_seq=last)
    stream = StreamDetail(name="S", cluster=cluster, state=state, consumer_detail=(consumer,))
    account = AccountDetail(name="A", stream_detail=(stream,))
    return ServerInfo(name=name), Jsz(account_details=(account,))


@pytest.mark.parametrize(
    ("replies", "streams", "consumers"),
    [
        ((replica("n1"), replica("n2")), ["IN SYNC"] * 2, [(), ()]),
        ((replica("n1"), replica("n2", last=4)), ["UNSYNCED"] * 2, None),
        ((replica("n1"), replica("n2", messages=4)), ["UNSYNCED"] * 2, [(), ()]),
        ((replica("n1"), replica("n2", leader="n2")), ["MULTILEADER"] * 2, [("MULTILEADER",)] * 2),
        (
            (replica("n1"), replica("n2", leader="")),
            ["IN SYNC", "LEADERLESS"],
            [(), ("LEADERLESS",)],
        ),
        ((replica("n1", peers=(PeerInfo(name="n1"),)),), ["LEADER_IS_FOLLOWER"], [()]),
        (
            (replica("n1"), replica("n2", delivered=3)),
            ["IN SYNC"] * 2,
            [("UNSYNCED:ACK_FLOOR", "UNSYNCED:DELIVERED")] * 2,
        ),
        ((replica("n1", delivered=0),), ["IN SYNC"], [("EMPTY",)]),
        (
            (replica("n1", delivered=9),),
            ["IN SYNC"],
            [("UNSYNCED:ACKFLOOR_AHEAD_OF_STREAM_SEQ", "UNSYNCED:DELIVERED_AHEAD_OF_STREAM_SEQ")],
        ),
    ],
)
def test_replicas_are_compared(
    replies: Replies, streams: list[str], consumers: list[tuple[str, ...]] | None
) -> None:
    assert [one.status for one in judged_streams(stream_replicas(replies))] == streams
    if consumers is not None:
        assert [one.statuses for one in consumer_replicas(replies)] == consumers


@of_both
def test_replicas_of_a_cluster(run: Run, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    run("stream", "add", "WIDE", "--subjects", "w", "--replicas", "3", "--defaults")
    run("consumer", "add", "WIDE", "C", "--pull", "--defaults")
    system = ("--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD)
    check = (*system, "server", "stream-check", "--stream", "WIDE")
    result = run(*check, "--health", "-o", "json")
    rows = json.loads(result.out)
    assert [row["node"] for row in rows] == ["n1", "n2", "n3"], result.err
    assert {row["health"] for row in rows} == {":ok:"}
    assert run(*check, "--csv").out.startswith("stream,raft,account,account_id,node,messages")
    assert "Servers: 3\nStreams: 3\n" in run(*check).out
    assert json.loads(run(*check, "--raft-group", "none", "-o", "json").out) == []
    consumers = (*system, "server", "consumer-check", "--consumer", "C")
    assert [row["node"] for row in json.loads(run(*consumers, "-o", "json").out)] == [
        *("n1", "n2", "n3")
    ]
    taken = run(*system, "server", "request", "jsz", "--all", "--config").out
    monkeypatch.setattr("sys.stdin", io.StringIO(taken))
    read = run("server", "stream-check", "--stdin", "--stream", "WIDE", "-o", "json")
    assert len(json.loads(read.out)) == 3
    monkeypatch.setattr("sys.stdin", io.StringIO("{broken"))
    wrong = run("server", "consumer-check", "--stdin")
    assert (wrong.code, "is no list of JSZ documents" in wrong.err) == (1, True)
