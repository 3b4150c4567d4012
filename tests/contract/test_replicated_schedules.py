"""Schedules of replicated streams, in a cluster of either kind: elections, and servers that die."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.errors import Error
from nats.js import JetStreamContext

from jsctl.testing import Cluster
from tests.contract.conftest import KINDS
from tests.contract.test_schedules import ask, create, made, plan, publish, soon
from tests.support.waiting import eventually

WAIT_S = 60.0
OFTEN = 5
ONCE = 60


@pytest.fixture(scope="module", params=list(KINDS))
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three servers."""
    with Cluster(3, server=KINDS[str(request.param)]) as running:
        yield running


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    """A connection to one of them."""
    made = await nats.connect(servers=cluster.urls, connect_timeout=int(WAIT_S))
    yield made
    await made.close()


@pytest.fixture
def js(client: Client) -> JetStreamContext:
    """JetStream over it."""
    return client.jetstream(timeout=WAIT_S)


async def leader(client: Client, name: str) -> str:
    """Who leads a stream; empty if nobody says so."""
    try:
        found = await ask(client, f"STREAM.INFO.{name}")
    except Error:
        return ""
    return str(found.get("cluster", {}).get("leader") or "")


async def schedule(client: Client, name: str) -> None:
    """Some schedules that are due soon, some that are due again and again."""
    for number in range(ONCE):
        at = soon(3 + number % 6)
        await publish(
            client, f"{name}.s.{number}", plan(name, at, Schedule_Target=f"{name}.once.{number}")
        )
    for number in range(OFTEN):
        headers = plan(name, "@every 1s", Schedule_Target=f"{name}.often.{number}")
        await publish(client, f"{name}.t.{number}", headers)


async def counts(js: JetStreamContext, name: str) -> dict[str, int]:
    """How many messages each subject has."""
    return (await js.stream_info(name, subjects_filter=">")).state.subjects or {}


async def check(client: Client, js: JetStreamContext, name: str) -> None:
    """What was due once was made once; what is due often is made in its rhythm."""
    for number in range(ONCE):
        await made(js, name, f"once.{number}")
    found = await counts(js, name)
    assert [found[f"{name}.once.{number}"] for number in range(ONCE)] == [1] * ONCE
    assert not [one for one in found if one.startswith(f"{name}.s.")]

    async def goes_on() -> bool:
        now = await counts(js, name)
        keys = [f"{name}.often.{number}" for number in range(OFTEN)]
        return all(now[key] > found.get(key, 0) for key in keys)

    await eventually(goes_on, "schedules to go on", WAIT_S)
    for number in range(OFTEN):
        times = await following(js, name, f"{name}.often.{number}")
        assert times == sorted(set(times)), "no time twice"


async def following(js: JetStreamContext, name: str, subject: str) -> list[str]:
    """When each message of a subject said that its schedule is due next."""
    subscription = await js.subscribe(subject, stream=name, ordered_consumer=True)
    found: list[str] = []
    for _ in range((await counts(js, name))[subject]):
        message = await subscription.next_msg(timeout=WAIT_S)
        assert message.headers is not None
        found.append(message.headers["Nats-Schedule-Next"])
    await subscription.unsubscribe()
    return found


@pytest.mark.parametrize("storage", ["file", "memory"])
async def test_another_leader_goes_on(
    client: Client, js: JetStreamContext, fresh: str, storage: str
) -> None:
    await create(client, fresh, num_replicas=3, storage=storage)
    await schedule(client, fresh)
    for _ in range(3):
        before = await leader(client, fresh)
        await ask(client, f"STREAM.LEADER.STEPDOWN.{fresh}")

        async def moved(before: str = before) -> bool:
            return await leader(client, fresh) not in ("", before)

        await eventually(moved, "another server to lead", WAIT_S)
    await check(client, js, fresh)
    await ask(client, f"STREAM.DELETE.{fresh}")


async def test_servers_that_are_killed(
    cluster: Cluster, client: Client, js: JetStreamContext, fresh: str
) -> None:
    await create(client, fresh, num_replicas=3)
    await schedule(client, fresh)

    async def some() -> Any:
        return await leader(client, fresh)

    for _ in range(2):
        name = await eventually(some, "somebody to lead", WAIT_S)
        cluster.kill(name)

        async def moved(before: str = name) -> bool:
            return await leader(client, fresh) not in ("", before)

        await eventually(moved, "another server to lead", WAIT_S)
        cluster.restart(name)
    await check(client, js, fresh)
    await ask(client, f"STREAM.DELETE.{fresh}")
