"""Faults between clusters: two clusters and a leaf node, as processes, under load.

    python -m tests.faults.topologies [--row NAME] [--pause SECONDS]

The clusters find each other, and the leaf node finds the first one, through proxies only. Clients
publish to a stream of the second cluster from the first one, to a stream of the leaf node's own,
which the second cluster sources, and words that are heard everywhere. After each fault: what was
acknowledged is there, once; what the leaf node stored is sourced, once; no word came twice, to
whoever listens or to a queue group; and words are heard everywhere again two seconds after all is
whole.
"""

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js.api import AckPolicy, ConsumerConfig
from nats.js.errors import APIError

from jsctl.testing import HOST, Broker
from tests.support import gateways
from tests.support.ports import free_port
from tests.support.super_clusters import ACCOUNTS, one_jetstream
from tests.support.waiting import eventually
from tests.support.ways import Way, way

SIZES = {"a": 2, "b": 3}
WAIT_S, ACK_S, INTEREST_S, CATCHES_UP_S = 60.0, 1.0, 2.0, 60.0
ENOUGH = 50
LONG_S = 0.075
CUT_S = 3.0
UNAVAILABLE = 10008
SOURCED = {"name": "EDGE", "external": {"api": "$JS.leaf.API"}}
SYSTEM = 'system_account: "$SYS"\n'


class Publishing:
    """One after the other to a stream; what has no answer may be stored or not."""

    def __init__(self, client: Client, subject: str, domain: str | None = None) -> None:
        self.context = client.jetstream(timeout=WAIT_S, domain=domain)
        self.acked: dict[int, int] = {}
        """Number -> sequence."""
        self.over = False
        self._subject = subject

    async def run(self) -> None:
        """Until it is over."""
        number = 0
        while not self.over:
            number += 1
            said, headers = b"%d" % number, {"Nats-Msg-Id": f"{self._subject}.{number}"}
            try:
                ack = await self.context.publish(
                    self._subject, said, timeout=ACK_S, headers=headers
                )
                self.acked[number] = ack.seq
            except (Error, APIError):
                continue

    async def more(self) -> None:
        """Wait until more are acknowledged."""
        goal = len(self.acked) + ENOUGH

        async def there() -> bool:
            return len(self.acked) >= goal

        await eventually(there, f"{ENOUGH} more of {self._subject} are acknowledged", WAIT_S)


@dataclass
class Stage:
    """All that runs."""

    servers: dict[str, Broker]
    leaf: Broker
    between: list[Way]
    """The ways of gateways."""
    hubs: list[Way]
    """Those from the leaf node."""
    clients: dict[str, Client]
    far: Publishing
    edge: Publishing
    heard: dict[str, Counter[bytes]] = field(default_factory=dict)
    words: int = 0

    async def listen(self) -> None:
        """Everywhere, to each word, and to those for a queue group."""
        self.heard = {name: Counter() for name in ("a", "b", "leaf", "group")}

        def into(name: str) -> Callable[[Msg], Awaitable[None]]:
            async def take(message: Msg) -> None:
                self.heard[name][message.data] += 1

            return take

        for name, client in self.clients.items():
            await client.subscribe("word", cb=into(name))
            await client.subscribe("group", "q", cb=into("group"))
            await client.flush()

    async def is_whole(self) -> float:
        """How long it took until words are heard everywhere; each came once."""
        clock = asyncio.get_running_loop().time
        begun = clock()
        while True:
            self.words += 1
            said = b"%d" % self.words
            await self.clients["a"].publish("word", said)
            await self.clients["a"].publish("group", said)

            async def all_heard(said: bytes = said) -> bool:
                return all(said in found for found in self.heard.values())

            try:
                await eventually(all_heard, f"{said!r} is heard everywhere", 0.3)
                break
            except AssertionError:
                assert clock() - begun < WAIT_S, {
                    name: len(one) for name, one in self.heard.items()
                }
        assert all(max(one.values()) == 1 for one in self.heard.values()), "a word came twice"
        return clock() - begun

    async def stored(self, name: str, publishing: Publishing, *, sourced: bool = False) -> int:
        """What was acknowledged is in a stream, once; how many messages there are."""
        context = self.clients["b"].jetstream(timeout=WAIT_S)
        # Nothing is delivered again, however long this takes.
        told_once = ConsumerConfig(ack_policy=AckPolicy.NONE)
        subject = ">" if sourced else "S.>"
        reader = await context.pull_subscribe(stream=name, subject=subject, config=told_once)
        found: dict[int, int] = {}
        wanted = dict(publishing.acked)
        end = asyncio.get_running_loop().time() + CATCHES_UP_S
        while not wanted.keys() <= found.keys():
            assert asyncio.get_running_loop().time() < end, f"{name}: {len(found)}/{len(wanted)}"
            try:
                messages = await reader.fetch(500, timeout=ACK_S)
            except Error:
                continue
            for message in messages:
                number = int(message.data)
                assert number not in found, f"{name} has {number} twice"
                found[number] = message.metadata.sequence.stream
        if not sourced:
            assert {number: found[number] for number in wanted} == wanted
        await reader.unsubscribe()
        return len(found)


