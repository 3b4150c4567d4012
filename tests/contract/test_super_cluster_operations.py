"""What operators do with servers and moves, asked for in the other cluster: cancel-move, evacuate,
peer-remove, and a lame duck, on brokers."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress

import nats
import pytest
from nats.aio.client import Client
from nats.js.errors import NoStreamResponseError

from jsctl.testing import Broker
from tests.contract.test_super_cluster import api, made, told
from tests.support.listeners import WAIT_S
from tests.support.super_clusters import one_jetstream, super_cluster
from tests.support.waiting import eventually

ACK_S = 5.0
UNAVAILABLE = 10008

SIZES = {"a": 1, "b": 4}
MESSAGES, BYTES = 6000, 8192
"""As much as takes a moment to move."""


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Broker]]:
    """The servers by name."""
    with super_cluster(dict.fromkeys(SIZES, "jsctl"), SIZES, jetstream=True) as found:
        one_jetstream(found)
        yield found


@pytest.fixture
async def clients(servers: dict[str, Broker]) -> AsyncIterator[tuple[Client, Client]]:
    """One who uses streams, and an operator, both in the small cluster."""
    async with AsyncExitStack() as stack:
        user = await nats.connect(servers["a1"].url, connect_timeout=WAIT_S)
        stack.push_async_callback(user.close)
        admin = await nats.connect(servers["a1"].url, user="admin", password="p")
        stack.push_async_callback(admin.close)
        yield user, admin


async def replicas(client: Client, name: str) -> list[str]:
    """The servers of a stream, its leader first; none while nobody can be asked."""
    cluster = (await told(client, f"STREAM.INFO.{name}")).get("cluster", {})
    return [cluster.get("leader", ""), *(one["name"] for one in cluster.get("replicas") or [])]


async def without(client: Client, name: str, gone: str) -> None:
    """Wait until a stream has three replicas again, and none on a server."""

    async def fact() -> bool:
        found = await replicas(client, name)
        return gone not in found and len(set(found) - {""}) == 3

    await eventually(fact, f"{name} is not on {gone} any more")


async def test_a_move_is_cancelled_from_the_other_cluster(
    servers: dict[str, Broker], clients: tuple[Client, Client]
) -> None:
    user, _admin = clients
    await made(user, "MOVED", placement={"cluster": "a"})
    context = user.jetstream(timeout=WAIT_S)
    for _ in range(MESSAGES):
        await context.publish_async("MOVED.x", b"x" * BYTES)
    await context.publish_async_completed()
    config = {"name": "MOVED", "subjects": ["MOVED.>"], "storage": "file", "num_replicas": 1}
    there = {"placement": {"cluster": "b"}}
    assert "error" not in await api(user, "STREAM.UPDATE.MOVED", **config, **there)
    other = await nats.connect(servers["b2"].url, user="admin", password="p")
    answer = await api(other, "ACCOUNT.STREAM.CANCEL_MOVE.APP.MOVED")
    await other.close()
    assert "error" not in answer, answer

    async def back() -> bool:
        return await replicas(user, "MOVED") == ["a1"]

    await eventually(back, "the stream stays where it was")
    info = await told(user, "STREAM.INFO.MOVED")
    assert info["state"]["messages"] == MESSAGES


async def test_a_server_of_the_other_cluster_is_evacuated(clients: tuple[Client, Client]) -> None:
    user, admin = clients
    await made(user, "LEAVES", num_replicas=3, placement={"cluster": "b"})
    gone = (await replicas(user, "LEAVES"))[0]
    answer = await api(admin, "SERVER.EVACUATE", peer=gone)
    assert "error" not in answer, answer
    await without(user, "LEAVES", gone)


async def test_a_server_that_is_down_is_removed_from_the_other_cluster(
    servers: dict[str, Broker], clients: tuple[Client, Client]
) -> None:
    user, admin = clients
    await made(user, "LOSES", num_replicas=3, placement={"cluster": "b"})
    gone = (await replicas(user, "LOSES"))[-1]
    servers[gone].kill()

    async def removed() -> bool:
        # It may have led the meta group: whoever is told that nobody leads just now asks again.
        answer = await api(admin, "SERVER.REMOVE", peer=gone)
        assert answer.get("success") or answer["error"]["err_code"] == UNAVAILABLE, answer
        return bool(answer.get("success"))

    await eventually(removed, f"{gone} is removed")
    await without(user, "LOSES", gone)
    servers[gone].start()
    other = await nats.connect(servers[gone].url, connect_timeout=WAIT_S)
    try:

        async def known() -> bool:
            return gone not in await replicas(other, "LOSES")

        await eventually(known, "the server that came back knows that")
    finally:
        await other.close()


async def test_a_lame_duck_gives_its_leaderships_away(
    servers: dict[str, Broker], clients: tuple[Client, Client]
) -> None:
    user, _ = clients
    await made(user, "DUCK", num_replicas=3, placement={"cluster": "b"})
    gone = (await replicas(user, "DUCK"))[0]
    os.kill(servers[gone].pid, signal.SIGUSR2)

    async def moved() -> bool:
        return (await replicas(user, "DUCK"))[0] not in ("", gone)

    await eventually(moved, "another server leads")
    context = user.jetstream(timeout=ACK_S)

    async def stored() -> int:
        # Its own server may not have heard of it yet, or the old leader took it and has gone.
        with suppress(NoStreamResponseError, nats.errors.TimeoutError):
            return (await context.publish("DUCK.x", b"x", headers={"Nats-Msg-Id": "x"})).seq
        return 0

    assert await eventually(stored, "it is stored") == 1
