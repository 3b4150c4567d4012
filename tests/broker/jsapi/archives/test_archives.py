"""Snapshots and restores on one whole node: what leaves comes back, and nothing else does."""

import json
from dataclasses import replace
from typing import Any

import pytest

from jsctl.backups import archive, s2
from jsctl.backups.entries import entry_bytes
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.jsapi.archives import archives, restore, restores, snapshot
from jsctl.broker.options import AccountJetStream
from tests.support import archives as support
from tests.support.archives import STATE, ask, consumer, message, packed, take
from tests.support.node_play import NodePlay, PlayClient, node_options
from tests.support.stream_requests import consumer as consumer_body
from tests.support.stream_requests import stream

pytestmark = pytest.mark.slow

SECOND = 10**9


def stream_body(**more: Any) -> dict[str, Any]:
    return stream(**{"replicas": 1, **more})


@pytest.fixture
def play() -> NodePlay:
    return NodePlay()


@pytest.fixture
def client(play: NodePlay) -> PlayClient:
    return play.connect("a")


def create(client: PlayClient, **more: object) -> None:
    body = stream_body(**more)
    answer = client.ask(f"$JS.API.STREAM.CREATE.{body['name']}", **body)
    assert "error" not in answer, answer


def fill(client: PlayClient, count: int, size: int = 10) -> None:
    for number in range(count):
        client.publish(f"s.{number % 7}", b"%06d" % number + bytes(size))


def info(client: PlayClient, name: str = "S") -> dict[str, Any]:
    found: dict[str, Any] = client.ask(f"$JS.API.STREAM.INFO.{name}")
    return found


def stored(client: PlayClient, name: str = "S") -> list[tuple[int, str, str, str | None]]:
    """Sequence, subject, payload and headers of all messages of a stream."""
    state = info(client, name)["state"]
    found = []
    for seq in range(state["first_seq"], state["last_seq"] + 1):
        told = client.ask(f"$JS.API.STREAM.MSG.GET.{name}", seq=seq)
        if "message" in told:
            one = told["message"]
            found.append((seq, one["subject"], one.get("data", ""), one.get("hdrs")))
    return found


def again(client: PlayClient, data: bytes, **more: object) -> dict[str, Any]:
    return support.restore(client, stream_body(**more), data)


# There and back


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_a_stream_comes_back_as_it_was(client: PlayClient, storage: str) -> None:
    create(client, storage=storage)
    fill(client, 40)
    head = b"NATS/1.0\r\nA: b\r\n\r\n"
    client.send(b"HPUB s.h %d %d\r\n%b" % (len(head), len(head) + 2, head) + b"hi\r\n")
    for seq in (1, 2, 17, 41):
        client.ask("$JS.API.STREAM.MSG.DELETE.S", seq=seq)
    before, messages = info(client), stored(client)
    made = take(client, "S")
    assert made.answer["state"] == before["state"]
    assert made.answer["config"]["name"] == "S"
    client.ask("$JS.API.STREAM.DELETE.S")
    answer = again(client, b"".join(made.chunks), storage=storage)
    assert answer["type"] == "io.nats.jetstream.api.v1.stream_create_response"
    assert "did_create" not in answer or not answer["did_create"]
    after = info(client)
    assert after["state"] == before["state"] == answer["state"]
    assert stored(client) == messages
    client.publish("s.x", b"goes on")
    assert info(client)["state"]["last_seq"] == 42


def test_consumers_come_back_with_what_they_have_acknowledged(client: PlayClient) -> None:
    create(client)
    fill(client, 10)
    for name, more in (("C", {}), ("F", {"filter_subject": "s.3"})):
        assert "error" not in client.ask(
            f"$JS.API.CONSUMER.CREATE.S.{name}", **consumer_body(name, **more)
        )
    body = b'{"batch":5,"no_wait":true}'
    client.subscribe("got")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", body, "got")
    replies = [reply for to, reply, _ in client.messages if reply.startswith("$JS.ACK.S.C")]
    client.publish(replies[0], b"+ACK")
    client.publish(replies[2], b"+ACK")
    before = {name: client.ask(f"$JS.API.CONSUMER.INFO.S.{name}") for name in ("C", "F")}
    made = take(client, "S")
    assert set(made.consumers) == {"C", "F"}
    assert sorted(made.consumers["C"]["state"]["pending"]) == ["2", "4", "5"]
    client.ask("$JS.API.STREAM.DELETE.S")
    assert "error" not in again(client, b"".join(made.chunks))
    for name, was in before.items():
        now = client.ask(f"$JS.API.CONSUMER.INFO.S.{name}")
        for key in ("ack_floor", "num_ack_pending", "num_pending", "num_redelivered"):
            assert (
                {**now[key], "last_active": ""} == {**was[key], "last_active": ""}
                if isinstance(was[key], dict)
                else now[key] == was[key]
            ), (name, key)
        assert now["delivered"]["consumer_seq"] == was["delivered"]["consumer_seq"]
    client.messages.clear()
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", body, "got")
    assert [
        json.loads(b"1" + payload[:6]) - 1_000_000 for to, _, payload in client.messages if payload
    ][:5] == [5, 6, 7, 8, 9]


