"""What waits is listed, page by page: schedules, and messages that are put off."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from jsctl.api.times import parse_time
from jsctl.testing import Broker, Cluster
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes
WAIT_S = 30.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """One server."""
    with Broker("-js") as running:
        yield running


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    """A connection to it."""
    made = await nats.connect(broker.url, connect_timeout=30)
    yield made
    await made.close()


async def ask(client: Client, subject: str, body: dict[str, Any] | None = None) -> Any:
    """The decoded answer of the API."""
    payload = b"" if body is None else json.dumps(body).encode()
    return json.loads((await client.request(f"$JS.API.{subject}", payload, timeout=WAIT_S)).data)


async def schedules(client: Client, name: str, count: int, **more: Any) -> None:
    """A stream with so many of them, every second one due later than the others."""
    config = {"name": name, "subjects": [f"{name}.>"], "allow_msg_schedules": True, **more}
    answer = await ask(client, f"STREAM.CREATE.{name}", config)
    assert "error" not in answer, answer
    for number in range(count):
        headers = {
            "Nats-Schedule": f"@at {2090 + number % 2}-01-01T00:00:00Z",
            "Nats-Schedule-Target": f"{name}.out",
        }
        await client.request(f"{name}.{number}", b"", timeout=WAIT_S, headers=headers)


async def test_schedules(client: Client) -> None:
    await schedules(client, "S", 7)
    await client.request("S.0", b"plain", timeout=WAIT_S)
    found = await ask(client, "STREAM.SCHEDULES.S")
    assert (found["total"], found["limit"], found["schedules"][0]) == (
        6,
        1000,
        {"seq": 2, "subject": "S.1", "due": "2091-01-01T00:00:00Z"},
    )
    assert [one["seq"] for one in found["schedules"]] == [2, 3, 4, 5, 6, 7]
    page = await ask(client, "STREAM.SCHEDULES.S", {"after": 3, "limit": 2})
    assert [one["seq"] for one in page["schedules"]] == [4, 5]
    assert (await ask(client, "STREAM.SCHEDULES.S", {"after": 7}))["schedules"] == []
    assert (await ask(client, "STREAM.SCHEDULES.S", {"limit": 10**6}))["limit"] == 1000


REFUSED: list[tuple[str, dict[str, Any], int]] = [
    ("STREAM.SCHEDULES.NONE", {}, 10059),
    ("STREAM.SCHEDULES.S", {"limit": -1}, 10003),
    ("STREAM.SCHEDULES.S", {"after": -1}, 10025),
    ("STREAM.SCHEDULES.S", {"after": "x"}, 10025),
    ("CONSUMER.WAITING.NONE.C", {}, 10059),
    ("CONSUMER.WAITING.S.NONE", {}, 10014),
]


async def test_what_is_refused(client: Client) -> None:
    await ask(client, "STREAM.CREATE.S", {"name": "S", "subjects": ["S.>"]})
    found = [await ask(client, subject, body) for subject, body, _ in REFUSED]
    assert [one["error"]["err_code"] for one in found] == [code for _, _, code in REFUSED]
    assert "error" not in await ask(client, "STREAM.SCHEDULES.S")


async def test_messages_that_are_put_off(client: Client) -> None:
    js = client.jetstream(timeout=WAIT_S)
    await js.add_stream(name="P", subjects=["P"])
    for _ in range(5):
        await js.publish("P")
    await js.add_consumer("P", durable_name="C", ack_policy="explicit", ack_wait=600)
    subscription = await js.pull_subscribe_bind("C", "P")
    assert (await ask(client, "CONSUMER.WAITING.P.C"))["messages"] == []
    messages = await subscription.fetch(4, timeout=WAIT_S)
    before = await ask(client, "CONSUMER.WAITING.P.C")
    await messages[0].ack_sync()
    await messages[1].nak(delay=3600)
    await messages[2].nak()

    async def put_off() -> Any:
        found = await ask(client, "CONSUMER.WAITING.P.C")
        return found if found["messages"][1].get("queued") else None

    found = await eventually(put_off, "all of it to be heard", WAIT_S)
    assert found["total"] == 3 and [one["seq"] for one in found["messages"]] == [2, 3, 4]
    later, queued, waits = found["messages"]
    assert later["nak"] and "nak" not in queued and "nak" not in waits
    assert "due" not in queued and waits == before["messages"][3]
    hours = (parse_time(later["due"]) - parse_time(waits["due"])) / 3600e9
    assert 0.8 < hours < 1.0
    page = await ask(client, "CONSUMER.WAITING.P.C", {"after": 2, "limit": 1})
    assert [one["seq"] for one in page["messages"]] == [3]
    (again,) = await subscription.fetch(1, timeout=WAIT_S)
    assert again.metadata.sequence.stream == 3
    found = await ask(client, "CONSUMER.WAITING.P.C")
    assert found["messages"][1]["deliveries"] == 2


async def test_a_delay_is_told_from_an_ack_wait_after_a_restart_too() -> None:
    with Broker("-js") as server:
        client = await nats.connect(server.url, connect_timeout=30)
        js = client.jetstream(timeout=WAIT_S)
        await js.add_stream(name="P", subjects=["P"])
        await js.publish("P")
        await js.publish("P")
        await js.add_consumer("P", durable_name="C", ack_policy="explicit", ack_wait=600)
        subscription = await js.pull_subscribe_bind("C", "P")
        for message in await subscription.fetch(2, timeout=WAIT_S):
            await client.request(message.reply, b'-NAK {"delay": 3600000000000}', timeout=WAIT_S)
        found = await ask(client, "CONSUMER.WAITING.P.C")
        assert [one["nak"] for one in found["messages"]] == [True, True]
        await client.request(message.reply, b"+WPI", timeout=WAIT_S)
        await client.close()
        server.kill()
        server.start()
        client = await nats.connect(server.url, connect_timeout=30)

        async def told() -> Any:
            found = await ask(client, "CONSUMER.WAITING.P.C")
            return found if "error" not in found else None

        found = await eventually(told, "the consumer to be led", WAIT_S)
        assert [one.get("nak", False) for one in found["messages"]] == [True, False]
        await client.close()


def test_any_server_of_a_cluster_tells_the_same() -> None:
    async def told(cluster: Cluster) -> None:
        clients = [await nats.connect(url, connect_timeout=30) for url in cluster.urls]
        await schedules(clients[0], "R", 3, num_replicas=3)
        answers = [await ask(one, "STREAM.SCHEDULES.R") for one in clients]
        assert answers[0] == answers[1] == answers[2] and answers[0]["total"] == 3
        assert (await ask(clients[1], "STREAM.LEADER.STEPDOWN.R"))["success"]
        assert await ask(clients[2], "STREAM.SCHEDULES.R") == answers[0]
        for one in clients:
            await one.close()

    with Cluster(3) as cluster:
        asyncio.run(told(cluster))
