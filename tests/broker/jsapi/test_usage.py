"""What accounts use, and what stops them."""

import json
from typing import Any

import pytest

from jsctl.broker.options import AccountJetStream, AccountOptions, JetStreamOptions, Options
from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import NodePlay, node_options, user
from tests.support.stream_requests import stream


def limited(**limits: Any) -> Options:
    """Account A with limits of its own."""
    made = AccountOptions(name="A", users=(user("a"),), jetstream=AccountJetStream(**limits))
    return node_options(accounts=(made, AccountOptions(name="$SYS", users=(user("sys"),))))


def acks(play: NodePlay, count: int) -> list[Any]:
    """Answers to publishes of 1000 bytes, one a second."""
    client, found = play.connect("a"), []
    for _ in range(count):
        found += [json.loads(one) for one in client.request("s.x", bytes(1000))]
        play.run(1.1)
    return found


def test_an_account_is_stopped_at_its_limit() -> None:
    play = NodePlay(limited(store_bytes_max=3_000))
    play.connect("a").ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    errors = [ack.get("error", {}).get("err_code", 0) for ack in acks(play, 5)]
    assert errors[:3] == [0, 0, 0] and errors[-1] == 10002


def test_a_server_is_stopped_at_its_limit() -> None:
    jetstream = JetStreamOptions(
        enabled=True, store_dir="/d", memory_bytes_max=1 << 20, store_bytes_max=2_000
    )
    play = NodePlay(node_options(jetstream=jetstream))
    play.connect("a").ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    errors = [ack.get("error", {}).get("err_code", 0) for ack in acks(play, 4)]
    assert errors[:2] == [0, 0] and errors[-1] == 10023


@pytest.mark.parametrize("whose", ["account", "server"])
def test_what_is_purged_makes_room_at_once(whose: str) -> None:
    size = 3_000
    jetstream = JetStreamOptions(
        enabled=True, store_dir="/d", memory_bytes_max=1 << 20, store_bytes_max=size
    )
    play = NodePlay(
        limited(store_bytes_max=size) if whose == "account" else node_options(jetstream=jetstream)
    )
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    acks(play, 4)
    (refused,) = client.request("s.x", b"")
    assert b'"error"' in refused
    client.ask("$JS.API.STREAM.PURGE.S")
    play.run(0.01)
    (ack,) = client.request("s.x", b"")
    assert b'"error"' not in ack


def test_requests_and_errors_are_counted() -> None:
    play = NodePlay()
    client = play.connect("a")
    before = client.ask("$JS.API.INFO")["api"]
    client.ask("$JS.API.STREAM.INFO.NONE")
    after = client.ask("$JS.API.INFO")["api"]
    assert after["total"] - before["total"] == 2 and after["errors"] - before["errors"] == 1


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_bytes_count_once_for_each_replica(storage: str) -> None:
    cluster = ClusterPlay()
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream(storage=storage))
    client = cluster["n1"].connect("a")
    client.publish("s.x", bytes(1000), "ack")
    cluster.run(3)
    size = cluster["n1"].engine.assets.streams[("A", "S")].store.state().bytes
    for server in cluster:
        (info,) = server.request_all("$JS.API.INFO", 0.5)
        assert (info["storage"], info["memory"]) == (
            (3 * size, 0) if storage == "file" else (0, 3 * size)
        )


def test_accounts_without_jetstream_have_none() -> None:
    play = NodePlay()
    assert play.connect("b").ask("$JS.API.INFO")["error"]["err_code"] == 10039
