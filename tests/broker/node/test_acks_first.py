"""Acknowledgements leave before what they are of is applied, and nobody can tell the difference."""

from typing import Any

import pytest

from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.turn import Query, TurnInputs, TurnOutputs
from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import NodePlay, PlayClient

ACK = b'{"stream":"S","seq":1}'
ID = b"NATS/1.0\r\nNats-Msg-Id: one\r\n\r\n"
PUBLISH = b"PUB s.a inbox.ack 1\r\nx\r\n"
PUBLISH_ID = b"HPUB s.a inbox.ack %d %d\r\n%bx\r\n" % (len(ID), len(ID) + 1, ID)
MICROSECOND_NS = 1_000
SECOND_NS = 1_000_000_000


class Server:
    """A server with a stream, whose turns and syncs are taken one by one."""

    def __init__(self, **config: Any) -> None:
        self.play = NodePlay()
        self.client = self.connect()
        self.make("STREAM.CREATE.S", name="S", subjects=["s.>"], **config)

    def connect(self) -> PlayClient:
        client = self.play.connect("a")
        client.subscribe("inbox.*")
        return client

    def make(self, what: str, **request: Any) -> None:
        """Ask for something, and have it."""
        reply = self.client.ask(f"$JS.API.{what}", **request)
        assert "error" not in reply, reply
        self.play.run(3)

    def stored(self) -> int:
        """The last sequence that is applied."""
        assert self.play.node.engine is not None
        replica = self.play.node.engine.assets.streams["A", "S"]
        assert isinstance(replica, StreamReplica)
        return replica.store.last_seq

    def turn(self, **inputs: Any) -> TurnOutputs:
        """One turn, and nothing behind it."""
        self.play.now_ns += MICROSECOND_NS
        return self.play.node.turn(TurnInputs(**inputs), self.play.now_ns)

    def is_unfinished(self) -> bool:
        """Whether nobody may sync in the loop's own thread behind this turn."""
        return self.play.node.unfinished

    def settle(self) -> int | None:
        return self.play.node.settle(self.play.now_ns)

    def synced(self, line: bytes = PUBLISH) -> list[int]:
        """Publish, and sync: what the next turn is to hear."""
        outputs = self.turn(chunks=[(self.client.conn, line)])
        self.settle()
        for batch in outputs.disk:
            batch.run()
        assert outputs.disk and self.stored() == 0
        return [batch.ticket for batch in outputs.disk]

    def said_later(self, client: PlayClient) -> bytes:
        """What a client is told in some turns with nothing in them."""
        said = b""
        for _ in range(5):
            self.settle()
            said += said_to(client, self.turn())
        return said


def said_to(client: PlayClient, outputs: TurnOutputs) -> bytes:
    return b"".join(data for conn, data in outputs.writes if conn == client.conn)


def test_an_acknowledgement_leaves_before_its_message_is_applied() -> None:
    server = Server()
    outputs = server.turn(synced=server.synced())
    assert ACK in said_to(server.client, outputs) and server.stored() == 0
    assert server.is_unfinished()
    due_ns = server.settle()
    assert server.stored() == 1
    assert not server.is_unfinished()
    assert due_ns is None or due_ns > server.play.now_ns


def test_a_turn_begins_with_what_was_put_off() -> None:
    server = Server()
    server.turn(synced=server.synced())
    assert server.stored() == 0
    server.turn()
    assert server.stored() == 1


def test_what_is_republished_leaves_with_the_acknowledgement() -> None:
    server = Server(republish={"src": ">", "dest": "copy.>"})
    listener = server.connect()
    listener.subscribe("copy.>")
    outputs = server.turn(synced=server.synced())
    assert ACK in said_to(server.client, outputs) and server.stored() == 1
    assert b"MSG copy.s.a " in said_to(listener, outputs)


