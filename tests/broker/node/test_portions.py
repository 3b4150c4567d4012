"""Many requests at once are served in turns: each in its order, others in between."""

import json

import pytest

from jsctl.broker.jsapi import direct_gets
from jsctl.broker.store.views import newest
from jsctl.broker.turn import TurnInputs
from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import NodePlay, PlayClient


def flooded(count: int, subject: str, body: bytes = b"") -> tuple[NodePlay, PlayClient, PlayClient]:
    """A node in the middle of a flood: one turn has begun with it."""
    play = NodePlay()
    innocent = play.connect("b")
    innocent.lines.clear()
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s.>"], allow_direct=True)
    client.publish("s.a", b"x")
    client.subscribe("in.>")
    flood = [
        b"PUB %b in.%d %d\r\n%b\r\n" % (subject.encode(), number, len(body), body)
        for number in range(count)
    ]
    client.messages.clear()
    play._once(TurnInputs(chunks=[(client.conn, b"".join(flood))]))
    return play, client, innocent


def answered(client: PlayClient) -> list[str]:
    return [to for to, _, _ in client.messages if to.startswith("in.")]


def test_a_flood_of_requests_is_served_in_turns_and_in_order() -> None:
    play, client, innocent = flooded(200, "$JS.API.STREAM.NAMES")
    first = len(answered(client))
    assert 1 <= first <= 16
    play._once(TurnInputs(chunks=[(innocent.conn, b"PING\r\n")]))
    assert b"PONG" in innocent.lines, "somebody else is served before the flood is over"
    assert len(answered(client)) < 200
    play.turn()
    assert answered(client) == [f"in.{number}" for number in range(200)]


def test_large_requests_get_turns_of_their_own() -> None:
    body = json.dumps({"multi_last": [f"s.{n}" for n in range(20_000)]}).encode()
    play, client, _ = flooded(5, "$JS.API.DIRECT.GET.S", body)
    assert len(answered(client)) == 1
    play.turn()
    assert len(answered(client)) == 5


def test_small_lookups_are_many_a_turn() -> None:
    _, client, _ = flooded(200, "$JS.API.DIRECT.GET.S", b'{"seq":1}')
    assert len(answered(client)) == 200


def test_a_large_batch_goes_on_in_the_next_turns_and_is_whole() -> None:
    body = b'{"seq":1,"batch":100000}'
    play, client, innocent = flooded(1, "$JS.API.DIRECT.GET.S", body)
    client.send(b"PUB s.b 1\r\nx\r\n" * 5000)
    client.messages.clear()
    request = b"PUB $JS.API.DIRECT.GET.S in.0 %d\r\n%b\r\n" % (len(body), body)
    play._once(TurnInputs(chunks=[(client.conn, request)]))
    assert 1 <= len(answered(client)) <= 1024
    play._once(TurnInputs(chunks=[(innocent.conn, b"PING\r\n")]))
    assert b"PONG" in innocent.lines, "somebody else is served before the batch is over"
    assert len(answered(client)) < 5001
    play.turn()
    assert len(answered(client)) == 5001 + 1, "all messages and the end of the batch"
    assert client.messages[-1][2] == b""


def test_batches_take_turns() -> None:
    body = b'{"seq":1,"batch":100000}'
    play, client, _ = flooded(1, "$JS.API.DIRECT.GET.S", body)
    client.send(b"PUB s.b 1\r\nx\r\n" * 2000)
    client.messages.clear()
    one = b"PUB $JS.API.DIRECT.GET.S in.%d %d\r\n%b\r\n"
    play._once(
        TurnInputs(chunks=[(client.conn, b"".join(one % (n, len(body), body) for n in range(9)))])
    )
    first = answered(client)
    assert {"in.0", "in.1"} <= set(first)
    assert len(first) <= 6 * 256
    play.turn()
    for number in range(9):
        assert answered(client).count(f"in.{number}") == 2002


