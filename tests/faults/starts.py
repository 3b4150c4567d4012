"""Servers of both kinds that come all at once: whether they find each other.

    python -m tests.faults.starts [--from SEED] [--runs COUNT] [--at-once COUNT] [--keep DIR]

Each seed draws clusters of brokers and nats-servers and some leaf nodes, who names whom in its
configuration (the rest is heard of), and when each process begins. What is to come of it: routes
with whole pools and one for the system account between any two servers of a cluster, each server
with a connection to each other cluster and heard by it, leaf nodes on their hubs, and a word of
each server to each other one, once.
"""

import argparse
import asyncio
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from jsctl.testing import HOST, Broker, RealServer
from tests.faults.topologies import passed
from tests.support.gateways import block, page, remote
from tests.support.ports import free_port
from tests.support.waiting import eventually

KINDS: tuple[type[Broker], type[Broker]] = (Broker, RealServer)
SIZES = ((2, 2), (3, 1), (1, 3), (2, 1, 1), (1, 1, 1), (3, 2), (2, 2, 1), (4,), (3,))
LINKS = 4
"""Between two servers of a cluster: three for all accounts, and that of the system account."""
READY_S, WHOLE_S, HEARD_S, AGAIN_S = 60.0, 60.0, 30.0, 0.2
APART_S = 0.4
SYSTEM = 'accounts { $SYS: { users: [ {user: admin, password: p} ] } }\nsystem_account: "$SYS"\n'


@dataclass
class Start:
    """What is drawn."""

    seed: int
    servers: dict[str, Broker] = field(default_factory=dict)
    """Also the leaf nodes."""
    clusters: dict[str, list[str]] = field(default_factory=dict)
    hubs: dict[str, str] = field(default_factory=dict)
    """Leaf node -> cluster."""
    begins: dict[str, float] = field(default_factory=dict)

    @staticmethod
    def of(seed: int) -> "Start":
        """The one that a seed names."""
        made, chance = Start(seed), random.Random(seed)
        sizes = chance.choice(SIZES)
        made.clusters = {
            name: [f"{name}{n + 1}" for n in range(size)]
            for name, size in zip("abc", sizes, strict=False)
        }
        every = [name for several in made.clusters.values() for name in several]
        doors, leafs = ({name: free_port() for name in every} for _ in range(2))
        named_by_first = chance.random() < 0.3
        for cluster in made.clusters:
            gates = ""
            if len(sizes) > 1:
                known = made._known(cluster, doors, chance, named_by_first=named_by_first)
                gates = block(cluster, *known, port=0)
            made._draw_cluster(cluster, gates, doors, leafs, chance)
        for name in ("x", "y")[: chance.randint(0, 2)]:
            cluster = made.hubs[name] = chance.choice(list(made.clusters))
            urls = ", ".join(f'"nats://{HOST}:{leafs[one]}"' for one in made.clusters[cluster])
            config = f'leafnodes {{ reconnect: "100ms", remotes: [ {{ urls: [{urls}] }} ] }}\n'
            made.servers[name] = chance.choice(KINDS)(config=config + SYSTEM, name=name)
        apart_s = chance.choice((0.0, APART_S))
        made.begins = {name: chance.random() * apart_s for name in made.servers}
        return made

    def _known(
        self, cluster: str, doors: dict[str, int], chance: random.Random, *, named_by_first: bool
    ) -> list[str]:
        """The clusters that one names: others name the first one, which may name all."""
        return [
            remote(other, *(doors[name] for name in them[: chance.randint(1, len(them))]))
            for other, them in self.clusters.items()
            if (cluster == "a" and named_by_first) or (cluster != "a" and other == "a")
        ]

    def _draw_cluster(
        self,
        cluster: str,
        gates: str,
        doors: dict[str, int],
        leafs: dict[str, int],
        chance: random.Random,
    ) -> None:
        several = self.clusters[cluster]
        near = {name: free_port() for name in several}
        named = several if chance.random() < 0.5 else several[:1]
        routes = ", ".join(f'"nats://{HOST}:{near[name]}"' for name in named)
        for name in several:
            config = f'cluster {{ name: {cluster}, listen: "{HOST}:{near[name]}",'
            config += f" routes: [{routes}] }}\n"
            config += gates.replace(f'"{HOST}:0"', f'"{HOST}:{doors[name]}"')
            config += f'leafnodes {{ listen: "{HOST}:{leafs[name]}" }}\n'
            self.servers[name] = chance.choice(KINDS)(config=config + SYSTEM, name=name)

    def __str__(self) -> str:
        kinds = {name: type(one).__name__[0] for name, one in self.servers.items()}
        said = ", ".join(f"{name} {kinds[name]} {self.begins[name]:.2f}" for name in self.servers)
        return f"{self.seed}: {said}; {self.hubs}"

    async def begin(self) -> None:
        """Start all processes."""

        async def one(name: str) -> None:
            await passed(self.begins[name])
            await asyncio.to_thread(self.servers[name].launch)

        async with asyncio.TaskGroup() as tasks:
            for name in self.servers:
                tasks.create_task(one(name))
        for server in self.servers.values():
            await asyncio.to_thread(server.wait_ready, READY_S)

    def close(self) -> None:
        """End them."""
        for server in self.servers.values():
            server.close()

    # ---- links

    def missing(self) -> list[str]:
        """The links that are not there."""
        return [text for name in self.servers for text in self._missing_at(name)] + [
            text for cluster in self.clusters for text in self._unheard(cluster)
        ]

    def _missing_at(self, name: str) -> Iterator[str]:
        server, cluster = self.servers[name], self.hubs.get(name, name[:-1])
        if name in self.hubs:
            hubs = page(server, "/leafz")["leafs"]
            if len(hubs) != 1:
                yield f"{name} has {len(hubs)} hubs"
            return
        routes = Counter(row["remote_name"] for row in page(server, "/routez")["routes"])
        for other in self.clusters[cluster]:
            if other != name and routes[other] != LINKS:
                yield f"{name} has {routes[other]} routes to {other}"
        there = page(server, "/gatewayz").get("outbound_gateways") or {}
        yield from (
            f"{name} is not connected to {other}"
            for other in self.clusters
            if other not in (cluster, *there)
        )

    def _unheard(self, cluster: str) -> Iterator[str]:
        """Servers of other clusters that none of this one has a connection of."""
        found: Counter[str] = Counter()
        leafs = 0
        for name in self.clusters[cluster]:
            rows = page(self.servers[name], "/gatewayz").get("inbound_gateways") or {}
            found.update(row["connection"]["name"] for several in rows.values() for row in several)
            leafs += len(page(self.servers[name], "/leafz")["leafs"])
        ids = {page(self.servers[n], "/varz")["server_id"]: n for n in self.servers}
        heard = Counter(ids.get(one, one) for one in found.elements())
        wanted = Counter(
            name for other, several in self.clusters.items() if other != cluster for name in several
        )
        if heard != wanted:
            yield f"{cluster} has connections of {dict(heard)}"
        if leafs != list(self.hubs.values()).count(cluster):
            yield f"{cluster} has {leafs} leaf nodes"

    async def whole(self) -> None:
        """Wait until all links are there."""
        last: list[str] = []

        async def fact() -> bool:
            last[:] = await asyncio.to_thread(self.missing)
            return not last

        try:
            await eventually(fact, "all links are there", WHOLE_S)
        except AssertionError:
            raise AssertionError("; ".join(last)) from None

    # ---- words

    async def words(self) -> None:
        """Each server hears each other one, and then each word once."""
        async with AsyncExitStack() as stack:
            clients, heard = {}, {name: Counter[bytes]() for name in self.servers}
            for name, server in self.servers.items():
                clients[name] = await nats.connect(server.url, connect_timeout=HEARD_S)
                stack.push_async_callback(clients[name].close)
                await clients[name].subscribe(f"to.{name}", cb=_into(heard[name]))
                await clients[name].flush()
            await self._said(clients, heard, "first", again=True)
            await self._said(clients, heard, "once", again=False)
            twice = {name: one for name, one in heard.items() if max(one.values()) > 1}
            assert not twice, f"heard more than once: {twice}"

    async def _said(
        self, clients: dict[str, Client], heard: dict[str, Counter[bytes]], what: str, again: bool
    ) -> None:
        count = 0

        def unheard() -> list[str]:
            return [
                f"{name} by {other}"
                for name in clients
                for other in clients
                if not any(word.startswith(f"{what} {name} ".encode()) for word in heard[other])
            ]

        async def fact() -> bool:
            nonlocal count
            if again or not count:
                count += 1
                for name, client in clients.items():
                    for other in clients:
                        if f"{name} by {other}" in unheard():
                            await client.publish(f"to.{other}", f"{what} {name} {count}".encode())
            try:
                await eventually(_as_fact(lambda: not unheard()), "heard", AGAIN_S)
            except AssertionError:
                return False
            return True

        try:
            await eventually(fact, "all are heard", HEARD_S)
        except AssertionError:
            raise AssertionError(f"{what}: not heard: {', '.join(unheard())}") from None