def test_a_snapshot_without_consumers(client: PlayClient) -> None:
    create(client)
    client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer_body("C"))
    made = take(client, "S", no_consumers=True)
    assert made.consumers == {} and made.state["consumer_count"] == 0
    assert made.answer["state"]["consumer_count"] == 1


def test_a_stream_without_messages_keeps_its_sequences(client: PlayClient) -> None:
    create(client)
    fill(client, 5)
    client.ask("$JS.API.STREAM.PURGE.S")
    made = take(client, "S")
    client.ask("$JS.API.STREAM.DELETE.S")
    answer = again(client, b"".join(made.chunks))
    assert (answer["state"]["first_seq"], answer["state"]["last_seq"]) == (6, 5)
    assert made.end == b"", "as nats-server ends what is less than a chunk"


def test_a_restored_stream_survives_a_restart(play: NodePlay, client: PlayClient) -> None:
    create(client)
    fill(client, 20)
    made, before = take(client, "S"), info(client)
    client.ask("$JS.API.STREAM.DELETE.S")
    again(client, b"".join(made.chunks))
    other = NodePlay(disk=play.disk).connect("a")
    assert info(other)["state"] == before["state"]
    assert not [path for path in play.disk.paths() if path.endswith("/restoring")]


def test_ids_are_remembered_and_limits_are_applied(play: NodePlay, client: PlayClient) -> None:
    now_ns = play.now_ns
    head = b"NATS/1.0\r\nNats-Msg-Id: one\r\n\r\n"
    data = packed(
        *(message(seq, time_ns=now_ns - SECOND) for seq in range(1, 9)),
        message(9, headers=head, time_ns=now_ns - SECOND),
        last_seq=9,
    )
    answer = again(client, data, max_msgs=3)
    assert (answer["state"]["first_seq"], answer["state"]["messages"]) == (7, 3)
    client.subscribe("ack")
    client.send(b"HPUB s.x ack %d %d\r\n%b\r\n" % (len(head), len(head), head))
    assert client.heard("ack")[0] == {"stream": "S", "seq": 9, "duplicate": True}


def test_times_to_live_go_on(play: NodePlay, client: PlayClient) -> None:
    head = b"NATS/1.0\r\nNats-TTL: 10s\r\n\r\n"
    data = packed(
        message(1, headers=head, time_ns=play.now_ns - 20 * SECOND),
        message(2, headers=head, time_ns=play.now_ns - 5 * SECOND),
        message(3, time_ns=play.now_ns),
        last_seq=3,
    )
    answer = again(client, data, allow_msg_ttl=True)
    assert (answer["state"]["first_seq"], answer["state"]["messages"]) == (2, 2)
    play.run(6)
    assert info(client)["state"]["first_seq"] == 3


# A snapshot under way


def test_what_happens_meanwhile_changes_nothing_of_a_snapshot(client: PlayClient) -> None:
    create(client, max_msgs_per_subject=100)
    fill(client, 200, 400)
    before = stored(client)

    def meanwhile() -> None:
        client.publish("s.3", b"new")
        client.ask("$JS.API.STREAM.PURGE.S", filter="s.1")

    made = take(client, "S", meanwhile, chunk_size=1024, window_size=1024)
    assert len(made.chunks) > 3 and made.end.startswith(b"NATS/1.0 204")
    assert [(one.sequence, one.subject) for one in made.messages] == [one[:2] for one in before]
    assert made.state["last_seq"] == 200


