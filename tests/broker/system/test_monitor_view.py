"""The live node on its monitoring pages."""

import random
from typing import Any

import pytest

from jsctl.broker.options import (
    ClusterOptions,
    JetStreamLimits,
    JetStreamOptions,
    MonitorOptions,
    Options,
    SyncMode,
    Url,
)
from jsctl.broker.routing.limits import ServerIdentity
from jsctl.broker.system.monitoring.settings_facts import settings
from jsctl.broker.tls_options import TlsOptions
from tests.support.node_play import NodePlay, PlayClient, node_options
from tests.support.sim_disk import SimDisk


@pytest.fixture
def play() -> NodePlay:
    """A node with JetStream, a while after its start."""
    return NodePlay()


def stream(client: PlayClient, name: str = "S", **fields: object) -> dict[str, Any]:
    """A new stream on `<name>.>` in lower case."""
    config = {
        "name": name,
        "subjects": [f"{name.lower()}.>"],
        "retention": "limits",
        "max_consumers": -1,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_age": 0,
        "storage": "file",
        "num_replicas": 1,
        "discard": "old",
        **fields,
    }
    answer: dict[str, Any] = client.ask(f"$JS.API.STREAM.CREATE.{name}", **config)
    assert "error" not in answer, answer
    return answer


def consumer(client: PlayClient, name: str, of: str = "S", **fields: object) -> dict[str, Any]:
    """A new durable pull consumer."""
    config = {"durable_name": name, "ack_policy": "explicit", "deliver_policy": "all", **fields}
    answer: dict[str, Any] = client.ask(
        f"$JS.API.CONSUMER.CREATE.{of}.{name}", stream_name=of, config=config
    )
    assert "error" not in answer, answer
    return answer


def test_varz_counts(play: NodePlay) -> None:
    client = play.connect("a")
    client.subscribe("x")
    client.publish("x", b"12345")
    status, page = play.get("/varz")
    assert status == 200
    assert page["server_name"] == "n1" and page["go"] == "python3.11"
    assert (page["mem"], page["cpu"], page["cores"]) == (50_000_000, 12.5, 2)
    assert (page["connections"], page["total_connections"]) == (1, 1)
    assert (page["in_msgs"], page["in_bytes"], page["in_client_msgs"]) == (1, 5, 1)
    assert (page["out_msgs"], page["out_bytes"], page["out_client_msgs"]) == (1, 5, 1)
    assert page["uptime"] == "2s"
    assert page["http_req_stats"] == {"/varz": 1}
    assert page["jetstream"]["config"]["max_memory"] == 1 << 20
    assert "meta" not in page["jetstream"]


def test_connections_open_and_closed(play: NodePlay) -> None:
    stays, goes = play.connect("a"), play.connect("b")
    stays.subscribe("keep.>")
    goes.subscribe("gone.>")
    play.hang_up(goes)
    _, page = play.get("/connz", subs="detail", auth="1")
    (shown,) = page["connections"]
    assert shown["account"] == "A" and shown["authorized_user"] == "a"
    assert shown["name"] == "test a" and shown["lang"] == "test"
    assert [sub["subject"] for sub in shown["subscriptions_list_detail"]] == ["keep.>"]
    _, page = play.get("/connz", state="closed", subs="1")
    (shown,) = page["connections"]
    assert shown["reason"] == "Client Closed" and "stop" in shown
    assert shown["subscriptions_list"] == ["gone.>"]


def test_subscriptions_and_accounts(play: NodePlay) -> None:
    play.connect("a").subscribe("foo.bar")
    _, page = play.get("/subsz", acc="A", subs="1", test="foo.bar")
    assert [sub["subject"] for sub in page["subscriptions_list"]] == ["foo.bar"]
    assert page["num_subscriptions"] >= page["total"] == 1
    _, page = play.get("/accountz")
    assert sorted(page["accounts"]) == ["$G", "$SYS", "A", "B"]
    _, page = play.get("/accountz", acc="A")
    detail = page["account_detail"]
    assert detail["jetstream_enabled"] and detail["client_connections"] == 1
    _, page = play.get("/accountz", acc="B")
    assert not page["account_detail"]["jetstream_enabled"]
    _, page = play.get("/accstatz")
    assert [one["acc"] for one in page["account_statz"]] == ["A"]
    assert play.get("/subsz", acc="nobody")[1]["num_subscriptions"] == 0


def test_jetstream_use(play: NodePlay) -> None:
    client = play.connect("a")
    stream(client, "S", max_bytes=1 << 16)
    stream(client, "M", storage="memory")
    consumer(client, "C")
    for number in range(3):
        client.publish(f"s.{number}", b"x" * 100)
    client.publish("m.1", b"y")
    status, page = play.get("/jsz", streams="1", consumers="1", config="1", raft="1")
    assert status == 200
    assert (page["streams"], page["consumers"], page["messages"]) == (2, 1, 4)
    assert (page["streams_leader"], page["consumers_leader"]) == (2, 1)
    assert page["reserved_storage"] == 1 << 16
    assert page["storage"] > 300 > page["memory"] > 0
    assert page["accounts"] == 1 and page["api"]["total"] == 3
    (account,) = page["account_details"]
    assert account["name"] == "A" and account["api"]["total"] == 3
    details = {one["name"]: one for one in account["stream_detail"]}
    assert details["S"]["state"]["messages"] == 3
    assert details["S"]["config"]["max_bytes"] == 1 << 16
    assert details["S"]["consumer_detail"][0]["num_pending"] == 3
    assert details["S"]["cluster"]["leader"] == "n1"


