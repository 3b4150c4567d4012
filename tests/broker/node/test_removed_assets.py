"""What is removed goes at once: nothing of it is left to the collector, which looks at what has
been there for long only now and then.
"""

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support import archives
from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import SECOND_NS, NodePlay, PlayClient
from tests.support.stream_requests import consumer, stream

PACKAGE = "jsctl.broker"
EPHEMERAL = {
    "name": "E",
    "ack_policy": "none",
    "mem_storage": True,
    "num_replicas": 1,
    "deliver_subject": "to.e",
    "inactive_threshold": 300 * SECOND_NS,
}
KINDS: dict[str, dict[str, Any]] = {
    "file": {},
    "memory": {"storage": "memory"},
    "interest": {"retention": "interest"},
    "work queue": {"retention": "workqueue"},
    "counters": {"allow_msg_counter": True},
    "schedules": {"allow_msg_schedules": True, "allow_msg_ttl": True},
    "batches": {"allow_atomic": True},
    "republished": {"republish": {"src": ">", "dest": "again.>"}},
}
HEADERS = {
    "counters": b"NATS/1.0\r\nNats-Incr: 1\r\n\r\n",
    "schedules": (
        b"NATS/1.0\r\nNats-Schedule: @every 1h\r\nNats-Schedule-Target: s.target\r\n\r\n"
    ),
    "batches": b"NATS/1.0\r\nNats-Batch-Id: b\r\nNats-Batch-Sequence: 1\r\n\r\n",
}


@contextmanager
def nothing_left() -> Iterator[None]:
    """The collector finds no object of the server behind this."""
    gc.collect()
    gc.disable()
    try:
        yield
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found = [one for one in gc.garbage if type(one).__module__.startswith(PACKAGE)]
        assert not found, Counter(type(one).__qualname__ for one in found)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def make(client: PlayClient, name: str, **more: Any) -> None:
    """A stream."""
    reply = client.ask(f"$JS.API.STREAM.CREATE.{name}", **stream(name, **more))
    assert "error" not in reply, reply


def fill(client: PlayClient, kind: str) -> None:
    """Consumers of S, and a message that they have."""
    queue = kind == "work queue"
    pull = consumer("D", filter_subject="s.x") if queue else consumer("D")
    more = {"ack_policy": "explicit", "filter_subject": "s.y"} if queue else {}
    push = {"stream_name": "S", "config": EPHEMERAL | more}
    for name, body in (("D", pull), ("E", push)):
        reply = client.ask(f"$JS.API.CONSUMER.CREATE.S.{name}", **body)
        assert "error" not in reply, reply
    client.subscribe("to.e")
    client.publish("s.x", b"" if kind == "counters" else b"1", "ack", HEADERS.get(kind, b""))
    client.subscribe("pulled")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.D", b"2", "pulled")


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_and_its_consumers(kind: str) -> None:
    play = NodePlay()
    client = play.connect("a")
    client.ask("$JS.API.INFO")
    with nothing_left():
        make(client, "S", replicas=1, **KINDS[kind])
        fill(client, kind)
        play.run(2)
        for subject in ("CONSUMER.DELETE.S.E", "STREAM.DELETE.S"):
            assert client.ask(f"$JS.API.{subject}")["success"]
        play.run(3)


def test_what_a_mirror_has_of_its_origin() -> None:
    play = NodePlay()
    client = play.connect("a")
    with nothing_left():
        make(client, "S", replicas=1)
        client.publish("s.x", b"1", "ack")
        make(client, "M", replicas=1, subjects=[], mirror={"name": "S"})
        play.run(3)
        state = client.ask("$JS.API.STREAM.INFO.M")["state"]
        assert state["messages"] == 1
        for name in "MS":
            assert client.ask(f"$JS.API.STREAM.DELETE.{name}")["success"]
        play.run(3)


def test_archives() -> None:
    """One that is taken, one that nobody hears, and one that is restored."""
    play = NodePlay()
    client = play.connect("a")
    client.ask("$JS.API.INFO")
    with nothing_left():
        config = stream("S", replicas=1)
        make(client, "S", replicas=1)
        for _ in range(20):
            client.publish("s.x", b"1" * 5_000)
        taken = archives.take(client, "S")
        assert taken.state["messages"] == 20
        asked = {"deliver_subject": "nobody", "chunk_size": 1024, "window_size": 1024}
        assert "error" not in client.ask("$JS.API.STREAM.SNAPSHOT.S", **asked)
        play.run(2)
        assert client.ask("$JS.API.STREAM.DELETE.S")["success"]
        restored = archives.restore(
            client, config, b"".join(taken.chunks), wait=lambda: play.run(1)
        )
        assert restored["state"]["messages"] == 20, restored
        assert client.ask("$JS.API.STREAM.DELETE.S")["success"]
        del taken
        play.run(3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "memory", "interest"])
def test_replicas_at_all_servers(kind: str) -> None:
    cluster = ClusterPlay()
    server = cluster["n1"]
    server.request_all("$JS.API.INFO", 1)
    with nothing_left():
        for subject, body in (
            ("STREAM.CREATE.S", stream("S", **KINDS[kind])),
            ("CONSUMER.CREATE.S.D", consumer("D")),
            ("STREAM.LEADER.STEPDOWN.S", {}),
            ("CONSUMER.LEADER.STEPDOWN.S.D", {}),
            ("STREAM.DELETE.S", {}),
        ):
            (reply,) = server.request_all(f"$JS.API.{subject}", 5, **body)
            assert "error" not in reply, (subject, reply)
            server.connect("a").publish("s.x", b"1", "ack")
        cluster.run(5)
        assert all(len(one.engine.groups.by_name) == 1 for one in cluster), "the meta group stays"