async def kill_each(stage: Stage, _: float) -> None:
    """Each server in turn, the leaf node too."""
    for server in (*stage.servers.values(), stage.leaf):
        server.kill()
        await (stage.far if server is stage.leaf else stage.edge).more()
        await asyncio.to_thread(server.start)
        await stage.far.more()
        await asyncio.to_thread(one_jetstream, stage.servers)


async def cut(stage: Stage, _: float) -> None:
    """Nothing passes between the clusters for a while."""
    for one in stage.between:
        one.stall(True)
    await asyncio.wait_for(stage.edge.more(), WAIT_S)
    await passed(CUT_S)
    for one in stage.between:
        one.stall(False)
    await stage.far.more()


async def broken(stage: Stage, _: float) -> None:
    """All connections between clusters, and to the leaf node, again and again."""
    for _round in range(5):
        for one in (*stage.between, *stage.hubs):
            one.reset()
        await stage.far.more()


async def slow(stage: Stage, _: float) -> None:
    """The other cluster is far away: nobody needs another leader."""
    before = await leader_of(stage)
    for one in stage.between:
        one.lengthen(LONG_S)
    for _round in range(3):
        await stage.far.more()
    assert await leader_of(stage) == before
    for one in stage.between:
        one.lengthen(0.0)


async def paused(stage: Stage, pause_s: float) -> None:
    """Each cluster as a whole stands still."""
    for cluster in SIZES:
        still = [one for name, one in stage.servers.items() if name.startswith(cluster)]
        for server in still:
            server.pause()
        await passed(pause_s)
        for server in still:
            server.resume()
        await stage.far.more()


async def leaf_cut(stage: Stage, _: float) -> None:
    """The leaf node works on by itself, and what it stored meanwhile is caught up with."""
    for one in stage.hubs:
        one.stall(True)
    await stage.edge.more()
    await passed(CUT_S)
    for one in stage.hubs:
        one.reset()
        one.stall(False)
    await stage.far.more()


async def passed(seconds: float) -> None:
    """So long nothing else is done to them."""
    clock = asyncio.get_running_loop().time
    end = clock() + seconds

    async def over() -> bool:
        return clock() >= end

    await eventually(over, "time passes", seconds + WAIT_S)


async def leader_of(stage: Stage) -> str:
    """That of the stream that is published to from the other cluster."""

    async def told() -> str:
        try:
            info = await stage.far.context.stream_info("S")
        except (Error, APIError):
            return ""
        return str(info.cluster and info.cluster.leader)

    return await eventually(told, "the stream has a leader", WAIT_S)


ROWS: dict[str, Callable[[Stage, float], Awaitable[None]]] = {
    "kill each": kill_each,
    "cut": cut,
    "broken": broken,
    "slow": slow,
    "paused": paused,
    "leaf cut": leaf_cut,
}


