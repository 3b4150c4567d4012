"""What was deleted is gone on every server of a cluster, of either kind, once that was answered."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import nats.errors
import pytest
from nats.aio.client import Client

from jsctl.testing import Cluster, RealServer
from tests.contract.conftest import KINDS
from tests.support.publishing import publish_to_new

WAIT_S = 30.0
ROUNDS = 40
STREAM_GONE, CONSUMER_GONE = 10059, 10014


@pytest.fixture(scope="module", params=list(KINDS))
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three servers."""
    with Cluster(3, server=KINDS[str(request.param)]) as running:
        yield running


@pytest.fixture
async def clients(cluster: Cluster) -> AsyncIterator[list[Client]]:
    """One at each server."""
    made = [await nats.connect(url, connect_timeout=int(WAIT_S)) for url in cluster.urls]
    yield made
    for one in made:
        await one.close()


async def ask(client: Client, subject: str, **body: Any) -> dict[str, Any]:
    """The decoded answer of the JetStream API."""
    payload = json.dumps(body).encode() if body else b""
    reply = await client.request(f"$JS.API.{subject}", payload, timeout=WAIT_S)
    found: dict[str, Any] = json.loads(reply.data)
    return found


@pytest.fixture
def tries(cluster: Cluster) -> int:
    """A nats-server may leave a request for what is just being deleted without an answer."""
    return 5 if all(isinstance(one, RealServer) for one in cluster) else 1


async def code(client: Client, subject: str, tries: int) -> int | None:
    """The error of an answer."""
    for _ in range(tries - 1):
        with suppress(nats.errors.TimeoutError):
            return await _code(client, subject, WAIT_S / tries)
    return await _code(client, subject, WAIT_S)


async def _code(client: Client, subject: str, wait_s: float) -> int | None:
    reply = await client.request(f"$JS.API.{subject}", b"", timeout=wait_s)
    found: int | None = json.loads(reply.data).get("error", {}).get("err_code")
    return found


@pytest.mark.parametrize("replicas", [1, 3])
async def test_a_deleted_stream_is_found_nowhere(
    clients: list[Client], tries: int, replicas: int
) -> None:
    name = f"GONE{replicas}"
    for turn in range(ROUNDS):
        first, second, third = (clients[(turn + add) % 3] for add in range(3))
        config = {"name": name, "subjects": [name], "num_replicas": replicas}
        made = await ask(first, f"STREAM.CREATE.{name}", **config)
        assert made["state"]["messages"] == 0, made
        await publish_to_new(first, name)
        assert (await ask(second, f"STREAM.DELETE.{name}"))["success"]
        subject = f"STREAM.INFO.{name}"
        found = [await code(client, subject, tries) for client in (third, second, first)]
        assert found == [STREAM_GONE] * 3, turn


async def test_a_deleted_consumer_is_found_nowhere(clients: list[Client], tries: int) -> None:
    await ask(clients[0], "STREAM.CREATE.CONS", name="CONS", subjects=["cons"], num_replicas=3)
    for turn in range(ROUNDS):
        first, second, third = (clients[(turn + add) % 3] for add in range(3))
        config = {"name": "C", "durable_name": "C", "ack_policy": "explicit"}
        made = await ask(first, "CONSUMER.CREATE.CONS.C", stream_name="CONS", config=config)
        assert "error" not in made
        assert (await ask(second, "CONSUMER.DELETE.CONS.C"))["success"]
        subject = "CONSUMER.INFO.CONS.C"
        found = [await code(client, subject, tries) for client in (third, second, first)]
        assert found == [CONSUMER_GONE] * 3, turn


async def test_consumers_go_with_their_stream(clients: list[Client], tries: int) -> None:
    config = {"name": "C", "durable_name": "C", "ack_policy": "explicit", "num_replicas": 1}
    for turn in range(ROUNDS):
        first, second, third = (clients[(turn + add) % 3] for add in range(3))
        await ask(first, "STREAM.CREATE.WITH", name="WITH", subjects=["with"], num_replicas=3)
        made = await ask(first, "CONSUMER.CREATE.WITH.C", stream_name="WITH", config=config)
        assert "error" not in made
        assert (await ask(second, "STREAM.DELETE.WITH"))["success"]
        subject = "CONSUMER.INFO.WITH.C"
        found = [await code(client, subject, tries) for client in (third, second, first)]
        assert found == [STREAM_GONE] * 3, turn
