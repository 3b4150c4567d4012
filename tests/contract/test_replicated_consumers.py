"""Consumers of replicated streams, in a cluster of either kind."""

import json
from collections.abc import Iterator
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from jsctl.testing import Cluster
from tests.contract.conftest import KINDS
from tests.support.publishing import publish_to_new

WAIT_S = 30.0


@pytest.fixture(scope="module", params=list(KINDS))
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three servers."""
    with Cluster(3, server=KINDS[str(request.param)]) as running:
        yield running


async def api(client: Client, subject: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """The decoded answer of the JetStream API."""
    payload = b"" if body is None else json.dumps(body).encode()
    reply = await client.request(f"$JS.API.{subject}", payload, timeout=WAIT_S)
    found: dict[str, Any] = json.loads(reply.data)
    assert "error" not in found
    return found


async def test_floors_before_the_first_ack(cluster: Cluster) -> None:
    client = await nats.connect(cluster.urls[0], connect_timeout=int(WAIT_S))
    found: list[tuple[int, int]] = []
    for replicas in (1, 3):
        name = f"R{replicas}"
        stream = {"name": name, "subjects": [f"{name}.>"], "num_replicas": replicas}
        await api(client, f"STREAM.CREATE.{name}", {**stream, "first_seq": 50})
        for _ in range(5):
            await publish_to_new(client, f"{name}.a")
        config = {"name": "c", "durable_name": "c", "ack_policy": "explicit"}
        await api(client, f"CONSUMER.CREATE.{name}.c", {"stream_name": name, "config": config})
        info = await api(client, f"CONSUMER.INFO.{name}.c")
        found.append((info["delivered"]["stream_seq"], info["ack_floor"]["stream_seq"]))
        again = await api(client, f"CONSUMER.RESET.{name}.c", {"seq": 53})
        info = await api(client, f"CONSUMER.INFO.{name}.c")
        assert info["ack_floor"] == again["ack_floor"] == {"consumer_seq": 0, "stream_seq": 52}
        assert info["num_pending"] == again["num_pending"] == 2
    assert found == [(49, 49), (49, 0)]
    await client.close()


async def test_a_preferred_leader_that_nobody_knows_is_named(cluster: Cluster) -> None:
    client = await nats.connect(cluster.urls[0], connect_timeout=int(WAIT_S))
    await api(client, "STREAM.CREATE.P", {"name": "P", "subjects": ["p"], "num_replicas": 3})
    await publish_to_new(client, "p")
    config = {"name": "c", "durable_name": "c", "ack_policy": "explicit"}
    await api(client, "CONSUMER.CREATE.P.c", {"stream_name": "P", "config": config})
    await api(client, "CONSUMER.INFO.P.c")
    asked = json.dumps({"placement": {"preferred": "nope"}}).encode()
    for operation in ("STREAM.LEADER.STEPDOWN.P", "CONSUMER.LEADER.STEPDOWN.P.c"):
        reply = await client.request(f"$JS.API.{operation}", asked, timeout=WAIT_S)
        error = json.loads(reply.data)["error"]
        assert error["err_code"] == 10005
        assert 'preferred server "nope" not known' in error["description"]
    await client.close()


async def test_what_is_reserved_is_told_once_for_all_replicas(cluster: Cluster) -> None:
    client = await nats.connect(cluster.urls[0], connect_timeout=int(WAIT_S))
    before = await api(client, "INFO")
    for name, storage in (("RF", "file"), ("RM", "memory")):
        stream = {"name": name, "subjects": [name], "num_replicas": 3, "storage": storage}
        await api(client, f"STREAM.CREATE.{name}", {**stream, "max_bytes": 1 << 20})
    after = await api(client, "INFO")
    for kind in ("reserved_storage", "reserved_memory"):
        assert after[kind] - before[kind] == 1 << 20
    await client.close()
