"""Imports between accounts whose clients are on different servers, of the same kind or not."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError, TimeoutError

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.waiting import eventually, wait_for

WAIT_S = 30
ACCOUNTS = """
accounts {
  A {
    users: [{user: a, password: p}]
    exports: [{stream: "s.>"}, {stream: "t.*.*"}, {service: "svc"}, {service: "many"
               response_type: stream}]
  }
  B {
    users: [{user: b, password: p}]
    imports: [
      {stream: {account: A, subject: "s.>"}, prefix: "from"}
      {stream: {account: A, subject: "t.*.*"}, to: "u.$2.$1"}
      {service: {account: A, subject: "svc"}, to: "help"}
      {service: {account: A, subject: "many"}}
    ]
    exports: [{stream: "from.s.>"}]
  }
  C {
    users: [{user: c, password: p}]
    imports: [{stream: {account: B, subject: "from.s.>"}}]
  }
}
"""
ROUTES = ("--cluster_name", "C", "--cluster", "nats://127.0.0.1:-1")
PAIRS = [(one, other) for one in KINDS for other in KINDS]


@pytest.fixture(scope="module", params=PAIRS, ids=["-".join(one) for one in PAIRS])
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[Broker, Broker]]:
    """Two routed servers."""
    first, second = request.param
    with ExitStack() as stack:
        s1 = stack.enter_context(KINDS[first](*ROUTES, config=ACCOUNTS, name="s1"))
        text = r"route connections on \S+:(\d+)"
        (port,) = wait_for(lambda: re.findall(text, s1.logs), "the port of routes")
        route = ("--routes", f"nats://127.0.0.1:{port}")
        s2 = stack.enter_context(KINDS[second](*ROUTES, *route, config=ACCOUNTS, name="s2"))
        yield s1, s2


@dataclass(slots=True)
class Scene:
    """Clients by server and account, `a1` to `c2`; what was heard, by the subscription's name."""

    clients: dict[str, Client]
    heard: dict[str, list[tuple[str, bytes]]] = field(default_factory=dict)

    async def listen(self, client: str, subject: str, queue: str = "") -> str:
        """The name of a subscription that notes what it hears."""
        name = f"{client} {subject} {len(self.heard)}"
        heard = self.heard[name] = []

        async def note(message: Msg) -> None:
            heard.append((message.subject, message.data))

        await self.clients[client].subscribe(subject, queue=queue, cb=note)
        await self.clients[client].flush()
        return name

    async def known(self, client: str, subject: str) -> None:
        """Publish until all who listen have heard something, and wait for the last of it."""
        number = 0

        async def arrives() -> bool:
            nonlocal number
            number += 1
            await self.clients[client].publish(subject, b"early")
            await self.settle()
            return all(self.heard.values())

        await eventually(arrives, f"interest in {subject} is known")
        counts: list[int] = []

        async def quiet() -> bool:
            nonlocal counts
            await self.settle()
            before, counts = counts, [len(one) for one in self.heard.values()]
            return min(counts) >= number or before == counts

        await eventually(quiet, "the last of the early messages")
        for heard in self.heard.values():
            heard.clear()

    async def settle(self) -> None:
        """What all clients have sent until now is on its way."""
        for _ in range(2):
            for one in self.clients.values():
                await one.flush()


@pytest.fixture
async def scene(servers: tuple[Broker, Broker]) -> AsyncIterator[Scene]:
    """A client of each account on each server."""
    async with AsyncExitStack() as stack:
        clients = {}
        for number, server in enumerate(servers, 1):
            for user in "abc":
                made = await nats.connect(server.url, user=user, password="p", connect_timeout=30)
                stack.push_async_callback(made.close)
                clients[f"{user}{number}"] = made
        yield Scene(clients)


both_ways = pytest.mark.parametrize(("publisher", "away"), [("a1", "2"), ("a2", "1")])


async def through(scene: Scene, publisher: str, subject: str, count: int = 20) -> None:
    """Some messages, and then all of them at their destinations, and nothing behind them."""
    client = scene.clients[publisher]
    for number in range(count):
        await client.publish(subject, b"%d" % number)

    async def all_there() -> bool:
        await scene.settle()
        return all(len(one) >= count for one in scene.heard.values())

    await eventually(all_there, "all messages")
    await scene.settle()


@both_ways
@pytest.mark.parametrize(
    ("published", "pattern", "seen"),
    [
        ("s.x", "from.s.x", "from.s.x"),
        ("s.y", "from.s.*", "from.s.y"),
        ("s.z", "from.>", "from.s.z"),
        ("s.w", ">", "from.s.w"),
        ("t.1.2", "u.2.*", "u.2.1"),
        ("t.1.3", "u.*.1", "u.3.1"),
    ],
)
async def test_each_listener_gets_it_once(
    scene: Scene, publisher: str, away: str, published: str, pattern: str, seen: str
) -> None:
    for server in "12":
        await scene.listen(f"b{server}", pattern)
        await scene.listen(f"a{server}", published)
    await scene.known(publisher, published)
    await through(scene, publisher, published)
    for name, heard in scene.heard.items():
        subject = published if name[0] == "a" else seen
        assert heard == [(subject, b"%d" % number) for number in range(20)], name


