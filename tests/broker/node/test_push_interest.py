"""Push consumers begin to deliver when somebody listens, however that comes about."""

import pytest

from jsctl.broker.subject import sublist
from tests.support.node_play import NodePlay
from tests.support.stream_requests import consumer, stream

PATTERNS = ("to.here", "to.*", "to.>", "*.here")


@pytest.mark.parametrize("changes_max", [0, 1, 4096])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_whoever_listens_is_found(
    pattern: str, changes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that matches, among others that do not, told of or too many to be told of."""
    monkeypatch.setattr(sublist, "CHANGES_MAX", changes_max)
    play = NodePlay()
    client, listener = play.connect("a"), play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    for name, subject in (("C", "to.here"), ("D", "elsewhere.it")):
        config = consumer(name, deliver_subject=subject, ack_policy="none")
        assert "error" not in client.ask(f"$JS.API.CONSUMER.CREATE.S.{name}", **config)
    client.publish("s.x", b"1")
    assert not listener.messages
    listener.send(b"SUB no.one 7\r\nSUB to.there 8\r\nSUB %s 9\r\n" % pattern.encode())
    assert [payload for to, _, payload in listener.messages if to == "s.x"] == [b"1"]
    listener.send(b"UNSUB 9\r\n")
    client.publish("s.x", b"2")
    assert b"2" not in [payload for _, _, payload in listener.messages]
    info = client.ask("$JS.API.CONSUMER.INFO.S.C")
    assert (info["delivered"]["stream_seq"], "push_bound" in info) == (1, False)


def test_an_updated_deliver_subject_is_followed() -> None:
    play = NodePlay()
    client, listener = play.connect("a"), play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    for subject in ("to.here", "to.there"):
        config = consumer(deliver_subject=subject, ack_policy="none")
        assert "error" not in client.ask("$JS.API.CONSUMER.CREATE.S.C", **config)
    client.publish("s.x", b"1")
    listener.subscribe("to.there")
    assert [payload for _, _, payload in listener.messages] == [b"1"]
    assert client.ask("$JS.API.CONSUMER.DELETE.S.C")["success"]
    listener.subscribe("to.*")


def test_who_is_asked_about_in_the_same_turn_is_served() -> None:
    """An operator's look at a consumer takes nothing away from what its leader is to notice."""
    play = NodePlay()
    client, listener, admin = play.connect("a"), play.connect("a"), play.connect("sys")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    config = consumer("C", deliver_subject="to.here", ack_policy="none")
    assert "error" not in client.ask("$JS.API.CONSUMER.CREATE.S.C", **config)
    client.publish("s.x", b"1")
    admin.subscribe("answer")
    wanted = b'{"accounts":true,"streams":true,"consumer":true}'
    ask = b"PUB $SYS.REQ.SERVER.PING.JSZ answer %d\r\n%s\r\n" % (len(wanted), wanted)
    play.turn(chunks=[(listener.conn, b"SUB to.here 9\r\n"), (admin.conn, ask)])
    (shown,) = admin.heard("answer")
    (account,) = shown["data"]["account_details"]
    assert account["stream_detail"][0]["consumer_detail"][0]["push_bound"]
    assert [payload for _, _, payload in listener.messages] == [b"1"]