def test_chunks_are_sent_as_they_are_acknowledged(play: NodePlay, client: PlayClient) -> None:
    create(client)
    for _ in range(50):
        client.publish("s.x", bytes(range(256)) * 40)
    client.subscribe("to")
    asked = {"deliver_subject": "to", "chunk_size": 1024, "window_size": 4096}
    assert "error" not in client.ask("$JS.API.STREAM.SNAPSHOT.S", **asked)
    chunks = [(reply, body) for to, reply, body in client.messages if to == "to"]
    assert len(chunks) == 4
    assert [reply.split(".")[-2:] for reply, _ in chunks] == [["1024", str(n)] for n in range(1, 5)]
    client.publish(chunks[0][0])
    assert len([to for to, _, _ in client.messages if to == "to"]) == 5
    play.run(snapshot.ACK_NS / SECOND + 1)
    assert client.heads[-1] == b"NATS/1.0 408 No Flow Response\r\n\r\n"
    assert client.messages[-1][0] == "to"


def test_nobody_listens_any_more(play: NodePlay, client: PlayClient) -> None:
    create(client)
    fill(client, 50, 2000)
    other = play.connect("a")
    client.subscribe("$JS.EVENT.ADVISORY.STREAM.>")
    other.subscribe("to")
    asked = {"deliver_subject": "to", "chunk_size": 1024, "window_size": 1024}
    client.ask("$JS.API.STREAM.SNAPSHOT.S", **asked)
    play.hang_up(other)
    play.run(1)
    (told,) = client.heard("$JS.EVENT.ADVISORY.STREAM.SNAPSHOT_COMPLETE.S")
    assert told["error"] == "no interest"


def test_a_stream_that_is_deleted_meanwhile(play: NodePlay, client: PlayClient) -> None:
    create(client)
    fill(client, 50, 2000)
    client.subscribe("to")
    asked = {"deliver_subject": "to", "chunk_size": 1024, "window_size": 1024}
    client.ask("$JS.API.STREAM.SNAPSHOT.S", **asked)
    client.ask("$JS.API.STREAM.DELETE.S")
    play.run(1)
    assert client.heads[-1].startswith(b"NATS/1.0 500 ")


def damage(play: NodePlay) -> StreamReplica:
    """The eighth message is damaged on the disk."""
    path = next(one for one in play.disk.paths() if one.endswith(".seg"))
    play.disk.flip_bit(path, 8 * play.disk.content(path).index(b"000007"))
    assert play.node.engine is not None
    return play.node.engine.assets.streams["A", "S"]


@pytest.mark.parametrize("check", [False, True])
def test_damaged_messages_are_named(play: NodePlay, client: PlayClient, check: bool) -> None:
    create(client)
    fill(client, 20, 100)
    damage(play).hopeless.add_range(1, 20)
    made = take(client, "S", wait=lambda: play.run(1), jsck=check)
    if check:
        error = made.answer["error"]
        assert error["err_code"] == 10064 and "1 bad messages: 8 to 8" in error["description"]
    else:
        assert made.end.startswith(b"NATS/1.0 500 ") and b"message 8 is damaged" in made.end


@pytest.mark.parametrize("check", [False, True])
def test_damage_that_can_be_repaired_is_waited_for(
    play: NodePlay, client: PlayClient, check: bool
) -> None:
    create(client)
    fill(client, 20, 100)
    damage(play)
    made = take(client, "S", wait=lambda: play.run(1), jsck=check)
    assert [one.sequence for one in made.messages] == list(range(1, 21))


def test_a_check_that_finds_nothing(client: PlayClient) -> None:
    create(client)
    fill(client, 20, 100)
    assert len(take(client, "S", jsck=True).messages) == 20


def test_so_many_snapshots_at_a_time(client: PlayClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "SNAPSHOTS_MAX", 1)
    create(client)
    fill(client, 5)
    assert "error" not in client.ask("$JS.API.STREAM.SNAPSHOT.S", deliver_subject="nobody")
    assert (
        client.ask("$JS.API.STREAM.SNAPSHOT.S", deliver_subject="b")["error"]["err_code"] == 10064
    )


# Restores that fail


def left_behind(play: NodePlay) -> list[str]:
    play.run(3)
    roots = ("streams/", "consumers/")
    return [path for path in play.disk.paths() if path.startswith(roots)]