def test_operators_are_told_of_batches_that_end_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_gets, "BATCHES_MAX", 2)
    body = b'{"seq":1,"batch":100000}'
    play, client, _ = flooded(1, "$JS.API.DIRECT.GET.S", body)
    client.send(b"PUB s.b 1\r\nx\r\n" * 2000)
    operator = play.connect("sys")
    operator.subscribe("$JS.EVENT.ADVISORY.API.LIMIT_REACHED")
    one = b"PUB $JS.API.DIRECT.GET.S in.%d %d\r\n%b\r\n"
    play.turn(chunks=[(client.conn, b"".join(one % (n, len(body), body) for n in range(9)))])
    assert sum(json.loads(payload)["dropped"] for _, _, payload in operator.messages) > 0


def test_a_batch_of_a_stream_that_is_deleted_meanwhile_ends() -> None:
    body = b'{"seq":1,"batch":100000}'
    play, client, _ = flooded(1, "$JS.API.DIRECT.GET.S", body)
    client.send(b"PUB s.b 1\r\nx\r\n" * 5000)
    client.messages.clear()
    request = b"PUB $JS.API.DIRECT.GET.S in.0 %d\r\n%b\r\n" % (len(body), body)
    delete = b"PUB $JS.API.STREAM.DELETE.S in.1 0\r\n\r\n"
    play._once(TurnInputs(chunks=[(client.conn, request + delete)]))
    play.turn()
    assert "in.1" in answered(client)
    assert play.exit is None and not play.faults
    assert len(answered(client)) < 5001


def test_lookups_of_many_subjects_count_the_subjects() -> None:
    play, client, _ = flooded(1, "$JS.API.DIRECT.GET.S", b'{"seq":1}')
    client.send(b"".join(b"PUB s.b%d 1\r\nx\r\n" % n for n in range(20_000)))
    client.messages.clear()
    body = b'{"multi_last":["s.*"]}'
    one = b"PUB $JS.API.DIRECT.GET.S in.%d %d\r\n%b\r\n"
    play._once(
        TurnInputs(chunks=[(client.conn, b"".join(one % (n, len(body), body) for n in range(9)))])
    )
    assert len(answered(client)) == 1
    play.turn()
    assert len(answered(client)) == 9


def test_requests_beyond_the_queue_are_dropped() -> None:
    play, client, _ = flooded(15_000, "$JS.API.DIRECT.GET.S", b'{"seq":1}')
    play.turn()
    assert 10_000 <= len(answered(client)) < 12_000
    assert client.ask("$JS.API.STREAM.NAMES")["streams"] == ["S"]


def test_operators_are_told_of_requests_that_are_dropped() -> None:
    play = NodePlay()
    operator = play.connect("sys")
    operator.subscribe("$JS.EVENT.ADVISORY.API.LIMIT_REACHED")
    client = play.connect("a")
    flood = b"".join(b"PUB $JS.API.INFO in.%d 0\r\n\r\n" % number for number in range(12_000))
    play._once(TurnInputs(chunks=[(client.conn, flood)]))
    for _ in range(10):
        play._once(TurnInputs())
    bodies = [json.loads(payload) for _, _, payload in operator.messages]
    assert {body["type"] for body in bodies} == {"io.nats.jetstream.advisory.v1.api_limit_reached"}
    assert 1_500 <= sum(body["dropped"] for body in bodies) <= 2_000


def test_system_requests_wait_as_well() -> None:
    play = NodePlay()
    client = play.connect("sys")
    client.subscribe("in.>")
    flood = b"".join(b"PUB $SYS.REQ.SERVER.PING.CONNZ in.%d 0\r\n\r\n" % n for n in range(100))
    play._once(TurnInputs(chunks=[(client.conn, flood)]))
    assert 1 <= len(answered(client)) <= 16
    play.turn()
    assert len(answered(client)) == 100


