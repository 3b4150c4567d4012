"""Brokers are killed while they restore: the stream is there as a whole then, or not at all."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.errors import Error

from jsctl.testing import Broker, Cluster, ClusterFactory
from tests.support.waiting import eventually, wait_for

pytestmark = pytest.mark.processes
NAME = "ORDERS"
MESSAGES = 120
BODY_BYTES = 60_000
CHUNK_BYTES = 100_000
DEADLINE_S = 60


@asynccontextmanager
async def connected(server: Broker) -> AsyncIterator[Client]:
    """A client that stays with one server."""
    client = await nats.connect(server.url, connect_timeout=DEADLINE_S, allow_reconnect=False)
    try:
        yield client
    finally:
        await client.close()


async def ask(client: Client, subject: str, body: bytes = b"", timeout: float = 20) -> Any:
    answer = await client.request(subject, body, timeout=timeout)
    return json.loads(answer.data) if answer.data else {}


@pytest.fixture(scope="module")
def archive() -> tuple[dict[str, Any], bytes]:
    """The configuration and the archive of a stream of one server."""

    async def taken(server: Broker) -> tuple[dict[str, Any], bytes]:
        async with connected(server) as client:
            js = client.jetstream()
            await js.add_stream(name=NAME, subjects=["orders.>"])
            noise = random.Random(1)
            for number in range(MESSAGES):
                await js.publish(f"orders.{number % 7}", noise.randbytes(BODY_BYTES))
            inbox = client.new_inbox()
            chunks = await client.subscribe(inbox)
            body = json.dumps({"deliver_subject": inbox}).encode()
            told = await ask(client, f"$JS.API.STREAM.SNAPSHOT.{NAME}", body)
            data = b""
            while chunk := await chunks.next_msg(timeout=20):
                if not chunk.data:
                    return {**told["config"], "num_replicas": 3}, data
                data += chunk.data
                if chunk.reply:
                    await client.publish(chunk.reply)
            raise AssertionError("a snapshot has an end")

    with Broker("-js", name="origin") as server:
        return asyncio.run(taken(server))


async def begun(client: Client, config: dict[str, Any]) -> str:
    """Where the chunks of a restore go."""
    body = json.dumps({"config": config, "state": {}}).encode()
    answer = await ask(client, f"$JS.API.STREAM.RESTORE.{NAME}", body)
    assert "error" not in answer, answer
    return str(answer["deliver_subject"])


async def send(client: Client, to: str, data: bytes) -> None:
    for at in range(0, len(data), CHUNK_BYTES):
        assert not await ask(client, to, data[at : at + CHUNK_BYTES]), "no error, and not the end"


def receiver(cluster: Cluster) -> Broker:
    """The server that an archive goes to."""
    found = wait_for(
        lambda: [one for one in cluster if "Starting restore for stream" in one.logs],
        "somebody says that it receives",
        DEADLINE_S,
    )
    return found[0]


async def state(client: Client) -> dict[str, Any] | None:
    """What is told of the stream, once there is somebody to tell it."""

    async def told() -> Any:
        try:
            answer = await ask(client, f"$JS.API.STREAM.INFO.{NAME}", timeout=3)
        except (Error, TimeoutError):
            return None
        return None if answer.get("error", {}).get("code") == 503 else answer

    answer = await eventually(told, "an answer", DEADLINE_S)
    return None if answer.get("error", {}).get("code") == 404 else answer


def directories(server: Broker) -> list[str]:
    """What there is on a server's disk of streams."""
    return sorted(path.name for path in server.store_dir.glob("jetstream/streams/*"))


def is_empty(server: Broker) -> bool:
    return not directories(server)


async def whole(cluster: Cluster, client: Client) -> None:
    """All messages are on three replicas."""

    async def current() -> bool:
        info = await state(client)
        assert info is not None, "it was there"
        assert info["state"]["messages"] == MESSAGES
        replicas = info["cluster"]["replicas"]
        return len(replicas) == 2 and all(one["current"] for one in replicas)

    await eventually(current, "all replicas are current", DEADLINE_S)
    for seq in (1, MESSAGES // 2, MESSAGES):
        body = json.dumps({"seq": seq}).encode()
        found = await ask(client, f"$JS.API.STREAM.MSG.GET.{NAME}", body)
        assert found["message"]["seq"] == seq


async def test_who_receives_is_killed_half_way(
    jsctl_cluster: ClusterFactory, archive: tuple[dict[str, Any], bytes]
) -> None:
    config, data = archive
    cluster = jsctl_cluster(3)
    async with connected(next(iter(cluster))) as client:
        to = await begun(client, config)
        victim = receiver(cluster)
        other = next(one for one in cluster if one is not victim)
    async with connected(other) as client:
        await send(client, to, data[: len(data) // 2])
        assert directories(victim), "it is being built"
        victim.kill()
        assert await state(client) is None
        victim.start()
        wait_for(partial(is_empty, victim), "what was begun is removed", DEADLINE_S)
        to = await begun(client, config)
        await send(client, to, data)
        answer = await ask(client, to, timeout=DEADLINE_S)
        assert answer["state"]["messages"] == MESSAGES, answer
        await whole(cluster, client)


@pytest.mark.parametrize("after_s", [0.001, 0.05, 0.2])
async def test_who_receives_is_killed_when_all_is_sent(
    jsctl_cluster: ClusterFactory,
    archive: tuple[dict[str, Any], bytes],
    after_s: float,
) -> None:
    config, data = archive
    cluster = jsctl_cluster(3)
    async with connected(next(iter(cluster))) as client:
        to = await begun(client, config)
        victim = receiver(cluster)
        other = next(one for one in cluster if one is not victim)
    async with connected(other) as client:
        await send(client, to, data)
        with suppress(TimeoutError):
            await ask(client, to, timeout=after_s)
        victim.kill()
        victim.start()

        async def settled() -> bool:
            return await state(client) is not None or all(map(is_empty, cluster))

        # What was asked of the meta group may still come to pass.
        await eventually(settled, "it is there, or nothing is left", DEADLINE_S)
        if await state(client) is not None:
            await whole(cluster, client)