@both_ways
async def test_an_import_is_not_exported_again(scene: Scene, publisher: str, away: str) -> None:
    await scene.listen(f"b{away}", "from.s.again")
    await scene.known(publisher, "s.again")
    heard = {name: await scene.listen(name, ">") for name in ("c1", "c2")}
    for name in heard.values():
        scene.heard.pop(name)
    await through(scene, publisher, "s.again")
    assert not any(scene.heard.get(name) for name in heard.values())


@both_ways
@pytest.mark.parametrize("members", [("b2", "b2"), ("b1", "b2"), ("b1", "a2"), ("a1", "b2", "a2")])
async def test_one_of_a_queue_group_gets_it(
    scene: Scene, publisher: str, away: str, members: tuple[str, ...]
) -> None:
    if away == "1":
        members = tuple(one[0] + "21"[int(one[1]) - 1] for one in members)
    for one in members:
        await scene.listen(one, "from.s.q" if one[0] == "b" else "s.q", "g")
    await scene.known(publisher, "s.q")
    for number in range(100):
        await scene.clients[publisher].publish("s.q", b"%d" % number)

    async def all_there() -> bool:
        await scene.settle()
        return sum(map(len, scene.heard.values())) >= 100

    await eventually(all_there, "all messages")
    await scene.settle()
    found = [int(data) for heard in scene.heard.values() for _, data in heard]
    assert sorted(found) == list(range(100))


@both_ways
async def test_interest_ends_with_its_subscription(scene: Scene, publisher: str, away: str) -> None:
    client, asking = scene.clients[f"b{away}"], scene.clients[publisher]

    async def answered() -> bool:
        with suppress(TimeoutError):
            await asking.request("s.gone", b"", 0.2)
        return False

    async def nobody() -> bool:
        try:
            await answered()
        except NoRespondersError:
            return True
        return False

    await eventually(nobody, "nobody listens")
    subscription = await client.subscribe("from.s.gone")
    await client.flush()

    async def somebody() -> bool:
        return not await nobody()

    await eventually(somebody, "somebody listens")
    await subscription.unsubscribe()
    await client.flush()
    await eventually(nobody, "nobody listens any more")


async def served(scene: Scene, client: str, subject: str, answers: int, queue: str = "") -> None:
    """A service that tells what it was told of who asks."""

    async def serve(message: Msg) -> None:
        info = json.loads((message.headers or {}).get("Nats-Request-Info", "{}"))
        for _ in range(answers):
            await message.respond(json.dumps([message.subject, info.get("acc")]).encode())

    await scene.clients[client].subscribe(subject, queue=queue, cb=serve)
    await scene.clients[client].flush()


async def asked(client: Client, subject: str) -> bytes:
    """The first answer, as soon as the service is known."""
    async with asyncio.timeout(WAIT_S):
        while True:
            with suppress(NoRespondersError):
                return (await client.request(subject, b"q", WAIT_S)).data


@pytest.mark.parametrize(("asking", "serving"), [("b1", "a2"), ("b2", "a1")])
@pytest.mark.parametrize("queue", ["", "workers"])
async def test_requests_are_answered_once_from_the_other_server(
    scene: Scene, asking: str, serving: str, queue: str
) -> None:
    await served(scene, serving, "svc", 1, queue)
    client = scene.clients[asking]
    assert json.loads(await asked(client, "help")) == ["svc", "B"]
    inbox = await scene.listen(asking, "in.box")
    for _ in range(20):
        await client.publish("help", b"q", reply="in.box")

    async def all_there() -> bool:
        await scene.settle()
        return len(scene.heard[inbox]) >= 20

    await eventually(all_there, "all answers")
    await scene.settle()
    assert scene.heard[inbox] == [("in.box", b'["svc", "B"]')] * 20


@pytest.mark.parametrize(("asking", "serving"), [("b1", "a2"), ("b2", "a1")])
async def test_a_stream_of_answers_is_led_back(scene: Scene, asking: str, serving: str) -> None:
    await served(scene, serving, "many", 5)
    await asked(scene.clients[asking], "many")
    inbox = await scene.listen(asking, "in.many")
    await scene.clients[asking].publish("many", b"q", reply="in.many")

    async def all_there() -> bool:
        await scene.settle()
        return len(scene.heard[inbox]) >= 5

    await eventually(all_there, "all answers")
    await scene.settle()
    assert len(scene.heard[inbox]) == 5


@pytest.mark.parametrize(("asking", "serving", "hearing"), [("b1", "a2", "b2"), ("b2", "a1", "b1")])
@pytest.mark.parametrize("queue", ["", "hearers"])
async def test_who_hears_the_answer_may_be_on_another_server_than_who_asks(
    scene: Scene, asking: str, serving: str, hearing: str, queue: str
) -> None:
    await served(scene, serving, "svc", 1)
    client = scene.clients[asking]
    await asked(client, "help")
    inbox = await scene.listen(hearing, "in.other", queue)
    await scene.known(asking, "in.other")
    for _ in range(20):
        await client.publish("help", b"q", reply="in.other")

    async def all_there() -> bool:
        await scene.settle()
        return len(scene.heard[inbox]) >= 20

    await eventually(all_there, "all answers")
    await scene.settle()
    assert len(scene.heard[inbox]) == 20