def filled_bucket(count: int) -> tuple[NodePlay, PlayClient]:
    """A node with a bucket of so many keys, in no order of their names."""
    play = NodePlay()
    client = play.connect("a")
    client.ask(
        "$JS.API.STREAM.CREATE.KV_B", name="KV_B", subjects=["$KV.B.>"], max_msgs_per_subject=1
    )
    client.send(b"".join(b"PUB $KV.B.k%d 1\r\nx\r\n" % (n * 7919 % 10_007) for n in range(count)))
    client.messages.clear()
    return play, client


WATCH = {
    "name": "W",
    "deliver_subject": "watch",
    "filter_subject": "$KV.B.>",
    "deliver_policy": "last_per_subject",
    "ack_policy": "none",
    "mem_storage": True,
    "num_replicas": 1,
}


def test_the_first_look_at_many_keys_goes_on_in_the_next_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(newest, "PORTION", 100)
    monkeypatch.setattr(newest, "SHORT", 100)
    play, client = filled_bucket(1000)
    other = play.connect("a")
    client.subscribe("watch")
    client.subscribe("in")
    body = json.dumps({"stream_name": "KV_B", "action": "create", "config": WATCH}).encode()
    request = b"PUB $JS.API.CONSUMER.CREATE.KV_B.W.$KV.B.> in %d\r\n%b\r\n" % (len(body), body)
    play._once(TurnInputs(chunks=[(client.conn, request)]))
    turns = 1
    while not client.messages:
        put = b"PUB $KV.B.k%d 3\r\nnew\r\n" % (turns * 7919 % 10_007)
        play._once(TurnInputs(chunks=[(other.conn, put + b"PING\r\n")]))
        turns += 1
        assert turns < 100
        assert other.lines[-1] == b"PONG", "others are served meanwhile"
    assert turns > 10, "one portion a turn"
    (to, _, answer) = client.messages[0]
    assert to == "in", "nothing is delivered before the answer"
    told = json.loads(answer)
    play.turn()
    values = [body for to, _, body in client.messages if to.startswith("$KV")]
    last = 1  # The put beside the answer may be stored behind it.
    assert 0 <= len(values) - told["num_pending"] - told["delivered"]["consumer_seq"] <= last
    newest_of = {to: body for to, _, body in client.messages if to.startswith("$KV")}
    assert len(newest_of) == 1000, "all keys came"
    changed = [f"$KV.B.k{n * 7919 % 10_007}" for n in range(1, turns)]
    assert {newest_of[key] for key in changed} == {b"new"}
    assert client.ask("$JS.API.CONSUMER.INFO.KV_B.W")["num_pending"] == 0


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_durable_consumer_begins_with_the_newest_of_each_key_found_in_portions(
    replicas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest, "PORTION", 7)
    monkeypatch.setattr(newest, "SHORT", 7)
    cluster = ClusterPlay()
    client = cluster["n1"].connect("a")
    stream = {"name": "S", "subjects": ["s.>"], "num_replicas": replicas}
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", **stream)
    client.send(b"".join(b"PUB s.k%d 1\r\nx\r\n" % (n * 37 % 50) for n in range(120)))
    cluster.run(0.2)
    config = {
        "durable_name": "C",
        "deliver_policy": "last_per_subject",
        "filter_subjects": ["s.*"],
        "ack_policy": "explicit",
    }
    client.subscribe("made")
    body = json.dumps({"stream_name": "S", "action": "create", "config": config}).encode()
    client.publish("$JS.API.CONSUMER.CREATE.S.C", body, "made")
    cluster.wait(lambda: bool(client.heard("made")), "an answer")
    (made,) = client.heard("made")
    assert made["num_pending"] == 50
    client.subscribe("in")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", b'{"batch":100,"expires":500000000}', "in")
    cluster.run(1)
    replies = [reply for to, reply, _ in client.messages if to.startswith("s.")]
    seqs = [int(reply.split(".")[5]) for reply in replies]
    assert seqs == list(range(71, 121)), "the last fifty are one of each key"
    assert [int(reply.split(".")[8]) for reply in replies] == list(range(49, -1, -1))
