"""A leader that was held up has requests to answer before it has heard how late it is."""

import json

import pytest

from jsctl.broker.options import MILLISECOND_NS, RaftOptions
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import LOG_BYTES, PlayClient
from tests.support.stream_requests import stream

GET = "$JS.API.STREAM.MSG.GET.S"
ELECTION_NS = 800 * MILLISECOND_NS
LAST = json.dumps({"last_by_subj": "s.x"}).encode()


@pytest.fixture
def cluster() -> ClusterPlay:
    """With a stream S of three replicas, and leaders that take long to give up."""
    play = ClusterPlay(raft=RaftOptions(log_segment_bytes=LOG_BYTES, election_min_ns=ELECTION_NS))
    (answer,) = play["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream(subjects=["s.>"]))
    assert "error" not in answer
    return play


def listening(server: ServerPlay) -> PlayClient:
    client = server.connect("a")
    client.subscribe("in.*")
    return client


@pytest.mark.parametrize("away_ms", range(50, 700, 50))
def test_it_answers_when_nobody_else_asks(cluster: ClusterPlay, away_ms: int) -> None:
    leader = cluster.leader(cluster.group_of("S"))
    client = listening(leader)
    client.publish("s.x", b"one", "in.ack")
    cluster.run(0.5)
    leader.pause()
    client.publish(GET, LAST, "in.get")
    cluster.run(away_ms / 1000)
    leader.go_on()
    cluster.run(1)
    assert [subject for subject, _, _ in client.messages] == ["in.ack", "in.get"]
    assert json.loads(client.messages[1][2])["message"]["seq"] == 1


@pytest.mark.parametrize("before_ms", range(0, 150, 25))
def test_it_does_not_tell_what_was_true_before(cluster: ClusterPlay, before_ms: int) -> None:
    group = cluster.group_of("S")
    late = cluster.leader(group)
    client = listening(late)
    client.publish("s.x", b"one", "in.ack")
    cluster.run(0.1 + before_ms / 1000)
    late.pause()
    cluster.isolate(late.name)
    for other in cluster:
        while other is not late and any(peer is late for peer, _ in other.routes.values()):
            other.break_link(late)
    began_ns = cluster.now_ns
    there = listening(cluster.leader(group))
    there.publish("s.x", b"two", "in.ack")
    cluster.wait(lambda: bool(there.messages), "an acknowledgement of the new leader")
    assert json.loads(there.messages[0][2])["seq"] == 2
    assert cluster.now_ns - began_ns < ELECTION_NS, "it takes itself for the leader, by its clock"
    client.publish(GET, LAST, "in.get")
    late.go_on()
    cluster.run(5)
    (told,) = [payload for subject, _, payload in client.messages if subject == "in.get"]
    assert json.loads(told)["error"]["err_code"] == 10008