def _into(heard: Counter[bytes]) -> Callable[[Msg], Any]:
    async def take(message: Msg) -> None:
        heard[message.data] += 1

    return take


def _as_fact(fact: Callable[[], bool]) -> Callable[[], Any]:
    async def said() -> bool:
        return fact()

    return said


async def play(seed: int, keep: Path | None = None) -> str:
    """Start, look, end; what is wrong, or nothing. Of what is, the logs are kept."""
    made = Start.of(seed)
    try:
        await made.begin()
        await made.whole()
        await made.words()
    except AssertionError as error:
        if "address already in use" in str(error):
            return await play(seed, keep)  # Somebody else has taken the port meanwhile.
        for name, server in made.servers.items() if keep is not None else ():
            assert keep is not None
            (keep / f"{seed}.{name}.log").write_text(f"{server.config}\n{server.logs}")
        return f"{made}\n    FAILED: {error}"
    finally:
        await asyncio.to_thread(made.close)
    return ""


async def run(first: int, runs: int, at_once: int, keep: Path | None) -> int:
    """So many starts; how many of them failed."""
    seeds = iter(range(first, first + runs))
    failed = 0

    async def several() -> None:
        nonlocal failed
        for seed in seeds:
            told = await play(seed, keep)
            if told:
                failed += 1
                print(told, flush=True)

    await asyncio.gather(*(several() for _ in range(at_once)))
    print(f"{runs} starts, {failed} failed", flush=True)
    return failed


def main() -> int:
    """Status 1 if one does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="first", type=int, default=1)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--at-once", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="logs of starts that fail go there")
    words = parser.parse_args()
    if words.keep is not None:
        words.keep.mkdir(parents=True, exist_ok=True)
    return int(asyncio.run(run(words.first, words.runs, words.at_once, words.keep)) > 0)


if __name__ == "__main__":
    sys.exit(main())
