"""Reads that meet damage: the message comes from a peer, or an error says what is damaged."""

import json
from typing import Any

import pytest

from jsctl.broker.assets.repair.repairs import Repairs
from jsctl.broker.jsapi.deciding.damaged_reads import WAIT_NS
from tests.broker.assets.repair.test_repairs import COUNT, filled, lost, segments
from tests.broker.assets.test_damaged_replica import fill, store_of
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.sim_disk import SimDisk
from tests.support.stream_requests import stream


def zero_all(disk: SimDisk, path: str) -> None:
    """No record of a segment is left."""
    image = disk.content(path)
    disk.overwrite(path, image[:90] + bytes(len(image) - 90))


def leader_of(cluster: ClusterPlay) -> ServerPlay:
    return cluster.leader(cluster.group_of("S"))


def alone() -> tuple[ClusterPlay, ServerPlay]:
    """A stream with one replica, of which nothing can be read; the log has let go of it."""
    cluster = ClusterPlay()
    config = stream(num_replicas=1, allow_direct=True)
    (answer,) = cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **config)
    assert "error" not in answer
    leader = leader_of(cluster)
    fill(cluster, leader, 0, 20)
    group = leader.engine.groups.by_name[cluster.group_of("S")]
    leader.engine.groups.checkpoints.soon(group)
    cluster.run(1)
    leader.halt()
    (path,) = [one for one in leader.disk.paths() if one.endswith(".seg")]
    zero_all(leader.disk, path)
    leader.begin()
    cluster.run(3)
    fill(cluster, leader, 20, 5)
    return cluster, leader


def spoil(server: ServerPlay) -> None:
    """Of a running server; nobody has met the damage yet."""
    zero_all(server.disk, segments(server)[0])
    store = store_of(server)
    store.close()
    assert not lost(server)


@pytest.fixture
def cluster() -> ClusterPlay:
    play = filled(allow_direct=True)
    group = play.group_of("S")
    for one in play:
        raft = one.engine.groups.by_name[group].raft
        # The log has let go of the messages.
        raft.compact(raft.applied)
    spoil(leader_of(play))
    return play


def ask(
    cluster: ClusterPlay, server: ServerPlay, subject: str, wait_s: float, **body: Any
) -> list[bytes]:
    """Header blocks and payloads of the answers that come in some time."""
    client = server.connect("a")
    inbox = f"answers.{client.conn}.{server.name}"
    client.subscribe(inbox)
    client.publish(subject, json.dumps(body).encode(), inbox)
    cluster.run(wait_s)
    found = zip(client.messages, client.heads, strict=True)
    return [
        head + payload
        for (to, reply, payload), head in found
        if to == inbox or reply.startswith("$JS.ACK")
    ]


def test_a_message_is_got_from_a_peer(cluster: ClusterPlay) -> None:
    leader = leader_of(cluster)
    want = store_of(next(one for one in cluster if one is not leader)).load(17)
    assert want is not None
    (answer,) = ask(cluster, leader, "$JS.API.STREAM.MSG.GET.S", 0.5, seq=17)
    assert json.loads(answer)["message"]["seq"] == 17
    assert not lost(leader) or 17 not in lost(leader)
    assert store_of(leader).load(17) == want


