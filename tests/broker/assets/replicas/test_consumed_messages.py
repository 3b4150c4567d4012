"""What a stream lets go of because it was consumed: only what it knows nobody needs."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from jsctl.api.times import SECOND_NS
from jsctl.broker.assets.replicas import leading_stream
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.meta.state import ChangeKind, MetaChange
from jsctl.broker.protocol.deliveries import OutgoingMessage
from jsctl.broker.replication.state_import import pieces
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import PlayClient
from tests.support.stream_requests import consumer, stream


@pytest.fixture
def cluster() -> ClusterPlay:
    """Three servers."""
    return ClusterPlay()


def made(cluster: ClusterPlay, retention: str, replicas: int = 3) -> ServerPlay:
    """Have a stream S and its consumer C made; who leads the stream."""
    body = stream(retention=retention, replicas=replicas)
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **body)
    leader = cluster.leader(cluster.group_of("S"))
    groups = leader.engine.groups
    groups.checkpoints.soon(groups.by_name["_meta_"])
    cluster.run(1)
    cluster["n1"].request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **consumer())
    return leader


def publish(server: ServerPlay, count: int) -> None:
    client = server.connect("a")
    for _ in range(count):
        (ack,) = client.request("s.x", b"message")
        assert b'"seq"' in ack


def left(server: ServerPlay) -> int:
    """Messages of its replica."""
    return server.engine.assets.streams[("A", "S")].store.messages


def test_a_state_that_a_consumer_receives_tells_what_it_has_consumed(cluster: ClusterPlay) -> None:
    leader = made(cluster, "workqueue")
    publish(leader, 3)
    replica = leader.engine.assets.consumers[("A", "S", "C")]
    if replica.leader is not None:
        replica.group.raft.transfer()
        leader.engine.groups.touch(replica.group)
        cluster.wait(lambda: replica.leader is None, "another server leads the consumer")
    ahead = Consumer("S", "C", replica.consumer.config, created_ns=0)
    ahead.restore(replica.consumer.snapshot())
    ahead.state.deliver([1, 2, 3], 1, cluster.now_ns)
    ahead.state.ack([1, 2], cluster.now_ns)
    importer = replica.importer()
    for piece in pieces([ahead.snapshot()]):
        importer.feed(piece)
    importer.finish(9, 1, b"")
    importer.switch()
    cluster.run(1)
    assert [left(server) for server in cluster] == [1, 1, 1]


def test_what_the_log_has_no_room_to_remove_goes_later(
    cluster: ClusterPlay, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = made(cluster, "workqueue")
    publish(leader, 3)
    monkeypatch.setattr(leading_stream, "REMOVE_SEQS_MAX", 1)
    raft = leader.engine.assets.streams[("A", "S")].group.raft
    raft.limits = replace(raft.limits, proposal_bytes_max=1)
    have_acked(leader, 1, 2, 3)
    cluster.run(1)
    assert [left(server) for server in cluster] == [0, 0, 0]


def test_a_stream_that_goes_by_interest_from_now_on_lets_go_of_what_is_consumed(
    cluster: ClusterPlay,
) -> None:
    leader = made(cluster, "limits")
    body = stream(retention="interest")
    leader.request_all("$JS.API.STREAM.UPDATE.S", 1, **body)
    publish(leader, 2)
    client = leader.connect("a")
    client.subscribe("next")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", b"1", "next")
    cluster.run(0.5)
    (reply,) = (reply for _, reply, _ in client.messages if reply)
    client.publish(reply, b"+ACK")
    cluster.run(1)
    assert [left(server) for server in cluster] == [1, 1, 1]


def have_acked(leader: ServerPlay, *seqs: int, said: Sequence[OutgoingMessage] = ()) -> None:
    """Its replica of the consumer applies acks, and says so."""
    known = leader.engine.assets.consumers[("A", "S", "C")]
    state, now_ns = known.consumer.state, leader.cluster.now_ns
    state.deliver(seqs, 1, now_ns)
    state.ack(seqs, now_ns)
    known.stream.consumed(known.consumer.take_acked(), [*said])


def test_a_message_that_is_consumed_before_it_is_applied_here_goes_when_it_is(
    cluster: ClusterPlay,
) -> None:
    """Others are a majority without the stream's leader, and one of them may lead the consumer."""
    leader = made(cluster, "workqueue")
    have_acked(leader, 1)
    cluster.run(0.5)
    publish(leader, 2)
    cluster.run(1)
    assert left(leader) == 1
    assert leader.engine.assets.streams[("A", "S")].store.first_seq == 2


def test_who_acknowledged_is_answered_though_another_server_has_to_remove_it(
    cluster: ClusterPlay,
) -> None:
    leader = made(cluster, "workqueue")
    publish(leader, 1)
    client = leader.connect("a")
    client.subscribe("answer")
    cluster.isolate(leader.name)
    have_acked(leader, 1, said=[(b"answer", b"", b"", b"", b"")])
    cluster.wait(lambda: bool(client.messages), "the ack counts, whoever leads")
    assert leader.engine.assets.streams[("A", "S")].leader is None