def test_a_single_server_has_no_meta_group_to_tell_of(play: NodePlay) -> None:
    assert play.get("/raftz") == (404, "No Raft nodes registered")
    _, page = play.get("/jsz", **{"leader-only": "1"})
    assert "meta_cluster" not in page
    status, page = play.get("/ipqueuesz", all="1")
    assert status == 200 and all(queue["pending"] == 0 for queue in page.values())


def test_health(play: NodePlay) -> None:
    assert play.get("/healthz") == (200, {"status": "ok"})
    client = play.connect("a")
    stream(client)
    consumer(client, "C")
    assert play.get("/healthz", account="A", stream="S", consumer="C")[0] == 200
    assert play.get("/healthz", account="A", stream="NOPE")[0] == 404


def test_damaged_messages_are_no_secret() -> None:
    disk = SimDisk(random.Random(1))
    play = NodePlay(disk=disk)
    client = play.connect("a")
    stream(client)
    for number in range(50):
        client.publish(f"s.{number}", b"payload %d " % number * 40)
    engine = play.node.engine
    assert engine is not None
    (unit,) = engine.assets.streams.values()
    engine.groups.checkpoints.soon(unit.group)
    for job in engine.groups.checkpoints.seal():
        job.run()
        engine.synced(job.ticket)
    (segment,) = [path for path in disk.paths() if "/messages/" in path or path.endswith(".seg")][
        :1
    ]
    engine.close()
    disk.flip_bit(segment, 8 * 4000)
    again = NodePlay(disk=disk)
    status, page = again.get("/healthz")
    assert status == 503 and "S' is not current: messages" in page["error"]
    assert "damaged" in page["error"]
    status, page = again.get("/healthz", details="1")
    assert [one["type"] for one in page["errors"]] == ["STREAM"]


def test_a_full_disk_is_told(play: NodePlay) -> None:
    system, client = play.connect("sys"), play.connect("a")
    system.subscribe("$JS.EVENT.ADVISORY.SERVER.>")
    stream(client)
    stream(client, "M", storage="memory")
    play.disk.capacity = 0
    play.run(3)
    status, page = play.get("/healthz", details="1")
    assert status == 503
    (error,) = page["errors"]
    assert error["stream"] == "S" and "write error: the disk is full" in error["error"]
    (event,) = system.heard("$JS.EVENT.ADVISORY.SERVER.OUT_OF_STORAGE")
    assert event["server"] == "n1"
    play.disk.capacity = 1 << 40
    play.run(3)
    assert play.get("/healthz")[0] == 200


def test_without_jetstream() -> None:
    play = NodePlay(node_options(jetstream=JetStreamOptions()))
    _, page = play.get("/jsz")
    assert page["disabled"] is True
    assert play.get("/healthz") == (200, {"status": "ok"})
    assert play.get("/varz")[1]["jetstream"] == {}
    assert play.get("/routez")[1]["routes"] == []


def test_configured_but_not_running_jetstream_is_ill(play: NodePlay) -> None:
    engine = play.node.engine
    assert engine is not None
    engine.cluster.removed = True
    status, page = play.get("/healthz")
    assert (status, page["error"]) == (503, "JetStream not enabled")
    assert play.get("/jsz")[1]["disabled"] is True


def test_settings_of_a_cluster_member() -> None:
    options = Options(
        server_name="n1",
        cluster=ClusterOptions(
            name="C1",
            host="10.0.0.1",
            port=6222,
            routes=(Url("n2", 6222),),
            auth_timeout_ns=1_500_000_000,
            tls=TlsOptions(timeout_ns=3_000_000_000),
        ),
        monitoring=MonitorOptions(https_port=8443, base_path="/base/"),
        tls=TlsOptions(timeout_ns=500_000_000),
        jetstream=JetStreamOptions(
            enabled=True, sync=SyncMode.INTERVAL, limits=JetStreamLimits(ack_pending_max=7)
        ),
        no_system_account=True,
    )
    identity = ServerIdentity("N1", "n1", cluster="C1")
    addresses = {"cluster": ("10.0.0.1", 7222), "monitor": ("0.0.0.0", 9443)}
    found = settings(options, identity, addresses, started_ns=1, loaded_ns=2, runtime="x")
    assert (found.http_port, found.https_port, found.http_base_path) == (0, 9443, "/base")
    assert found.cluster.cluster_port == 7222 and found.cluster.urls == ("n2:6222",)
    assert found.cluster.auth_timeout == 1.5 and found.cluster.tls_timeout == 3
    assert found.cluster.tls_required and found.tls_timeout_s == 0.5
    assert found.system_account == "$SYS" and found.clustered
