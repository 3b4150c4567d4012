"""One JetStream over two clusters, of servers of one kind: streams live in one cluster and are used
from both."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, PubAck, StreamSource
from nats.js.errors import NoStreamResponseError, ServiceUnavailableError

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.listeners import WAIT_S
from tests.support.super_clusters import meta_leader, one_jetstream, super_cluster
from tests.support.waiting import eventually

SIZES = {"a": 1, "b": 3}

ASKED_S = 10.0
AGAIN_S = 5.0


@pytest.fixture(scope="module", params=list(KINDS))
def servers(request: pytest.FixtureRequest) -> Iterator[dict[str, Broker]]:
    """The servers by name, with one meta group."""
    with super_cluster(dict.fromkeys(SIZES, request.param), SIZES, jetstream=True) as found:
        one_jetstream(found)
        yield found


@pytest.fixture
async def clients(servers: dict[str, Broker]) -> AsyncIterator[dict[str, Client]]:
    """A client of each."""
    async with AsyncExitStack() as stack:
        found = {}
        for name, server in servers.items():
            found[name] = await nats.connect(server.url, connect_timeout=WAIT_S)
            stack.push_async_callback(found[name].close)
        yield found


def contexts(clients: dict[str, Client]) -> dict[str, JetStreamContext]:
    """Their JetStream."""
    return {name: client.jetstream(timeout=WAIT_S) for name, client in clients.items()}


async def api(client: Client, subject: str, **body: object) -> dict[str, Any]:
    """What the API answers."""
    got = await client.request(f"$JS.API.{subject}", json.dumps(body).encode(), timeout=WAIT_S)
    answer = json.loads(got.data)
    assert isinstance(answer, dict)
    return answer


async def told(client: Client, subject: str) -> dict[str, Any]:
    """The same, while leaders and servers come and go: there is an answer, if only that the one
    who knows cannot be asked just now."""
    got = await client.request(f"$JS.API.{subject}", b"", timeout=ASKED_S)
    answer = json.loads(got.data)
    assert isinstance(answer, dict)
    return answer


async def made(client: Client, name: str, **more: object) -> dict[str, Any]:
    """A stream; what an attempt before left is gone."""
    await api(client, f"STREAM.DELETE.{name}")
    body = {"name": name, "subjects": [f"{name}.>"], "storage": "file", "retention": "limits"}
    answer = await api(client, f"STREAM.CREATE.{name}", **{**body, **more})
    assert "error" not in answer, answer
    return answer


async def published(context: JetStreamContext, subject: str, data: bytes = b"x") -> PubAck:
    """Publish as soon as the other cluster's interest has come here: it is not told on the way that
    the answer to a create takes."""
    found: list[PubAck] = []

    async def done() -> bool:
        try:
            found.append(await context.publish(subject, data))
        except (NoStreamResponseError, ServiceUnavailableError):
            return False
        return True

    await eventually(done, f"somebody stores {subject}")
    return found[0]


both = pytest.mark.parametrize("here", ["a1", "b2"])


@both
async def test_a_stream_is_where_it_is_made(clients: dict[str, Client], here: str) -> None:
    answer = await made(clients[here], f"AT{here}")
    assert answer["cluster"]["name"] == here[0], answer["cluster"]


@both
async def test_a_stream_is_put_into_a_cluster_and_used_from_both(
    clients: dict[str, Client], here: str
) -> None:
    name = f"IN{here}"
    answer = await made(clients[here], name, num_replicas=3, placement={"cluster": "b"})
    assert answer["cluster"]["name"] == "b"
    members = {answer["cluster"]["leader"], *(r["name"] for r in answer["cluster"]["replicas"])}
    assert members == {"b1", "b2", "b3"}
    for number, context in enumerate(contexts(clients).values()):
        ack = await published(context, f"{name}.x", b"%d" % number)
        assert (ack.stream, ack.seq) == (name, number + 1)
    for client in clients.values():
        info = await api(client, f"STREAM.INFO.{name}")
        assert (info["cluster"]["name"], info["state"]["messages"]) == ("b", len(clients))


async def test_where_there_are_too_few_servers_nothing_is_put(clients: dict[str, Client]) -> None:
    body = {"name": "FEW", "subjects": ["FEW.>"], "num_replicas": 3, "storage": "file"}
    for cluster in ("a", "nowhere"):
        answer = await api(
            clients["b1"], "STREAM.CREATE.FEW", **body, placement={"cluster": cluster}
        )
        assert answer["error"]["err_code"] == 10005


async def test_what_has_no_room_where_it_is_made_is_put_elsewhere(
    clients: dict[str, Client],
) -> None:
    answer = await made(clients["a1"], "ROOM", num_replicas=3)
    assert answer["cluster"]["name"] == "b"


@both
async def test_what_is_stored_elsewhere_is_pulled(clients: dict[str, Client], here: str) -> None:
    name = f"PULL{here}"
    there = "b" if here == "a1" else "a"
    await made(clients[here], name, placement={"cluster": there})
    context = contexts(clients)[here]
    await published(context, f"{name}.0", b"")
    for number in range(1, 200):
        await context.publish(f"{name}.{number}", b"x" * number)
    reader = await context.pull_subscribe(f"{name}.>", durable="D")
    found: list[tuple[str, bytes]] = []

    async def all_there() -> bool:
        # Who asks right behind the create may be too early for the other cluster's interest.
        with suppress(ServiceUnavailableError):
            for message in await reader.fetch(50, timeout=WAIT_S):
                await message.ack_sync(timeout=WAIT_S)
                found.append((message.subject, message.data))
        return len(found) >= 200

    await eventually(all_there, "all messages are pulled")
    assert found == [(f"{name}.{n}", b"x" * n) for n in range(200)]
    info = await api(clients[here], f"CONSUMER.INFO.{name}.D")
    assert info["num_ack_pending"] == 0 and info["ack_floor"]["stream_seq"] == 200


@both
async def test_what_is_stored_elsewhere_is_pushed(clients: dict[str, Client], here: str) -> None:
    name = f"PUSH{here}"
    there = "b" if here == "a1" else "a"
    await made(clients[here], name, placement={"cluster": there})
    context = contexts(clients)[here]
    await published(context, f"{name}.x", b"0")
    for number in range(1, 100):
        await context.publish(f"{name}.x", b"%d" % number)
    reader = await context.subscribe(
        f"{name}.x", durable="D", manual_ack=True, config=ConsumerConfig(ack_wait=30)
    )
    for number in range(100):
        message = await reader.next_msg(WAIT_S)
        assert message.data == b"%d" % number
        await message.ack()

    async def acked() -> bool:
        info = await told(clients[here], f"CONSUMER.INFO.{name}.D")
        return bool(info.get("ack_floor", {}).get("stream_seq") == 100)

    await eventually(acked, "all are acknowledged")


async def test_a_mirror_is_in_the_other_cluster(clients: dict[str, Client]) -> None:
    await made(clients["a1"], "ORIGIN")
    context = contexts(clients)["b1"]
    for number in range(50):
        await published(context, "ORIGIN.x", b"%d" % number)
    await context.add_stream(name="COPY", mirror=StreamSource(name="ORIGIN"), num_replicas=3)

    async def there() -> bool:
        info = await told(clients["b3"], "STREAM.INFO.COPY")
        return bool(info.get("state", {}).get("messages") == 50)

    await eventually(there, "the mirror has all")
    info = await api(clients["a1"], "STREAM.INFO.COPY")
    assert info["cluster"]["name"] == "b"


async def test_buckets_are_read_from_both(clients: dict[str, Client]) -> None:
    one, other = (contexts(clients)[name] for name in ("a1", "b3"))
    bucket = await one.create_key_value(bucket="K")
    await bucket.put("x", b"1")
    again = await other.key_value("K")
    assert (await again.get("x")).value == b"1"
    await again.put("x", b"2")
    assert (await bucket.get("x")).value == b"2"


async def test_a_stream_moves_while_it_is_published_to(clients: dict[str, Client]) -> None:
    await made(clients["a1"], "MOVES")
    context = contexts(clients)["a1"]
    await context.pull_subscribe("MOVES.>", durable="D")
    acked: list[int] = []
    moved = False

    async def publish() -> None:
        number = 0
        while not moved:
            try:
                ack = await context.publish("MOVES.x", b"%d" % number, timeout=2)
                acked.append(ack.seq)
            except (nats.errors.TimeoutError, nats.js.errors.Error, nats.errors.NoRespondersError):
                pass  # Not acknowledged: nothing is promised of it.
            number += 1

    async def move() -> None:
        nonlocal moved
        config = {"name": "MOVES", "subjects": ["MOVES.>"], "storage": "file", "num_replicas": 1}
        answer = await api(
            clients["a1"], "STREAM.UPDATE.MOVES", **config, placement={"cluster": "b"}
        )
        assert "error" not in answer, answer
        await eventually(there, "the stream is in the other cluster", 60)
        moved = True

    async def there() -> bool:
        info = await told(clients["a1"], "STREAM.INFO.MOVES")
        cluster = info.get("cluster", {})
        leader = cluster.get("leader", "")
        return leader.startswith("b") and not cluster.get("replicas")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(publish())
        tasks.create_task(move())
    assert len(acked) > 10 and len(set(acked)) == len(acked)
    info = await api(clients["b1"], "STREAM.INFO.MOVES")
    assert info["cluster"]["name"] == "b" and info["state"]["messages"] >= len(acked)

    async def followed() -> bool:
        found = (await told(clients["a1"], "CONSUMER.INFO.MOVES.D")).get("cluster", {})
        return str(found.get("leader", "")).startswith("b") and found["name"] == "b"

    await eventually(followed, "the consumer followed", 60)
    ack = await published(context, "MOVES.x", b"last")
    assert ack.seq > max(acked)


async def test_a_cluster_that_comes_back_knows_who_leads(
    servers: dict[str, Broker], clients: dict[str, Client]
) -> None:
    await made(clients["b1"], "STAYS", num_replicas=3)
    servers["a1"].kill()
    servers["a1"].start()
    one_jetstream(servers)
    client = await nats.connect(servers["a1"].url, connect_timeout=WAIT_S)
    try:

        async def known() -> bool:
            info = await told(client, "STREAM.INFO.STAYS")
            return str(info.get("cluster", {}).get("leader", "")).startswith("b")

        await eventually(known, "the server that came back knows the stream's leader")
        ack = await published(client.jetstream(timeout=WAIT_S), "STAYS.x")
        assert ack.seq == 1
    finally:
        await client.close()


async def test_the_meta_leader_steps_down_into_a_cluster(servers: dict[str, Broker]) -> None:
    admin = await nats.connect(servers["b1"].url, user="admin", password="p")
    try:
        # The only server of a cluster cannot step down within it: begin with the other one.
        for cluster in ("b", "a") if meta_leader(servers["a1"], 4) == "a1" else ("a", "b"):
            asked_s = -AGAIN_S

            async def there(wanted: str = cluster) -> bool:
                """A transfer may come to nothing, on a busy machine: who wants it asks again."""
                nonlocal asked_s
                if time.monotonic() > asked_s + AGAIN_S:
                    place = {"cluster": wanted}
                    answer = await api(admin, "META.LEADER.STEPDOWN", placement=place)
                    # The server that came back may not lead yet.
                    asked_s = time.monotonic() if "success" in answer else asked_s
                return meta_leader(servers["a1"], 4).startswith(wanted)

            await eventually(there, f"a server of {cluster} leads")
    finally:
        await admin.close()
