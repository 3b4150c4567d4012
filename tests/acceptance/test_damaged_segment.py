"""A segment of one of three brokers is damaged while it is down: all go on removing the same, and
what was damaged comes back."""

import asyncio
import json
from typing import Any

import pytest
from nats.aio.client import Client

from jsctl.testing import Cluster, ClusterFactory
from tests.support.load import connection
from tests.support.waiting import eventually

PAYLOAD = bytes(40_000)
TOGETHER = 10
"""Messages on their way at a time."""
DEADLINE_S = 60
LIMITS = {
    "messages": {"max_msgs": 420},
    "bytes": {"max_bytes": 17_000_000},
    "messages of a subject": {"max_msgs_per_subject": 41},
}


async def publish(client: Client, first: int, count: int) -> None:
    """Acknowledged messages on ten subjects."""

    async def one(number: int) -> None:
        body = b"%d " % number + PAYLOAD[: 30_000 + number * 37 % 10_000]
        answer = await client.request(f"s.{number * 7 % 10}", body, timeout=DEADLINE_S)
        assert b'"seq"' in answer.data, answer.data

    for at in range(first, first + count, TOGETHER):
        following = range(at, min(at + TOGETHER, first + count))
        await asyncio.gather(*(one(number) for number in following))


async def ask(client: Client, subject: str, **fields: object) -> Any:
    answer = await client.request(subject, json.dumps(fields).encode(), timeout=DEADLINE_S)
    return json.loads(answer.data)


def replica(cluster: Cluster, name: str) -> tuple[int, int, int]:
    """First and last sequence and removed messages between them, as a server has them itself."""
    page: Any = cluster[name].monitor("/jsz?streams=true&config=true")
    (account,) = page["account_details"]
    (stream,) = account["stream_detail"]
    state = stream["state"]
    return state["first_seq"], state["last_seq"], state.get("num_deleted", 0)


async def same(cluster: Cluster, last: int) -> tuple[int, int, int]:
    """What all replicas have once they have everything."""

    async def told() -> list[tuple[int, int, int]] | None:
        found = [replica(cluster, name) for name in cluster.names]
        return found if all(one[1] == last for one in found) else None

    found = await eventually(told, f"all replicas have {last} messages")
    assert len(set(found)) == 1, found
    return found[0]


async def lead(client: Client, name: str) -> Any:
    """The stream's state as a server tells it that is made its leader."""

    async def led() -> Any:
        info = await ask(client, "$JS.API.STREAM.INFO.S")
        if info.get("cluster", {}).get("leader") == name:
            return info["state"]
        placement = {"preferred": name}
        await ask(client, "$JS.API.STREAM.LEADER.STEPDOWN.S", placement=placement)
        return None

    return await eventually(led, f"{name} leads")


def damage(cluster: Cluster, name: str) -> None:
    """Zero much of the first segment, which a checkpoint has made durable."""
    path, *more = sorted(cluster[name].store_dir.rglob("*.seg"))
    assert more
    with path.open("r+b") as file:
        file.seek(4_800_000)
        file.write(bytes(2_000_000))


async def play(cluster: Cluster, limits: dict[str, int]) -> None:
    async with connection([cluster[cluster.names[0]].url]) as client:
        config = {"name": "S", "subjects": ["s.>"], "num_replicas": 3, "storage": "file"}
        answer = await ask(client, "$JS.API.STREAM.CREATE.S", **config, **limits)
        assert "error" not in answer
        await publish(client, 0, 500)
        await same(cluster, 500)
        victim = cluster.names[1]
        cluster[victim].stop()
        damage(cluster, victim)
        await publish(client, 500, 20)
        cluster[victim].start()
        await same(cluster, 520)
        await asyncio.to_thread(cluster[victim].wait_log, "damaged messages are whole again")
        assert "are damaged on this server" in cluster[victim].logs
        for first in (520, 560, 640):
            await publish(client, first, 40 if first < 600 else 200)
            last = (await ask(client, "$JS.API.STREAM.INFO.S"))["state"]["last_seq"]
            want = await same(cluster, last)
            for name in cluster.names:
                state = await lead(client, name)
                assert (state["first_seq"], state["last_seq"]) == want[:2], name
                assert "lost" not in state


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS.keys())
def test_first_sequences_stay_the_same_on_all(
    jsctl_cluster: ClusterFactory, limits: dict[str, int]
) -> None:
    asyncio.run(play(jsctl_cluster(3), limits))
