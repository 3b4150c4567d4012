"""The walk: make all, use them, kill -9, use them, start all again, use them."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

import nats
from nats.aio.client import Client

from jsctl.testing import Cluster
from tests.matrix.features import FEATURES
from tests.matrix.place import Place

CONFIG = """
jetstream { domain: D }
accounts {
    A { jetstream: enabled, users: [{ user: a, password: a }] }
    $SYS { users: [{ user: sys, password: sys }] }
}
no_auth_user: a
"""
WHOLE_S = 120.0
AT_ONCE = 8
"""Features that are asked at a time."""
Failed = list[tuple[str, str, str]]
"""Place, when, and what was wrong."""


class Walk:
    """All places in one cluster of five servers."""

    def __init__(self, cluster: Cluster, client: Client, places: Iterable[Place]) -> None:
        self.cluster = cluster
        self.client = client
        self.places = list(places)
        self.failed: Failed = []
        self._began = monotonic()

    async def each(self, when: str, places: Iterable[Place], *, make: bool = False) -> None:
        """Make, or use, some places; one that failed is left alone from there on."""
        room = asyncio.Semaphore(AT_ONCE)
        wrong = {name for name, _, _ in self.failed}

        async def one(place: Place) -> None:
            create, use = FEATURES[place.name.partition("_")[0]]
            async with room:
                try:
                    if make:
                        await create(place)
                    else:
                        place.rounds, place.turn = place.rounds + 1, place.turn + 1
                        await use(place)
                except Exception as error:  # noqa: BLE001 - whatever it is, others go on
                    self.failed.append((place.name, when, f"{type(error).__name__}: {error}"))

        await asyncio.gather(*(one(place) for place in places if place.name not in wrong))

    async def run(self) -> Failed:
        """The whole walk."""
        await self.each("created", self.places, make=True)
        await self.each("fresh", self.places)
        victim = await self.busiest()
        alone = [one for one in self.places if one.replicas == 1]
        several = [one for one in self.places if one.replicas > 1]
        self.cluster.kill(victim)
        await self.each(f"{victim} killed", several)
        self.cluster.restart(victim)
        self.cluster.wait_whole(WHOLE_S)
        await self.made_anew([one for one in alone if one.storage == "memory"])
        await self.each(f"{victim} came back", alone)
        for name in self.cluster.names:
            self.cluster.kill(name)
        for broker in self.cluster:
            broker.launch()
        for broker in self.cluster:
            broker.wait_ready()
        self.cluster.wait_whole(WHOLE_S)
        for place in self.places:
            if place.storage == "memory":
                place.rounds = 0
        await self.each("all started again", self.places)
        return self.failed

    async def busiest(self) -> str:
        """The server that leads most streams."""
        leaders: Counter[str] = Counter()
        for place in self.places:
            if place.replicas > 1:
                names = {"BUCKET": "KV_", "OBJECTS": "OBJ_"}
                prefix = names.get(place.name.partition("_")[0], "")
                found = await place.ask(f"STREAM.INFO.{prefix}{place.name}")
                leaders[found.get("cluster", {}).get("leader", "")] += 1
        del leaders[""]
        return leaders.most_common(1)[0][0] if leaders else self.cluster.names[0]

    async def made_anew(self, places: list[Place]) -> None:
        """What one replica in memory was on the server that died is lost, and others of the same
        place are not: all of it is made once more."""
        for place in places:
            names = (await place.done("STREAM.NAMES"))["streams"] or ()
            for name in names:
                if name.removeprefix("KV_").removeprefix("OBJ_").startswith(place.name):
                    await place.done(f"STREAM.DELETE.{name}")
            place.rounds = 0
        await self.each("created anew", places, make=True)


async def walked(combinations: Iterable[tuple[int, str]], features: Iterable[str]) -> Failed:
    """One walk over some numbers of replicas and storages; what went wrong."""
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(5, config=CONFIG))
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="matrix-")))
        client = await nats.connect(
            servers=cluster.urls, connect_timeout=30, max_reconnect_attempts=-1
        )
        places = [
            Place(client, f"{name}_{count}{storage[0]}", count, storage, directory)
            for count, storage in combinations
            for name in features
        ]
        for place in places:
            place.urls = cluster.urls
        try:
            return await Walk(cluster, client, places).run()
        finally:
            await client.close()