WHOLE = packed(*map(message, range(1, 30)), last_seq=29)
CONFIG: dict[str, object] = {"ack_policy": "explicit", "durable_name": "C", "name": "C"}
POSITION = {
    "delivered": {"consumer_seq": 3, "stream_seq": 3},
    "ack_floor": {"consumer_seq": 1, "stream_seq": 1},
}

BROKEN = {
    "no stream": (b"x" * 100, "no S2 stream"),
    "nothing": (b"", "no S2 stream"),
    "cut off": (WHOLE[:-20], "cut off"),
    "a flipped bit": (WHOLE[:60] + bytes((WHOLE[60] ^ 1,)) + WHOLE[61:], ""),
    "no end": (packed(message(1), end=False), "end-of-backup"),
    "an old archive": (s2.compressed(b"meta.inf" + bytes(2000)), "invalid tar header"),
    "descending": (packed(message(3), message(2)), "out of order"),
    "twice": (packed(message(3), message(3)), "out of order"),
    "a wildcard": (packed(message(1, subject="s.*")), "invalid subject"),
    "a space": (packed(message(1, subject="s. x")), "invalid subject"),
    "no subject": (packed(message(1, subject="")), "invalid subject"),
    "headers": (packed(message(1, headers=b"GET / HTTP")), "invalid headers"),
    "a huge sequence": (packed(message(1 << 63, time_ns=1)), "out of range"),
    "a huge last": (packed(last_seq=1 << 64), "cannot unmarshal number"),
    "no time": (packed(message(1, time_ns=-5)), "out of range"),
    "too large": (packed(message(1, bytes(2 << 20))), "too large"),
    "a document": (
        s2.compressed(archive.MAGIC + entry_bytes("state.json", 1, 0, b"", b"[]")),
        "state.json",
    ),
    "many consumers": (packed(consumer_count=10_000), "consumers"),
    "fewer consumers": (packed(message(1), consumer_count=1), "expected consumer"),
    "a consumer twice": (
        packed(consumer("C", CONFIG, POSITION), consumer("C", CONFIG, POSITION), consumer_count=2),
        "twice",
    ),
    "a consumer's path": (
        packed(
            consumer("../C", {**CONFIG, "name": "../C", "durable_name": "../C"}, POSITION),
            consumer_count=1,
        ),
        "path separators",
    ),
    "a bad floor": (
        packed(
            consumer("C", CONFIG, {**POSITION, "ack_floor": {"stream_seq": 9}}), consumer_count=1
        ),
        "bad ack floor",
    ),
    "bad pending": (
        packed(
            consumer("C", CONFIG, {**POSITION, "pending": {"9": {"Sequence": 1, "Timestamp": 1}}}),
            consumer_count=1,
        ),
        "bad pending",
    ),
    "a bad policy": (
        packed(consumer("C", {**CONFIG, "ack_policy": "perhaps"}, POSITION), consumer_count=1),
        "consumer",
    ),
}


