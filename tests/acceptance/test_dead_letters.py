"""Messages that consumers give up are stored where their metadata says, once, whatever dies."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.errors import Error
from nats.errors import TimeoutError as NoAnswer

from jsctl.testing import Broker, Cluster, RealServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes
WAIT_S = 60.0
KEY = "jsctl.dead_letter_subject"
Config = dict[str, Any]


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


async def ask(
    client: Client, subject: str, body: Config | None = None, within_s: float = WAIT_S
) -> Any:
    """The decoded answer of the API."""
    payload = b"" if body is None else json.dumps(body).encode()
    return json.loads((await client.request(f"$JS.API.{subject}", payload, timeout=within_s)).data)


async def create(
    client: Client, name: str, *, replicas: int = 1, to: str = "dlq", **more: Any
) -> None:
    """A stream, one for its dead letters, and a consumer that gives up after two deliveries."""
    for stream, subject in ((name, f"{name}.*"), (f"{name}_DEAD", f"{to}.{name}.>")):
        config: Config = {"name": stream, "subjects": [subject], "num_replicas": replicas}
        if stream == name:
            config |= more
        answer = await ask(client, f"STREAM.CREATE.{stream}", config)
        assert "error" not in answer, answer
    config = {
        "durable_name": "C",
        "ack_policy": "explicit",
        "ack_wait": 300_000_000,
        "max_deliver": 2,
        "max_ack_pending": 10_000,
        "metadata": {KEY: to},
    }
    body = {"stream_name": name, "config": config}
    answer = await ask(client, f"CONSUMER.CREATE.{name}.C", body)
    assert "error" not in answer, answer


async def letters(client: Client, name: str) -> list[tuple[dict[str, str], bytes, str]]:
    """Headers, body and subject of all that are stored."""
    js = client.jetstream(timeout=WAIT_S)
    state = (await js.stream_info(f"{name}_DEAD")).state
    found = []
    for seq in range(state.first_seq, state.last_seq + 1):
        one = await js.get_msg(f"{name}_DEAD", seq)
        found.append((dict(one.headers or {}), one.data or b"", str(one.subject)))
    return found


async def some(client: Client, name: str, count: int) -> list[tuple[dict[str, str], bytes, str]]:
    """The same when there are so many."""

    async def there() -> bool:
        try:
            found = await ask(client, f"STREAM.INFO.{name}_DEAD", within_s=3)
        except Error:
            return False
        return bool(found.get("state", {}).get("messages", 0) >= count)

    await eventually(there, f"{count} dead letters", WAIT_S)
    return await letters(client, name)


async def test_what_a_letter_tells(client: Client) -> None:
    await create(client, "T")
    js = client.jetstream(timeout=WAIT_S)
    own = {"Own": "value", "Nats-Msg-Id": "X", "Nats-Expected-Stream": "T"}
    await js.publish("T.a", b"one", headers=own)
    await js.publish("T.b", b"two")
    await js.publish("T.c", b"three")
    pull = await js.pull_subscribe_bind("C", "T")
    first, second, third = await pull.fetch(3, timeout=WAIT_S)
    await client.publish(second.reply, b"+TERM it is\r\nbroken")
    await third.ack_sync()
    (again,) = await pull.fetch(1, timeout=WAIT_S)
    assert again.metadata.num_delivered == 2 and again.data == first.data
    told = {one[0]["Dead-Letter-Sequence"]: one for one in await some(client, "T", 2)}
    headers, body, subject = told["1"]
    at = headers.pop("Dead-Letter-Time")
    assert body == b"one" and subject.startswith("dlq.T.C.1.") and at.endswith("Z")
    assert headers.pop("Nats-Msg-Id") == subject.removeprefix("dlq.")
    assert headers == {
        "Own": "value",
        "Dead-Letter-Stream": "T",
        "Dead-Letter-Consumer": "C",
        "Dead-Letter-Sequence": "1",
        "Dead-Letter-Subject": "T.a",
        "Dead-Letter-Deliveries": "2",
        "Dead-Letter-Reason": "max deliveries",
        "Nats-Expected-Last-Subject-Sequence": "0",
    }
    headers, body, _ = told["2"]
    assert (body, headers["Dead-Letter-Reason"]) == (b"two", "terminated")
    assert headers["Dead-Letter-Deliveries"] == "1"
    assert headers["Dead-Letter-Text"] == "it is  broken"
    info = await js.consumer_info("T", "C")
    assert (info.num_ack_pending, info.num_redelivered) == (0, 0)
    assert (await js.stream_info("T")).state.messages == 3


async def test_a_work_queue_lets_go_of_what_is_stored(client: Client) -> None:
    await create(client, "W", retention="workqueue")
    js = client.jetstream(timeout=WAIT_S)
    await ask(client, "STREAM.UPDATE.W_DEAD", {"name": "W_DEAD", "subjects": ["elsewhere"]})
    await js.publish("W.a", b"1")
    pull = await js.pull_subscribe_bind("C", "W")
    (message,) = await pull.fetch(1, timeout=WAIT_S)
    await client.publish(message.reply, b"+TERM")
    with pytest.raises(NoAnswer):
        await pull.fetch(1, timeout=1)
    assert (await js.stream_info("W")).state.messages == 1, "nobody stored it"
    await ask(client, "STREAM.UPDATE.W_DEAD", {"name": "W_DEAD", "subjects": ["dlq.W.>"]})
    assert len(await some(client, "W", 1)) == 1

    async def empty() -> bool:
        return (await js.stream_info("W")).state.messages == 0

    await eventually(empty, "the queue to let go of it", WAIT_S)


async def test_what_is_gone_makes_no_letter(client: Client) -> None:
    await create(client, "G")
    js = client.jetstream(timeout=WAIT_S)
    await js.publish("G.a")
    await js.publish("G.b")
    pull = await js.pull_subscribe_bind("C", "G")
    await pull.fetch(2, timeout=WAIT_S)
    await js.delete_msg("G", 1)
    await pull.fetch(1, timeout=WAIT_S)
    assert [one[0]["Dead-Letter-Sequence"] for one in await some(client, "G", 1)] == ["2"]


REFUSED = ["dlq.*", "dlq.>", "a b", "R.x", "R", "x." * 150 + "x", "."]


async def test_where_letters_may_go(client: Client) -> None:
    await ask(client, "STREAM.CREATE.R", {"name": "R", "subjects": ["R.>"]})
    for wanted in REFUSED:
        config = {"durable_name": "C", "ack_policy": "explicit", "metadata": {KEY: wanted}}
        body = {"stream_name": "R", "config": config}
        answer = await ask(client, "CONSUMER.CREATE.R.C", body)
        assert answer["error"]["err_code"] == 10012, wanted


def test_nats_server_does_not_mind() -> None:
    async def asked(url: str) -> None:
        client = await nats.connect(url, connect_timeout=30)
        await create(client, "N")
        info = await client.jetstream().consumer_info("N", "C")
        assert info.config.metadata is not None and info.config.metadata[KEY] == "dlq"
        await client.close()

    with RealServer("-js") as server:
        asyncio.run(asked(server.url))


COUNT = 200


def test_servers_are_killed() -> None:
    """Each message that was given up is stored once, whoever leads what."""

    async def told(cluster: Cluster) -> None:
        client = await nats.connect(servers=cluster.urls, connect_timeout=30)
        await create(client, "K", replicas=3)
        js = client.jetstream(timeout=WAIT_S)
        for number in range(COUNT):
            await js.publish("K.a", b"%d" % number)
        pull = await js.pull_subscribe_bind("C", "K")

        done = asyncio.Event()

        async def reads() -> None:
            while not done.is_set():
                try:
                    for message in await pull.fetch(20, timeout=1):
                        if int(message.data) % 4 == 0:
                            await client.publish(message.reply, b"+TERM")
                except (Error, OSError):
                    with suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(done.wait(), 0.05)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(reads())
            for place in ("CONSUMER.INFO.K.C", "STREAM.INFO.K_DEAD", "CONSUMER.INFO.K.C"):
                name = await led(client, place)
                cluster.kill(name)
                cluster.restart(name)
            found = await some(client, "K", COUNT)
            done.set()
        seqs = sorted(int(one[0]["Dead-Letter-Sequence"]) for one in found)
        assert seqs == list(range(1, COUNT + 1))
        await client.close()

    with Cluster(3) as cluster:
        asyncio.run(told(cluster))


async def led(client: Client, place: str) -> str:
    """Who leads what an info is about."""

    async def leader() -> str:
        try:
            found = await ask(client, place, within_s=3)
        except Error:
            return ""
        return str(found.get("cluster", {}).get("leader") or "")

    return await eventually(leader, f"a leader for {place}", WAIT_S)