async def staged(stack: AsyncExitStack) -> Stage:
    """Start everything."""
    names = {cluster: [f"{cluster}{n + 1}" for n in range(size)] for cluster, size in SIZES.items()}
    every = [name for several in names.values() for name in several]
    doors = {name: free_port() for name in every}
    near = {name: free_port() for name in every}
    hung = {name: free_port() for name in names["a"]}
    ways = {name: await stack.enter_async_context(way(doors[name])) for name in every}
    remotes = [
        gateways.remote(cluster, *(ways[name].door for name in several))
        for cluster, several in names.items()
    ]
    servers: dict[str, Broker] = {}
    for cluster, several in names.items():
        routes = ", ".join(f'"nats://{HOST}:{near[name]}"' for name in several)
        for name in several:
            told = f'advertise: "{HOST}:{ways[name].door}"'
            listen = f'listen: "{HOST}:{near[name]}"'
            config = f"cluster {{ name: {cluster}, {listen}, routes: [{routes}] }}\n"
            config += gateways.block(cluster, *remotes, port=doors[name], more=told)
            if cluster == "a":
                # The same port after a restart: the way there does not change.
                config += f'leafnodes {{ listen: "{HOST}:{hung[name]}", no_advertise: true }}\n'
            config += "jetstream { domain: hub }\n" + SYSTEM + ACCOUNTS
            servers[name] = Broker(config=config, name=name)
            await asyncio.to_thread(servers[name].start)
            stack.callback(servers[name].close)
    await asyncio.to_thread(one_jetstream, servers)
    hubs = [await stack.enter_async_context(way(port)) for port in hung.values()]
    urls = ", ".join(f'"nats://app:p@{HOST}:{one.door}"' for one in hubs)
    config = (
        f'leafnodes {{ reconnect: "100ms", remotes: [ {{ urls: [{urls}], account: APP }} ] }}\n'
    )
    leaf = Broker(config=config + "jetstream { domain: leaf }\n" + SYSTEM + ACCOUNTS, name="leaf")
    await asyncio.to_thread(leaf.start)
    stack.callback(leaf.close)
    clients = {}
    for place, urls_ in (
        ("a", [servers[name].url for name in names["a"]]),
        ("b", [servers[name].url for name in names["b"]]),
        ("leaf", [leaf.url]),
    ):
        clients[place] = await nats.connect(
            urls_, connect_timeout=WAIT_S, reconnect_time_wait=0.1, max_reconnect_attempts=-1
        )
        stack.push_async_callback(clients[place].close)
    far, edge = Publishing(clients["a"], "S.x"), Publishing(clients["leaf"], "EDGE.x", "leaf")
    await made(clients["a"], "S", subjects=["S.>"], num_replicas=3, placement={"cluster": "b"})
    await made(clients["leaf"], "EDGE", subjects=["EDGE.>"])
    await made(clients["a"], "COPY", sources=[SOURCED], num_replicas=3, placement={"cluster": "b"})
    return Stage(servers, leaf, list(ways.values()), hubs, clients, far, edge)


async def made(client: Client, name: str, **config: object) -> None:
    """Have a stream; who is told that nobody answers just now asks again."""
    said = json.dumps({"name": name, "storage": "file", **config}).encode()

    async def there() -> bool:
        answer = await client.request(f"$JS.API.STREAM.CREATE.{name}", said, timeout=WAIT_S)
        error = json.loads(answer.data).get("error")
        assert error is None or error["err_code"] == UNAVAILABLE, answer.data
        return error is None

    await eventually(there, f"{name} is made", WAIT_S)


async def play(name: str, pause_s: float) -> str:
    """One row; what came of it. Raises AssertionError, or a group of them."""
    async with AsyncExitStack() as stack:
        stage = await staged(stack)
        await stage.listen()
        await stage.is_whole()
        async with asyncio.TaskGroup() as tasks:
            for one in (stage.far, stage.edge):
                tasks.create_task(one.run())
            await stage.far.more()
            await stage.edge.more()
            await ROWS[name](stage, pause_s)
            took_s = await stage.is_whole()
            stage.far.over = stage.edge.over = True
        await asyncio.to_thread(one_jetstream, stage.servers)
        there = await stage.stored("S", stage.far)
        copied = await stage.stored("COPY", stage.edge, sourced=True)
        assert took_s <= INTEREST_S, f"interest is wrong for {took_s:.1f} s"
        counts = f"{len(stage.far.acked)} of {there}, {len(stage.edge.acked)} of {copied}"
        return f"ok: {counts}, {took_s:.2f} s"


def main() -> int:
    """Run rows; status 1 if one does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", action="append", choices=list(ROWS), help="all if not given")
    parser.add_argument("--pause", type=float, default=60.0, help="how long a cluster stands still")
    words = parser.parse_args()
    failed = 0
    for name in words.row or ROWS:
        try:
            told = asyncio.run(play(name, words.pause))
        except (AssertionError, ExceptionGroup) as error:
            failed += 1
            why = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
            told = f"FAILED: {why!r}"
        print(f"{name:12} {told}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