def test_what_was_consumed_goes_before_another_consumer_could_get_it(cluster: ClusterPlay) -> None:
    leader = made(cluster, "workqueue")
    publish(leader, 2)
    have_acked(leader, 1)
    assets = leader.engine.assets
    old = assets.consumers[("A", "S", "C")].assignment
    new = replace(old, group=replace(old.group, name=f"{old.group.name}x"))
    assets.follow(MetaChange(ChangeKind.REMOVED, "A", "S", "C", old))
    assets.follow(MetaChange(ChangeKind.ADDED, "A", "S", "C", None, new))
    cluster.run(1)
    assert left(leader) == 1


def test_deliveries_do_not_wait_until_others_are_gone(
    cluster: ClusterPlay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who acknowledges is answered then; what the same entry delivers leaves at once."""
    leader = made(cluster, "workqueue")
    publish(leader, 2)
    client = leader.connect("a")
    client.subscribe("next")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", b"1", "next")
    cluster.run(0.5)
    (first,) = (reply for _, reply, _ in client.messages if reply)
    waiting: list[OutgoingMessage] = []

    def keep(self: StreamReplica, seqs: list[int], said: list[OutgoingMessage]) -> bool:
        waiting.extend(said)
        return True

    monkeypatch.setattr(StreamReplica, "consumed", keep)
    client.subscribe("answer")
    pull = b"PUB $JS.API.CONSUMER.MSG.NEXT.S.C next 1\r\n1\r\n"
    client.send(b"PUB %b answer 4\r\n+ACK\r\n" % first.encode() + pull)
    cluster.run(0.5)
    assert len([reply for _, reply, _ in client.messages if reply]) == 2
    assert len(waiting) >= 1 and not client.heard("answer")


def test_what_a_consumer_elsewhere_needs_stays(cluster: ClusterPlay) -> None:
    """While members change, a stream may be led where a consumer has no replica."""
    leader = made(cluster, "interest")
    publish(leader, 2)
    assets = leader.engine.assets
    known = assets.consumers[("A", "S", "C")].assignment
    others = tuple(peer for peer in known.group.peers if peer != leader.peer)
    moved = replace(known, group=replace(known.group, peers=others[:1], former=()))
    assets.follow(MetaChange(ChangeKind.UPDATED, "A", "S", "C", known, moved))
    publish(leader, 1)
    cluster.run(1)
    assert left(leader) == 3
    assets.follow(MetaChange(ChangeKind.REMOVED, "A", "S", "C", moved))
    cluster.run(1)
    assert left(leader) == 0, "nobody is left who needs them"


def test_nothing_goes_before_all_consumers_are_known(cluster: ClusterPlay) -> None:
    """A server that starts alone does not know yet what was assigned last."""
    leader = made(cluster, "interest", replicas=1)
    publish(leader, 2)
    leader.halt()
    cluster.isolate(leader.name)
    leader.begin()
    cluster.wait(lambda: cluster.maybe_leader(cluster.group_of("S")) is leader, "it leads again")
    assert not leader.engine.assets.consumers, "it does not know of the consumer"
    publish(leader, 1)
    cluster.run(1)
    assert left(leader) == 3
    cluster.cut.clear()
    cluster.wait(lambda: bool(leader.engine.assets.consumers), "it is told of the consumer")
    cluster.run(1)
    assert left(leader) == 3, "all wait for the consumer"
    leader.request_all("$JS.API.CONSUMER.DELETE.S.C", 1)
    cluster.wait(lambda: left(leader) == 0, "nobody needs them")


def too_often(cluster: ClusterPlay, retention: str, policy: str) -> tuple[ServerPlay, PlayClient]:
    """Have the first of two messages delivered as often as it may be: who leads the stream, and a
    client that did not acknowledge it."""
    client = cluster["n1"].connect("a")
    body = stream(retention=retention)
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **body)
    asked = consumer(ack_policy=policy, ack_wait=SECOND_NS, max_deliver=1)
    cluster["n1"].request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **asked)
    publish(cluster["n1"], 2)
    client.subscribe("next")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", b"1", "next")
    cluster.run(4)
    assert [server.engine.assets.streams[("A", "S")].store.messages for server in cluster] == [
        2
    ] * 3
    return cluster.leader(cluster.group_of("S")), client


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
def test_what_was_delivered_too_often_stays_whoever_leads(
    cluster: ClusterPlay, retention: str
) -> None:
    leader, _ = too_often(cluster, retention, "explicit")
    replica = leader.engine.assets.streams[("A", "S")]
    replica.group.raft.transfer()
    leader.engine.groups.touch(replica.group)
    cluster.wait(lambda: replica.leader is None, "another server leads the stream")
    cluster.run(2)
    assert [left(server) for server in cluster] == [2, 2, 2]


@pytest.mark.parametrize(
    ("retention", "policy"),
    [("workqueue", "explicit"), ("interest", "explicit"), ("interest", "all")],
)
def test_what_is_acknowledged_after_it_was_delivered_too_often_goes(
    cluster: ClusterPlay, retention: str, policy: str
) -> None:
    _, client = too_often(cluster, retention, policy)
    (reply,) = (reply for _, reply, _ in client.messages if reply)
    client.subscribe("answer")
    client.publish(reply, b"+ACK", "answer")
    cluster.run(1)
    assert [subject for subject, _, _ in client.messages].count("answer") == 1
    assert [left(server) for server in cluster] == [1, 1, 1]
