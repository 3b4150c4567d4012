"""Consumers that end with the process are not there when it runs again."""

import random
from typing import Any

import pytest

from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import SECOND_NS, NodePlay, PlayClient
from tests.support.stream_requests import consumer, stream

KEPT: dict[str, dict[str, Any]] = {
    "durable": {},
    "durablemem": {"mem_storage": True},
    "file": {"durable_name": "", "inactive_threshold": 300 * SECOND_NS},
}
"""One in memory that has a durable name begins anew. What has a stream in memory is there, too."""
GONE: dict[str, Any] = {
    "durable_name": "",
    "mem_storage": True,
    "inactive_threshold": 300 * SECOND_NS,
}


def another_run(play: NodePlay) -> NodePlay:
    """The process again, on what the disk has."""
    return NodePlay(disk=play.disk, jitter=random.Random(play.now_ns).randrange)


def make(client: PlayClient, name: str, **more: Any) -> None:
    answer = client.ask(f"$JS.API.CONSUMER.CREATE.S.{name}", **consumer(name, **more))
    assert "error" not in answer


@pytest.mark.parametrize("storage", ["file", "memory"])
@pytest.mark.parametrize("crash", [True, False])
def test_what_ends_with_the_process_is_gone(storage: str, crash: bool) -> None:
    play = NodePlay()
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1, storage=storage))
    for name, more in KEPT.items():
        make(client, name, **more)
    make(client, "gone", **GONE)
    play.run(2)
    if crash:
        play.disk.crash()
    again = another_run(play)
    client = again.connect("a")
    kept = [name for name in sorted(KEPT) if storage == "file" or name != "file"]
    assert client.ask("$JS.API.CONSUMER.NAMES.S")["consumers"] == kept
    assert client.ask("$JS.API.CONSUMER.INFO.S.gone")["error"]["err_code"] == 10014
    assert client.ask("$JS.API.STREAM.INFO.S")["state"]["consumer_count"] == len(kept)
    make(client, "gone", **GONE)
    assert client.ask("$JS.API.CONSUMER.INFO.S.gone")["name"] == "gone"
    again.run(5)
    assert "gone" in client.ask("$JS.API.CONSUMER.NAMES.S")["consumers"]


def test_what_only_it_had_not_consumed_is_let_go() -> None:
    play = NodePlay()
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1, retention="interest"))
    make(client, "gone", **GONE)
    client.publish("s.x", b"1", "ack")
    assert client.ask("$JS.API.STREAM.INFO.S")["state"]["messages"] == 1
    play.run(2)
    client = another_run(play).connect("a")
    assert client.ask("$JS.API.STREAM.INFO.S")["state"]["messages"] == 0


def test_its_end_waits_until_it_can_be_written_down() -> None:
    """A disk that is busy with it, and requests that come meanwhile."""
    play = NodePlay()
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    for number in range(20):
        make(client, f"gone{number}", **GONE)
    make(client, "durable")
    play.run(2)
    again = another_run(play)
    again.hold_disk = True
    client = again.connect("a")
    client.subscribe("answers")
    client.publish("$JS.API.CONSUMER.CREATE.S.gone3", b"", "answers")
    assert client.ask("$JS.API.CONSUMER.NAMES.S")["consumers"] == ["durable"]
    again.hold_disk = False
    again.run(5)
    make(client, "gone3", **GONE)
    assert client.ask("$JS.API.CONSUMER.NAMES.S")["consumers"] == ["durable", "gone3"]
    # Not once more, as nothing of it is left in the log.
    client = another_run(again).connect("a")
    assert client.ask("$JS.API.CONSUMER.NAMES.S")["consumers"] == ["durable"]


def test_a_cluster_keeps_it() -> None:
    cluster = ClusterPlay()
    assert cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    (made,) = cluster["n1"].request_all(
        "$JS.API.CONSUMER.CREATE.S.kept", 1, **consumer("kept", **GONE, num_replicas=1)
    )
    server = cluster[made["cluster"]["leader"]]
    server.halt()
    server.begin()
    cluster.run(5)
    (found,) = cluster["n1"].request_all("$JS.API.CONSUMER.NAMES.S", 1)
    assert found["consumers"] == ["kept"]
