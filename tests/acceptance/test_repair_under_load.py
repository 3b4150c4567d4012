"""Bytes of running brokers rot under load: within half a minute all replicas are equal again."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nats.aio.client import Client

from jsctl.testing import Broker, Cluster, ClusterFactory
from tests.support.load import connection
from tests.support.waiting import eventually

DEADLINE_S = 30
BODY_BYTES = 20_000
LOAD_BYTES = 500
"""Of a message of the load: a machine that is quick would else make more than checks can read."""
BEFORE = 600
PAGES_BYTES = 3 * 4096


async def ask(client: Client, subject: str, **fields: object) -> Any:
    """The answer; who asks a leader that changes meanwhile may have to ask again."""

    async def answered() -> Any:
        try:
            answer = await client.request(subject, json.dumps(fields).encode(), timeout=5)
        except TimeoutError:
            return None
        return json.loads(answer.data)

    return await eventually(answered, f"an answer to {subject}", DEADLINE_S)


async def publish(client: Client, number: int, size: int = BODY_BYTES) -> int:
    body = (b"%d " % number).ljust(size, b".")
    answer = await client.request(f"s.{number % 10}", body, timeout=DEADLINE_S)
    seq: int = json.loads(answer.data)["seq"]
    return seq


@dataclass
class Load:
    """Publishes until told to stop."""

    client: Client
    running: bool = True
    last: int = 0
    """The last sequence that was acknowledged."""

    async def run(self) -> None:
        number = BEFORE
        while self.running:
            some = [publish(self.client, number + n, LOAD_BYTES) for n in range(10)]
            found = await asyncio.gather(*some)
            number, self.last = number + 10, max(found)


async def checked(client: Client) -> Any:
    """A check of the stream, when it is done."""
    await ask(client, "$JS.API.STREAM.CHECK.S", start=True)

    async def done() -> Any:
        check = (await ask(client, "$JS.API.STREAM.CHECK.S")).get("check")
        return check if check and check["done"] else None

    return await eventually(done, "the check is done", DEADLINE_S)


def flip(path: Path) -> None:
    """One bit in the middle."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(path.stat().st_size // 2)
        file.write(bytes([byte ^ 16]))


def zero(path: Path) -> None:
    """Three pages in the middle, which held something: what was zero before is no damage."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        assert any(file.read(PAGES_BYTES)), "nothing would be damaged"
        file.seek(path.stat().st_size // 2)
        file.write(bytes(PAGES_BYTES))


def cut(path: Path) -> None:
    """The second half is gone."""
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def remove(path: Path) -> None:
    """All of it is gone."""
    path.unlink()


DAMAGES: dict[str, Callable[[Path], None]] = {
    "a bit": flip,
    "pages": zero,
    "half a file": cut,
    "a file": remove,
}


def scrub_of(server: Broker) -> Any:
    """What a server has found and repaired since it began."""
    page: Any = server.monitor("/jsz", DEADLINE_S)
    return page["jsctl_scrub"]


async def spoil(client: Client, cluster: Cluster) -> None:
    """Damage one server after the other; each is whole again soon."""
    names = cluster.names
    for turn, (what, damage) in enumerate(DAMAGES.items()):
        victim = cluster[names[turn % len(names)]]
        first, *_ = sorted(victim.store_dir.rglob("*.seg"))
        before = scrub_of(victim)
        damage(first)
        check = await checked(client)
        # On a busy machine the check before may not have ended, and find it first.
        after = scrub_of(victim)
        assert after["found"] == before["found"] + 1, (what, before, after)
        assert after["repaired"] > before["repaired"], (what, before, after)
        assert all("damaged" not in one for one in check["replicas"]), (what, check)
        assert "different" not in check, (what, check)


async def play(cluster: Cluster) -> None:
    async with connection([cluster[cluster.names[0]].url]) as client:
        config = {"name": "S", "subjects": ["s.>"], "num_replicas": 3, "storage": "file"}

        async def made() -> bool:
            """Who has just started may wait for its leader."""
            return "error" not in await ask(client, "$JS.API.STREAM.CREATE.S", **config)

        await eventually(made, "the stream is made", DEADLINE_S)
        for at in range(0, BEFORE, 20):
            await asyncio.gather(*(publish(client, at + n) for n in range(20)))
        load = Load(client)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(load.run())
            try:
                await spoil(client, cluster)
            finally:
                load.running = False
        final = await checked(client)
        assert {one["findings"] for one in final["replicas"]} == {0}, final
        assert len({one["digest"] for one in final["replicas"]}) == 1, final
        state = (await ask(client, "$JS.API.STREAM.INFO.S"))["state"]
        assert (state["messages"], state["last_seq"]) == (load.last, load.last)
        assert "lost" not in state


def test_all_replicas_are_equal_again(jsctl_cluster: ClusterFactory) -> None:
    asyncio.run(play(jsctl_cluster(3)))
