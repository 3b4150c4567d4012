"""Three real servers under hostile input on every port, then each is made leader of a stream.

python -m tests.fuzz.leadership --seconds 60

Prints how long each change of leadership took; status 1 if one took longer than `LEAD_S`.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import time
from contextlib import suppress
from urllib.parse import urlsplit

import nats
from nats.aio.client import Client

from jsctl.testing import HOST, Broker, Cluster
from tests.fuzz import requests
from tests.fuzz.live import INFO
from tests.fuzz.mutate import mutated
from tests.fuzz.nodes import Pages, Session
from tests.fuzz.parsers import RouteHandshake, RouteParser
from tests.fuzz.target import SIZE_MAX
from tests.support.waiting import eventually

LEAD_S = 5.0
"""A change of leadership that was asked for takes no longer."""
CONNECTIONS = 8
"""Of hostile peers at a time."""
ANSWER_S = 0.2
ROUTES = re.compile(rf'listen: "{re.escape(HOST)}:(\d+)"')
WORDS = (*Session.words, *RouteParser.words, *RouteHandshake.words, *Pages.words)
STREAM = "LED"


def ports(broker: Broker) -> list[int]:
    """Of clients, of routes, of the monitoring pages."""
    found = ROUTES.search(broker.config)
    assert found is not None, "each server listens for routes"
    return [broker.port, int(found[1]), urlsplit(broker.monitor_url).port or 0]


def hostile(rng: random.Random, kind: int) -> bytes:
    """Bytes for a port of a kind: half of those for clients are requests of the API."""
    if kind == 0 and rng.random() < 0.7:
        subject, _, body = requests.made(rng).partition(b"\n")
        return b"CONNECT {}\r\nSUB r 1\r\nPUB %b r %d\r\n%b\r\nPING\r\n" % (
            subject,
            len(body),
            body,
        )
    if kind == 1:
        seeds = [INFO + data for data in RouteParser().seeds()]
    elif kind == 2:
        seeds = [b"GET %b HTTP/1.1\r\nHost: h\r\n\r\n" % page for page in Pages().seeds()]
    else:
        seeds = list(Session.samples)
    return mutated(rng, rng.choice(seeds), WORDS, SIZE_MAX)


async def attack(cluster: Cluster, seed: int, until_s: float) -> int:
    """One peer after the other; how many there were."""
    rng, count = random.Random(seed), 0
    while time.monotonic() < until_s:
        kind = rng.randrange(3)
        port = ports(rng.choice(list(cluster)))[kind]
        with suppress(OSError, TimeoutError):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(hostile(rng, kind))
            async with asyncio.timeout(ANSWER_S):
                while await reader.read(1 << 16):
                    pass
            writer.close()
        count += 1
    return count


async def ask(client: Client, subject: str, **body: object) -> dict[str, object]:
    """A request of the API."""
    answer = await client.request(f"$JS.API.{subject}", json.dumps(body).encode(), timeout=5)
    found = json.loads(answer.data)
    assert isinstance(found, dict)
    return found


async def lead(client: Client, name: str) -> float:
    """Make a server the stream's leader; how long that took."""
    began = time.monotonic()

    async def leads() -> bool:
        with suppress(nats.errors.Error):
            info = await ask(client, f"STREAM.INFO.{STREAM}")
            cluster = info.get("cluster")
            if isinstance(cluster, dict) and cluster.get("leader") == name:
                return True
            where = {"preferred": name}
            await ask(client, f"STREAM.LEADER.STEPDOWN.{STREAM}", placement=where)
        return False

    await eventually(leads, f"{name} leads", 120)
    return time.monotonic() - began


async def run(seconds: float, seed: int) -> bool:
    """Whether each server could be made leader in time."""
    with Cluster(3) as cluster:
        client = await nats.connect(cluster.urls[0], connect_timeout=10)
        config = {"name": STREAM, "subjects": ["led.>"], "num_replicas": 3}
        made = await ask(client, f"STREAM.CREATE.{STREAM}", **config)
        assert "error" not in made, made
        until_s = time.monotonic() + seconds
        peers = [attack(cluster, seed + one, until_s) for one in range(CONNECTIONS)]
        counts = await asyncio.gather(*peers)
        print(f"{sum(counts):,} hostile peers in {seconds:g} s", flush=True)
        assert all(broker.running for broker in cluster), "a server ended"
        times = [await lead(client, name) for name in (*cluster.names, *cluster.names)]
        print("leaders named after", ", ".join(f"{one:.2f} s" for one in times))
        await client.close()
    return max(times) <= LEAD_S


def main() -> int:
    """Parse the words and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.leadership", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    return 0 if asyncio.run(run(told.seconds, told.seed)) else 1


if __name__ == "__main__":
    sys.exit(main())