def test_a_consumer_delivers_with_the_acknowledgement() -> None:
    server = Server()
    listener = server.connect()
    listener.subscribe("pushed")
    config = {"name": "C", "deliver_subject": "pushed", "ack_policy": "none"}
    server.make("CONSUMER.CREATE.S.C", stream_name="S", config=config)
    outputs = server.turn(synced=server.synced())
    assert ACK in said_to(server.client, outputs) and server.stored() == 1
    assert b"MSG s.a " in said_to(listener, outputs)


@pytest.mark.parametrize(
    ("request_line", "answer"),
    [
        (b"PUB $JS.API.STREAM.INFO.S inbox.info 0\r\n\r\n", b'"messages":1,'),
        (b'PUB $JS.API.STREAM.MSG.GET.S inbox.get 9\r\n{"seq":1}\r\n', b'"seq":1,'),
    ],
)
def test_who_asks_in_the_same_turn_sees_it(request_line: bytes, answer: bytes) -> None:
    server = Server(allow_direct=True)
    other = server.connect()
    outputs = server.turn(synced=server.synced(), chunks=[(other.conn, request_line)])
    assert ACK in said_to(server.client, outputs)
    assert answer in said_to(other, outputs) + server.said_later(other)


def test_an_acknowledgement_that_is_stored_comes_after_its_message() -> None:
    server = Server()
    server.make("STREAM.CREATE.T", name="T", subjects=["t.>"])
    server.turn(synced=server.synced(b"PUB s.a t.a 1\r\nx\r\n"))
    assert server.stored() == 1


def test_what_is_put_off_when_the_process_ends_is_left_to_the_log() -> None:
    server = Server()
    server.turn(synced=server.synced())
    assert server.play.node.engine is not None
    server.play.node.engine.close()
    server.settle()
    assert server.stored() == 0


def test_pages_show_what_was_acknowledged() -> None:
    server = Server()
    outputs = server.turn(synced=server.synced(), queries=[Query(1, "/jsz", {"streams": "1"})])
    (answer,) = outputs.answers
    assert b'"messages":1,' in answer.body.replace(b": ", b":")


def test_a_retry_in_the_same_turn_is_a_duplicate() -> None:
    server = Server()
    tickets = server.synced(PUBLISH_ID)
    outputs = server.turn(synced=tickets, chunks=[(server.client.conn, PUBLISH_ID)])
    said = said_to(server.client, outputs) + server.said_later(server.client)
    assert ACK in said and b'"duplicate": true' in said
    assert server.stored() == 1


def test_what_time_removes_needs_no_turn_before_it_is_due() -> None:
    server = Server(max_age=60 * SECOND_NS)
    server.turn(synced=server.synced())
    due_ns = server.settle()
    assert due_ns is None or due_ns > server.play.now_ns
    server.play.run(58)
    assert server.client.ask("$JS.API.STREAM.INFO.S")["state"]["messages"] == 1
    server.play.run(3)
    assert server.client.ask("$JS.API.STREAM.INFO.S")["state"]["messages"] == 0


def test_a_follower_answers_before_it_applies(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it hears with an entry is that the one before is committed: nobody waits for that."""
    cluster = ClusterPlay()
    config = {"name": "S", "subjects": ["s.>"], "num_replicas": 3}
    (reply,) = cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 3, **config)
    assert "error" not in reply
    leader = cluster.leader(cluster.group_of("S"))
    client = leader.connect("a")
    follower = next(server for server in cluster if server is not leader)
    settle, store = follower.node.settle, follower.engine.assets.streams["A", "S"].store
    settled: list[tuple[int, int]] = []

    def watched(now_ns: int) -> int | None:
        before = store.last_seq
        due_ns = settle(now_ns)
        settled.append((before, store.last_seq))
        return due_ns

    monkeypatch.setattr(follower.node, "settle", watched)
    for number in range(3):
        client.publish(f"s.{number}", b"x", "inbox.ack")
    cluster.run(1)
    assert store.last_seq == 3
    assert {(0, 1), (1, 2)} <= set(settled)
