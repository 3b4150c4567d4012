"""Requests and lines that no client of good will sends: they cost their sender an error or its
connection, and the server goes on for everybody else."""

from collections.abc import Iterator

import pytest

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.wire_client import WireClient

HALF = b'"\\ud800"'
"""Half of a surrogate pair."""
DEEP = b"[" * 1500 + b"]" * 1500
HUGE = b"9" * 5000
CONFIG = """
jetstream: enabled
accounts {
    A { jetstream: enabled, users: [{ user: a, password: a }] }
    SYS { users: [{ user: sys, password: sys }] }
}
system_account: SYS
no_auth_user: a
"""
NAMES = (
    "STREAM.CREATE.H",
    "STREAM.UPDATE.S",
    "STREAM.NAMES",
    "STREAM.LIST",
    "STREAM.INFO.S",
    "STREAM.PURGE.S",
    "STREAM.DELETE.S",
    "STREAM.MSG.GET.S",
    "STREAM.MSG.DELETE.S",
    "STREAM.LEADER.STEPDOWN.S",
    "STREAM.PEER.REMOVE.S",
    "STREAM.SNAPSHOT.S",
    "STREAM.RESTORE.S",
    "DIRECT.GET.S",
    "CONSUMER.CREATE.S.h",
    "CONSUMER.DURABLE.CREATE.S.h",
    "CONSUMER.NAMES.S",
    "CONSUMER.LIST.S",
    "CONSUMER.PAUSE.S.c",
    "CONSUMER.UNPIN.S.c",
    "CONSUMER.RESET.S.c",
    "CONSUMER.LEADER.STEPDOWN.S.c",
    "CONSUMER.MSG.NEXT.S.c",
    "META.LEADER.STEPDOWN",
    "SERVER.REMOVE",
)
SYSTEM_NAMES = (
    *(f"SERVER.PING.{name}" for name in ("VARZ", "CONNZ", "JSZ", "SUBSZ", "HEALTHZ", "STATSZ")),
    "SERVER.PING",
    "ACCOUNT.A.CONNZ",
    "ACCOUNT.PING.STATZ",
    "ACCOUNT.NSUBS",
    "USER.INFO",
)
KEYS = (
    b"name subject subjects filter filter_subject last_by_subj seq placement group batch config"
    b" deliver_subject description metadata pause_until server_name account acc"
).split()
BODIES = {
    "half a pair": b"{%s}" % b",".join(b'"%s":%s' % (key, HALF) for key in KEYS),
    "half a pair in a config": b'{"stream_name":"S","config":{"name":"h","description":%s}}' % HALF,
    "half a pair as a key": b"{%s:1}" % HALF,
    "deep": b'{"name":"H","x":%s}' % DEEP,
    "deep from the start": DEEP,
    "a huge number": b'{"seq":%s,"batch":%s,"max_age":%s}' % (HUGE, HUGE, HUGE),
    "no number": b'{"seq":NaN,"max_age":-Infinity,"batch":1e999}',
    "no UTF-8": b'{"name":"\xff\xfe","subject":"\xed\xa0\x80"}',
}


@pytest.fixture(scope="module", params=list(KINDS))
def server(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A server with a stream S and a consumer c in it."""
    with KINDS[str(request.param)](config=CONFIG, name="hostile") as running:
        client = WireClient(running.url)
        for subject, body in (
            (b"STREAM.CREATE.S", b'{"name":"S","subjects":["s.>"],"allow_direct":true}'),
            (
                b"CONSUMER.CREATE.S.c",
                b'{"stream_name":"S","config":{"name":"c","durable_name":"c",'
                b'"ack_policy":"explicit"}}',
            ),
        ):
            assert b'"error"' not in client.request(b"$JS.API." + subject, body)
        client.close()
        yield running


def serves(server: Broker) -> None:
    """Somebody else is served."""
    other = WireClient(server.url)
    assert b'"name":"S"' in other.request(b"$JS.API.STREAM.INFO.S", b"")
    other.close()
    assert server.running


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_requests_of_the_api(server: Broker, body: bytes) -> None:
    client = WireClient(server.url)
    for name in NAMES:
        client.publish(b"$JS.API." + name.encode(), body, b"answers")
    client.flush()
    client.close()
    serves(server)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_requests_of_the_system_account(server: Broker, body: bytes) -> None:
    client = WireClient(server.url.replace("//", "//sys:sys@"))
    for name in SYSTEM_NAMES:
        client.publish(b"$SYS.REQ." + name.encode(), body, b"answers")
    client.flush()
    client.close()
    serves(server)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_connect(server: Broker, body: bytes) -> None:
    client = WireClient(server.url)
    client.send(b"CONNECT %s\r\nPING\r\n" % body)
    client.close()
    serves(server)


def test_acks_with_documents(server: Broker) -> None:
    client = WireClient(server.url)
    client.publish(b"s.one", b"")
    for body in BODIES.values():
        for word in (b"-NAK ", b"+NXT ", b"+TERM ", b""):
            client.publish(b"$JS.ACK.S.c.1.1.1.1.0", word + body, b"answers")
    client.publish(b"$JS.ACK.S.c.%s.%s.%s.1.0" % ((b"9" * 1200,) * 3), b"-NAK", b"answers")
    client.flush()
    client.close()
    serves(server)


def test_many_tokens(server: Broker) -> None:
    """A subject of 1,000 tokens meets patterns of as many."""
    client = WireClient(server.url)
    literal = b".".join([b"t"] * 1000)
    client.send(b"SUB %s one\r\n" % b".".join([b"*"] * 1000))
    client.send(b"SUB %s two\r\n" % b".".join([b"*", b"t"] * 500))
    client.send(b"SUB %s three\r\n" % b".".join([*[b"*"] * 999, b">"]))
    client.publish(literal, b"hello")
    assert client.await_messages(3, 30.0)
    assert sorted(message[0] for message in client.messages) == [b"one", b"three", b"two"]
    assert {message[4] for message in client.messages} == {b"hello"}
    client.close()
    serves(server)
