"""How soon the badge tells that a server is gone, and what it tells of damage."""

import asyncio
import json
import re
import time

import pytest

from jsctl.dashboard.model.snapshot import Badge, Snapshot
from jsctl.testing import ClusterFactory
from tests.dashboard.conftest import Drive
from tests.dashboard.test_live import KINDS
from tests.support.load import connection

pytestmark = pytest.mark.alone

BADGE_S = 3.0


@pytest.mark.parametrize("kind", list(KINDS))
async def test_a_killed_server_is_seen_soon(
    kind: str, jsctl_cluster: ClusterFactory, drive: Drive
) -> None:
    cluster = jsctl_cluster(3, server=KINDS[kind])
    victim = next(name for name in cluster.names if name != cluster.meta_leader())
    async with drive([broker.url for broker in cluster if broker.name != victim]) as driven:
        await driven.until(lambda now: now.badge is Badge.HEALTHY, "it is healthy")
        cluster.kill(victim)
        killed_s = time.monotonic()
        await driven.until(lambda now: now.badge is not Badge.HEALTHY, "the badge changed")
        assert time.monotonic() - killed_s < BADGE_S


async def test_a_damaged_byte_is_yellow_with_its_range_and_then_green(
    jsctl_cluster: ClusterFactory, drive: Drive
) -> None:
    cluster = jsctl_cluster(3)
    victim = cluster[next(name for name in cluster.names if name != cluster.meta_leader())]
    async with connection([victim.url]) as client:

        async def ask(subject: str, body: bytes) -> None:
            answer = await client.request(subject, body, timeout=20)
            assert b'"error"' not in answer.data, answer.data

        config = {"name": "S", "subjects": ["s.>"], "num_replicas": 3, "storage": "file"}
        await ask("$JS.API.STREAM.CREATE.S", json.dumps(config).encode())
        await asyncio.gather(*(ask(f"s.{number}", bytes(9000)) for number in range(20)))
        async with drive(cluster.urls) as driven:
            await driven.until(
                lambda now: now.badge is Badge.HEALTHY and bool(now.streams), "it is healthy"
            )
            (path,) = victim.store_dir.rglob("*.seg")
            with path.open("r+b") as file:
                file.seek(100_000)
                file.write(b"?")
            await ask("$JS.API.STREAM.CHECK.S", b'{"start":true}')

            def yellow(now: Snapshot) -> bool:
                why = now.streams[0].why
                return now.badge is Badge.DEGRADED and f"damaged on {victim.name}" in why

            await driven.until(yellow, "the damage is yellow")
            assert re.search(r"repaired: \d+$", driven.now.streams[0].why)
            await driven.until(lambda now: now.badge is Badge.HEALTHY, "it is green again")
            said = [one.said for one in driven.now.events if one.what == "damage"]
            assert len(said) == 2 and "repaired" in said[-1]
