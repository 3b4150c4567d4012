"""Brokers of a super-cluster that are killed, or stand still as a whole cluster, while a stream
of it is published to: what was acknowledged is there, once."""

import asyncio
import json
from itertools import count

import nats
from nats.errors import Error
from nats.js import JetStreamContext

from jsctl.testing import Broker
from tests.support.listeners import WAIT_S
from tests.support.super_clusters import on_the_way, one_jetstream, super_cluster
from tests.support.waiting import eventually

SIZES = {"a": 1, "b": 3}
ACK_S = 1.0
ENOUGH = 200
"""Messages that are acknowledged before and after each fault."""
UNANSWERED = 3
"""Each waits for `ACK_S`."""


class Publishing:
    """Messages that are published until somebody says that it is over."""

    def __init__(self, context: JetStreamContext) -> None:
        self.context = context
        self.acked: dict[int, int] = {}
        """Number -> sequence."""
        self.failed = 0
        self.over = False

    async def run(self) -> None:
        """What is not acknowledged may be stored or not; the next number follows."""
        for number in count():
            if self.over:
                return
            headers = {"Nats-Msg-Id": f"{number}"}
            try:
                ack = await self.context.publish(
                    "S.x", b"%d" % number, timeout=ACK_S, headers=headers
                )
                self.acked[number] = ack.seq
            except (Error, nats.js.errors.Error):
                self.failed += 1

    async def silence(self) -> None:
        """Wait until nothing was acknowledged for a while."""
        goal = self.failed + UNANSWERED

        async def there() -> bool:
            return self.failed >= goal

        await eventually(there, f"{UNANSWERED} more have no answer")

    async def more(self) -> None:
        """Wait until more are acknowledged."""
        goal = len(self.acked) + ENOUGH

        async def there() -> bool:
            return len(self.acked) >= goal

        await eventually(there, f"{ENOUGH} more are acknowledged")


async def suffer(servers: dict[str, Broker], publishing: Publishing) -> None:
    """Twice the server that the gateway leads to just then; then the whole cluster stands still."""
    for _ in range(2):
        await publishing.more()
        name = on_the_way(servers)
        servers[name].kill()
        await publishing.more()
        servers[name].start()
        await asyncio.to_thread(one_jetstream, servers)
    await publishing.more()
    there = [server for name, server in servers.items() if name.startswith("b")]
    for server in there:
        server.pause()
    await publishing.silence()
    for server in there:
        server.resume()
    await publishing.more()
    publishing.over = True


async def stored(context: JetStreamContext) -> dict[int, int]:
    """What is in the stream, each number once: number -> sequence."""
    found: dict[int, int] = {}
    reader = await context.pull_subscribe("S.>", durable="D")
    total = (await context.stream_info("S")).state.messages
    while len(found) < total:
        for message in await reader.fetch(500, timeout=WAIT_S):
            number = int(message.data)
            assert number not in found, "stored twice"
            found[number] = message.metadata.sequence.stream
            await message.ack()
    return found


async def test_nothing_acknowledged_is_lost_and_nothing_is_there_twice() -> None:
    with super_cluster(dict.fromkeys(SIZES, "jsctl"), SIZES, jetstream=True) as servers:
        one_jetstream(servers)
        client = await nats.connect(servers["a1"].url, connect_timeout=WAIT_S)
        body = {"name": "S", "subjects": ["S.>"], "storage": "file", "num_replicas": 3}
        more = {"placement": {"cluster": "b"}}
        said = json.dumps({**body, **more}).encode()
        await client.request("$JS.API.STREAM.CREATE.S", said, timeout=WAIT_S)
        publishing = Publishing(client.jetstream(timeout=WAIT_S))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(publishing.run())
            tasks.create_task(suffer(servers, publishing))
        found = await stored(publishing.context)
        await client.close()
        assert {number: found.get(number) for number in publishing.acked} == publishing.acked