@pytest.mark.parametrize(("data", "why"), BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("storage", ["file", "memory"])
def test_what_is_broken_leaves_nothing(
    play: NodePlay, client: PlayClient, data: bytes, why: str, storage: str
) -> None:
    answer = again(client, data, storage=storage)
    assert answer["type"].endswith("stream_create_response") and why in json.dumps(answer), answer
    assert info(client)["error"]["code"] == 404
    assert left_behind(play) == []
    good = again(client, packed(message(1), last_seq=1), storage=storage)
    assert good["state"]["messages"] == 1, "the name is free"


def test_what_is_refused_at_once(client: PlayClient) -> None:
    create(client)
    for name, body, code in (
        ("S", {"config": stream_body()}, 10130),
        ("T", {"config": {"name": "U"}}, 10056),
        ("T", {}, 10003),
        ("T", {"config": {"name": "T", "subjects": ["s.>"]}}, 10065),
        ("T", {"config": {"name": "T", "num_replicas": 3}}, 10074),
    ):
        told = client.ask(f"$JS.API.STREAM.RESTORE.{name}", **body)
        assert told["error"]["err_code"] == code, (name, body, told)
        assert told["type"].endswith("stream_restore_response")


def begun(client: PlayClient, name: str = "S") -> str:
    body = json.dumps({"config": stream_body(name=name), "state": STATE}).encode()
    return str(ask(client, f"$JS.API.STREAM.RESTORE.{name}", body)["deliver_subject"])


def test_a_sender_that_is_silent_is_given_up(play: NodePlay, client: PlayClient) -> None:
    client.subscribe("$JS.EVENT.ADVISORY.STREAM.>")
    target = begun(client)
    assert ask(client, target, WHOLE[:40]) == {}
    assert any("restoring" in path for path in play.disk.paths())
    play.run(restore.STALL_NS / SECOND + 1)
    assert left_behind(play) == []
    assert client.heard("$JS.EVENT.ADVISORY.STREAM.RESTORE_COMPLETE.S")[0]["bytes"] == 40
    assert info(client)["error"]["code"] == 404


def test_a_server_that_dies_meanwhile_leaves_nothing(play: NodePlay, client: PlayClient) -> None:
    begun(client)
    ask(client, begun(client, "T"), WHOLE)
    assert any("restoring" in path for path in play.disk.paths())
    other = NodePlay(disk=play.disk)
    assert left_behind(other) == []


def test_chunks_need_a_reply(play: NodePlay, client: PlayClient) -> None:
    target = begun(client)
    client.publish(target, WHOLE)
    assert left_behind(play) == []


def test_a_name_that_is_taken_meanwhile(play: NodePlay, client: PlayClient) -> None:
    target = begun(client)
    create(client)
    assert ask(client, target, WHOLE) == {}
    answer = ask(client, target, b"")
    assert answer["error"]["err_code"] == 10130
    assert info(client)["state"]["messages"] == 0
    assert not [path for path in left_behind(play) if path.endswith("restoring")]
    fill(client, 1)
    assert len(stored(client)) == 1


@pytest.mark.parametrize("whose", ["account", "server"])
@pytest.mark.parametrize(("storage", "code"), [("file", 10047), ("memory", 10028)])
def test_there_has_to_be_room(whose: str, storage: str, code: int) -> None:
    most: dict[str, Any] = {"memory_bytes_max": 100_000, "store_bytes_max": 100_000}
    limits = AccountJetStream(**most if whose == "account" else {})
    options = node_options()
    server = replace(options.jetstream, **most if whose == "server" else {})
    accounts = (replace(options.accounts[0], jetstream=limits), *options.accounts[1:])
    play = NodePlay(replace(options, accounts=accounts, jetstream=server))
    client = play.connect("a")
    rows = [message(seq, bytes(10_000)) for seq in range(1, 12)]
    answer = again(client, packed(*rows, last_seq=11), storage=storage)
    assert answer["error"]["err_code"] == code, answer
    assert left_behind(play) == [] and info(client)["error"]["code"] == 404
    answer = again(client, packed(*rows[:8], last_seq=8), storage=storage)
    assert answer["state"]["messages"] == 8, "what fits is taken"


def test_so_many_restores_at_a_time(client: PlayClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restores, "RESTORES_MAX", 1)
    begun(client)
    body = json.dumps({"config": stream_body(name="T")}).encode()
    assert ask(client, "$JS.API.STREAM.RESTORE.T", body)["error"]["err_code"] == 10062


def test_clients_cannot_ask_what_servers_ask(play: NodePlay, client: PlayClient) -> None:
    for subject in ("$JSI.RESTORE.BEGIN", "$JSI.RESTORE.INSTALL"):
        client.publish(subject, b"{}", "in.x")
    assert left_behind(play) == []


def test_advisories(client: PlayClient) -> None:
    create(client)
    fill(client, 5)
    client.subscribe("$JS.EVENT.ADVISORY.STREAM.>")
    made = take(client, "S")
    client.ask("$JS.API.STREAM.DELETE.S")
    again(client, b"".join(made.chunks))
    start = "$JS.EVENT.ADVISORY.STREAM."
    words = [to.removeprefix(start) for to, _, _ in client.messages if to.startswith(start)]
    assert words == [
        "SNAPSHOT_CREATE.S",
        "SNAPSHOT_COMPLETE.S",
        "DELETED.S",
        "RESTORE_CREATE.S",
        "CREATED.S",
        "RESTORE_COMPLETE.S",
    ]
    (told,) = client.heard(start + "SNAPSHOT_CREATE")
    assert told["type"] == "io.nats.jetstream.advisory.v1.snapshot_create"
    assert told["state"]["messages"] == 5 and told["client"]["user"] == "a"
    (told,) = client.heard(start + "RESTORE_COMPLETE")
    assert told["bytes"] == sum(map(len, made.chunks))
