"""What was deleted is gone on every server of a cluster, of either kind, once that was answered."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.errors import NoRespondersError

from jsctl.testing import Cluster
from tests.contract.conftest import KINDS

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


async def code(client: Client, subject: str) -> int | None:
    """The error of an answer."""
    found: int | None = (await ask(client, subject)).get("error", {}).get("err_code")
    return found


async def publish(client: Client, subject: str) -> None:
    """Until it is stored: a server may not know yet where a new stream listens."""
    async with asyncio.timeout(WAIT_S):
        while True:
            with suppress(NoRespondersError):
                await client.request(subject, b"m", timeout=WAIT_S)
                return


@pytest.mark.parametrize("replicas", [1, 3])
async def test_a_deleted_stream_is_found_nowhere(clients: list[Client], replicas: int) -> None:
    name = f"GONE{replicas}"
    for turn in range(ROUNDS):
        first, second, third = (clients[(turn + add) % 3] for add in range(3))
        config = {"name": name, "subjects": [name], "num_replicas": replicas}
        made = await ask(first, f"STREAM.CREATE.{name}", **config)
        assert made["state"]["messages"] == 0, made
        await publish(first, name)
        assert (await ask(second, f"STREAM.DELETE.{name}"))["success"]
        found = [await code(client, f"STREAM.INFO.{name}") for client in (third, second, first)]
        assert found == [STREAM_GONE] * 3, turn


async def test_a_deleted_consumer_is_found_nowhere(clients: list[Client]) -> None:
    await ask(clients[0], "STREAM.CREATE.CONS", name="CONS", subjects=["cons"], num_replicas=3)
    for turn in range(ROUNDS):
        first, second, third = (clients[(turn + add) % 3] for add in range(3))
        config = {"name": "C", "durable_name": "C", "ack_policy": "explicit"}
        made = await ask(first, "CONSUMER.CREATE.CONS.C", stream_name="CONS", config=config)
        assert "error" not in made
        assert (await ask(second, "CONSUMER.DELETE.CONS.C"))["success"]
        subject = "CONSUMER.INFO.CONS.C"
        found = [await code(client, subject) for client in (third, second, first)]
        assert found == [CONSUMER_GONE] * 3, turn


async def test_consumers_go_with_their_stream(clients: list[Client]) -> None:
    config = {"name": "C", "durable_name": "C", "ack_policy": "explicit", "num_replicas": 1}
    for turn in range(ROUNDS):
        first, second, third = (clients[(turn + add) % 3] for add in range(3))
        await ask(first, "STREAM.CREATE.WITH", name="WITH", subjects=["with"], num_replicas=3)
        made = await ask(first, "CONSUMER.CREATE.WITH.C", stream_name="WITH", config=config)
        assert "error" not in made
        assert (await ask(second, "STREAM.DELETE.WITH"))["success"]
        subject = "CONSUMER.INFO.WITH.C"
        found = [await code(client, subject) for client in (third, second, first)]
        assert found == [STREAM_GONE] * 3, turn