def test_the_last_of_a_subject_is_not_an_older_one(cluster: ClusterPlay) -> None:
    leader, other = (
        leader_of(cluster),
        next(one for one in cluster if one is not leader_of(cluster)),
    )
    want = store_of(other).last_for(b"s.4")
    store_of(leader).excerpt(COUNT // 2, COUNT, 1 << 30)
    assert lost(leader)
    assert store_of(leader).last_for(b"s.4") == want
    (answer,) = ask(cluster, leader, "$JS.API.STREAM.MSG.GET.S", 0.5, last_by_subj="s.4")
    assert json.loads(answer)["message"]["seq"] == want


def test_a_direct_get_is_answered_at_every_server(cluster: ClusterPlay) -> None:
    for one in cluster:
        spoil(one) if one is not leader_of(cluster) and one.name == "n1" else None
    for seq in (5, 60, COUNT):
        for one in cluster:
            (answer,) = ask(cluster, one, "$JS.API.DIRECT.GET.S", 0.5, seq=seq)
            assert answer.split(b" ")[0] == b"%d" % (seq - 1) or b" " in answer, answer


def test_a_batch_of_direct_gets_has_no_hole(cluster: ClusterPlay) -> None:
    # Only the damaged one answers.
    leader = leader_of(cluster)
    for one in cluster:
        if one is not leader:
            cluster.isolate(one.name)
            break
    answers = ask(cluster, leader, "$JS.API.DIRECT.GET.S", 1, seq=3, batch=50)
    assert len(answers) == 51


def test_each_turn_looks_whether_a_read_can_go_on(
    cluster: ClusterPlay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Repairs, "asked", lambda self, peer, request: None)
    leader = leader_of(cluster)
    jetstream = leader.node.jetstream
    assert jetstream is not None
    seen = [jetstream.expecting]
    # Any replica may answer; the damaged one does not.
    while ask(cluster, leader, "$JS.API.DIRECT.GET.S", 0.1, seq=7):
        pass
    seen.append(jetstream.expecting)
    due_ns = jetstream.next_due_ns()
    assert due_ns is not None and due_ns <= cluster.now_ns + WAIT_NS
    cluster.run(2)
    assert [*seen, jetstream.expecting] == [False, True, False]


def test_what_no_replica_has_is_named() -> None:
    cluster, leader = alone()
    assert lost(leader) == list(range(1, 21))
    (answer,) = ask(cluster, leader, "$JS.API.STREAM.MSG.GET.S", 0.5, seq=7)
    assert json.loads(answer)["error"]["description"] == "messages 1 to 20 are damaged"
    (head,) = ask(cluster, leader, "$JS.API.DIRECT.GET.S", 0.3, seq=7)
    assert b"500 messages 1 to 20 are damaged" in head
    (answer,) = ask(cluster, leader, "$JS.API.STREAM.MSG.GET.S", 0.5, seq=21)
    assert json.loads(answer)["message"]["seq"] == 21


def test_who_waits_too_long_is_told(cluster: ClusterPlay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Repairs, "asked", lambda self, peer, request: None)
    leader = leader_of(cluster)
    assert ask(cluster, leader, "$JS.API.STREAM.MSG.GET.S", 1.5, seq=7) == []
    (answer,) = ask(cluster, leader, "$JS.API.STREAM.MSG.GET.S", 3, seq=9)
    assert "damaged" in json.loads(answer)["error"]["description"]


def pull(cluster: ClusterPlay, server: ServerPlay, batch: int, **config: Any) -> list[bytes]:
    """What a new consumer delivers."""
    made = {"durable_name": "C", "ack_policy": "explicit", "deliver_policy": "all", **config}
    body = {"stream_name": "S", "config": made}
    (answer,) = server.request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **body)
    assert "error" not in answer, answer
    return ask(cluster, server, "$JS.API.CONSUMER.MSG.NEXT.S.C", 1, batch=batch, expires=10**9)


@pytest.mark.parametrize(
    ("config", "count"),
    [({}, COUNT), ({"deliver_policy": "last_per_subject", "filter_subject": "s.*"}, 10)],
)
def test_a_consumer_goes_on_with_what_comes_from_a_peer(
    cluster: ClusterPlay, config: dict[str, Any], count: int
) -> None:
    assert len(pull(cluster, leader_of(cluster), count, **config)) == count


def test_a_consumer_passes_over_what_is_lost_for_good() -> None:
    cluster, leader = alone()
    assert len(pull(cluster, leader, 5)) == 5
    assert any("passes over messages 1 to 20" in line for line in leader.logs)


def test_a_consumer_gives_up_what_was_lost_before_its_ack() -> None:
    cluster = ClusterPlay()
    config = stream(num_replicas=1)
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **config)
    leader = leader_of(cluster)
    fill(cluster, leader, 0, 20)
    made = {"num_replicas": 1, "ack_wait": 3 * 10**9}
    assert len(pull(cluster, leader, 20, **made)) == 20
    keep_one(cluster, leader)
    leader.halt()
    (path,) = [one for one in leader.disk.paths() if one.endswith(".seg")]
    zero_all(leader.disk, path)
    leader.begin()
    cluster.run(3)
    fill(cluster, leader, 20, 5)
    cluster.run(4)
    got = ask(cluster, leader, "$JS.API.CONSUMER.MSG.NEXT.S.C", 1, batch=5, expires=10**9)
    assert [int(one.split()[0]) for one in got] == list(range(20, 25))
    (info,) = leader.request_all("$JS.API.CONSUMER.INFO.S.C", 1)
    assert info["num_ack_pending"] == 20 + 5 - 5, "as many were given up as were asked for"


def keep_one(cluster: ClusterPlay, leader: ServerPlay) -> None:
    group = leader.engine.groups.by_name[cluster.group_of("S")]
    leader.engine.groups.checkpoints.soon(group)
    cluster.run(1)
