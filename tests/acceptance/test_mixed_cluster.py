"""A nats-server without JetStream in a cluster of brokers: messages cross in both directions."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error, NoRespondersError
from nats.js.api import StreamConfig

from jsctl.testing import HOST, Broker, Cluster, RealServer, ReservedPort
from tests.support.load import connection
from tests.support.pulling import settled
from tests.support.waiting import eventually, wait_for

WAIT_S = 30.0


class Mixed:
    """Three brokers with JetStream and a nats-server that joins them."""

    def __init__(self) -> None:
        self.cluster = Cluster(3)
        self.port = ReservedPort()
        known = [one.config.partition('listen: "')[2].partition('"')[0] for one in self.cluster]
        routes = ", ".join(f'"nats://{address}"' for address in known)
        config = (
            f'cluster {{ name: "C1", listen: "{HOST}:{self.port.number}", routes: [{routes}] }}\n'
            "accounts { $SYS { users: [ { user: sys, password: sys } ] } }\n"
        )
        self.real = RealServer(config=config, name="real")

    def start(self) -> None:
        self.cluster.start()
        self.real.start()
        self.wait_meshed()

    def wait_meshed(self) -> None:
        """Wait until the nats-server has all its routes to all brokers.

        Each account has one of several to each of them, which come one after the other; until then
        nothing of it is sent there. What brokers listen to in all accounts tells that one is there.
        """

        def meshed() -> bool:
            page = self.real.monitor("/routez")
            assert isinstance(page, dict)
            routes = page["routes"]
            assert isinstance(routes, list)
            found = [route for route in routes if isinstance(route, dict)]
            heard = [one for one in found if one.get("subscriptions") and not one.get("account")]
            return {one["remote_name"] for one in heard} == set(self.cluster.names)

        wait_for(meshed, "routes to all brokers")

    def close(self) -> None:
        self.real.close()
        self.cluster.close()
        self.port.release()


@pytest.fixture(scope="module")
def mixed() -> Iterator[Mixed]:
    made = Mixed()
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture(params=["to nats-server", "to broker"])
async def pair(
    mixed: Mixed, request: pytest.FixtureRequest
) -> AsyncIterator[tuple[Client, Client]]:
    """A client that sends and one that receives, on the two kinds of server."""
    broker: Broker = mixed.cluster["n1"]
    async with connection([mixed.real.url]) as there, connection([broker.url]) as here:
        yield (here, there) if request.param == "to nats-server" else (there, here)


async def reaches(sender: Client, subject: str) -> None:
    """Wait until interest in a subject has crossed the route."""

    async def answered() -> bool:
        try:
            await sender.request(subject, b"ping", timeout=0.5)
        except Error:
            return False
        return True

    await eventually(answered, f"interest in {subject}")


async def test_publish_and_subscribe_with_headers(pair: tuple[Client, Client]) -> None:
    sender, receiver = pair
    seen: list[tuple[str, bytes, dict[str, str] | None]] = []

    async def take(message: Msg) -> None:
        if message.reply:
            await message.respond(b"")
            return
        seen.append((message.subject, message.data, message.headers))

    await receiver.subscribe("news.*", cb=take)
    await reaches(sender, "news.ready")
    for number in range(500):
        await sender.publish("news.a", str(number).encode(), headers={"N": str(number)})

    async def all_here() -> bool:
        return len(seen) >= 500

    await eventually(all_here, "500 messages across the route")
    assert seen == [("news.a", str(n).encode(), {"N": str(n)}) for n in range(500)]


async def test_queue_groups_span_both_kinds(pair: tuple[Client, Client]) -> None:
    sender, receiver = pair
    seen: list[int] = []

    async def take(message: Msg) -> None:
        if message.reply:
            await message.respond(b"")
            return
        seen.append(int(message.data))

    for _ in range(3):
        await receiver.subscribe("jobs", queue="workers", cb=take)
    await reaches(sender, "jobs")
    for number in range(300):
        await sender.publish("jobs", str(number).encode())

    async def all_here() -> bool:
        return len(seen) >= 300

    await eventually(all_here, "300 jobs, each once")
    await settled(sender)
    await settled(receiver)
    assert sorted(seen) == list(range(300))


async def test_requests_and_replies(pair: tuple[Client, Client]) -> None:
    sender, receiver = pair

    async def answer(message: Msg) -> None:
        await message.respond(message.data.upper())

    await receiver.subscribe("upper", cb=answer)
    await reaches(sender, "upper")
    texts = [f"text {n}" for n in range(50)]
    answers = await asyncio.gather(
        *(sender.request("upper", text.encode(), timeout=WAIT_S) for text in texts)
    )
    assert [one.data.decode() for one in answers] == [text.upper() for text in texts]
    with pytest.raises(NoRespondersError):
        await sender.request("nobody.here", b"", timeout=WAIT_S)


async def test_jetstream_is_used_through_the_nats_server(mixed: Mixed) -> None:
    async with connection([mixed.real.url]) as client:
        js = client.jetstream(timeout=WAIT_S)
        for number in range(5):
            name = f"FAR{number}"
            config = StreamConfig(name=name, subjects=[f"{name}.>"], num_replicas=3)
            await js.add_stream(config)
            acks = [await js.publish(f"{name}.a", b"%d" % n, timeout=WAIT_S) for n in range(20)]
            assert [one.seq for one in acks] == list(range(1, 21))
            pull = await js.pull_subscribe(f"{name}.>", durable="d")
            messages = await pull.fetch(20, timeout=WAIT_S)
            assert [int(one.data) for one in messages] == list(range(20))


async def pong(message: Msg) -> None:
    await message.respond(b"pong")


async def test_routes_come_back(mixed: Mixed) -> None:
    """The nats-server restarts; interest on both sides is known again."""
    broker: Broker = mixed.cluster["n2"]
    async with connection([broker.url]) as here, connection([mixed.real.url]) as there:
        await here.subscribe("ping.broker", cb=pong)
        await there.subscribe("ping.real", cb=pong)
        await reaches(here, "ping.real")
        await reaches(there, "ping.broker")
        await asyncio.to_thread(mixed.real.restart, kill=True)
        await asyncio.to_thread(mixed.wait_meshed)
        await reaches(there, "ping.broker")
        await reaches(here, "ping.real")
