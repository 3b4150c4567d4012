"""Brokers are killed under load: mirrors and sources have each acknowledged message once."""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import nats
from nats.aio.client import Client
from nats.errors import Error

from jsctl.testing import Broker, Cluster, ClusterFactory
from tests.support.load import connection
from tests.support.waiting import eventually

DEADLINE_S = 60
PAGE = 500
KILLS_ALONE = 4


@dataclass
class Load:
    """Publishes numbers, each until it is acknowledged; some are stored more than once."""

    client: Client
    running: bool = True
    acknowledged: list[int] = field(default_factory=list)

    async def run(self) -> None:
        number = 0
        while self.running:
            some = range(number, number + 20)
            number += 20
            for one in await asyncio.gather(*map(self._publish, some)):
                self.acknowledged += [] if one is None else [one]

    async def _publish(self, number: int) -> int | None:
        try:
            answer = await self.client.request(f"o.{number % 7}", b"%d" % number, timeout=2)
        except (Error, TimeoutError):
            return None
        body = json.loads(answer.data)
        return None if "error" in body else int(body["seq"])


async def ask(client: Client, subject: str, **fields: object) -> Any:
    """The answer; who asks a leader that changes meanwhile may have to ask again."""

    async def answered() -> Any:
        try:
            answer = await client.request(
                f"$JS.API.{subject}", json.dumps(fields).encode(), timeout=3
            )
        except (Error, TimeoutError):
            return None
        body = json.loads(answer.data)
        return None if body.get("error", {}).get("code") == 503 else body

    return await eventually(answered, f"an answer to {subject}", DEADLINE_S)


async def create(client: Client, replicas: int) -> None:
    """An origin, a mirror of it, and a stream that sources it twice."""
    for name, more in (
        ("O", {"subjects": ["o.>"], "allow_direct": True}),
        ("M", {"mirror": {"name": "O"}, "allow_direct": True}),
        (
            "S",
            {
                "sources": [
                    {"name": "O", "filter_subject": "o.1"},
                    {"name": "O", "subject_transforms": [{"src": "o.2", "dest": "two"}]},
                ],
                "allow_direct": True,
            },
        ),
    ):
        config = {"name": name, "num_replicas": replicas, "storage": "file", **more}
        assert "error" not in await ask(client, f"STREAM.CREATE.{name}", **config)


async def messages(client: Client, name: str) -> list[tuple[int, str, bytes, str]]:
    """(sequence, subject, payload, source) of all messages of a stream."""
    found: list[tuple[int, str, bytes, str]] = []
    last = (await ask(client, f"STREAM.INFO.{name}"))["state"]["last_seq"]
    inbox = client.new_inbox()
    listening = await client.subscribe(inbox)
    seq = 1
    while seq <= last:
        body = json.dumps({"seq": seq, "batch": PAGE}).encode()
        await client.publish(f"$JS.API.DIRECT.GET.{name}", body, reply=inbox)
        while True:
            one = await listening.next_msg(timeout=DEADLINE_S)
            assert one.headers is not None
            if "Nats-Sequence" not in one.headers:
                break
            head = one.headers
            row = int(head["Nats-Sequence"]), head["Nats-Subject"], one.data
            found.append((*row, head.get("Nats-Stream-Source", "")))
            seq = row[0] + 1
        if found and found[-1][0] < seq - 1:
            break
    await listening.unsubscribe()
    return found


async def check(client: Client, load: Load) -> None:
    """All is there, once, as it is at the origin."""
    origin = await messages(client, "O")
    stored = {row[0] for row in origin}
    assert stored.issuperset(load.acknowledged), "what was acknowledged is stored"
    wanted = {"o.1": 0, "o.2": 0} | Counter(row[1] for row in origin)

    async def caught_up() -> bool:
        mirror = (await ask(client, "STREAM.INFO.M"))["state"]["last_seq"]
        copy = (await ask(client, "STREAM.INFO.S"))["state"]["messages"]
        return bool(mirror >= origin[-1][0] and copy >= wanted["o.1"] + wanted["o.2"])

    await eventually(caught_up, "mirror and source have caught up", DEADLINE_S)
    assert await messages(client, "M") == origin
    copies = await messages(client, "S")
    for subject, stored_as in (("o.1", "o.1"), ("o.2", "two")):
        taken = [int(row[3].split(" ")[1]) for row in copies if row[1] == stored_as]
        assert taken == [row[0] for row in origin if row[1] == subject]


async def loaded(client: Client, load: Load, more: int) -> None:
    """Wait until so many more publishes are acknowledged."""
    before = len(load.acknowledged)

    async def there() -> bool:
        return len(load.acknowledged) >= before + more

    await eventually(there, f"{more} publishes are acknowledged", DEADLINE_S)


async def kill_leaders(cluster: Cluster) -> None:
    async with connection(cluster.urls) as client:
        await create(client, 3)
        load = Load(client)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(load.run())
            for name in ("S", "O", "M"):
                await loaded(client, load, 200)
                leader = (await ask(client, f"STREAM.INFO.{name}"))["cluster"]["leader"]
                cluster.kill(leader)
                await loaded(client, load, 200)
                await asyncio.to_thread(cluster.restart, leader)
            load.running = False
        await check(client, load)


def test_three_replicas_when_leaders_are_killed(jsctl_cluster: ClusterFactory) -> None:
    asyncio.run(kill_leaders(jsctl_cluster(3)))


async def kill_alone(broker: Broker) -> None:
    made = await nats.connect(
        broker.url, max_reconnect_attempts=-1, reconnect_time_wait=0.1, connect_timeout=DEADLINE_S
    )
    try:
        await create(made, 1)
        load = Load(made)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(load.run())
            for _ in range(KILLS_ALONE):
                await loaded(made, load, 300)
                await asyncio.to_thread(broker.restart, kill=True)
            await loaded(made, load, 100)
            load.running = False
        await check(made, load)
    finally:
        await made.close()


def test_one_server_that_is_killed_again_and_again() -> None:
    with Broker("-js", name="one") as broker:
        asyncio.run(kill_alone(broker))
