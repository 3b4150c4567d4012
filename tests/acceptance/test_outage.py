"""The leader of a stream dies under load."""

import asyncio
import time
from pathlib import Path

import pytest

from jsctl.testing import Cluster, ClusterFactory
from tests.support.command_line import CommandLine, is_whole, leader_of
from tests.support.load import Load, contents
from tests.support.waiting import wait_for

pytestmark = pytest.mark.alone

OUTAGE_S = 3.0


async def outage(cluster: Cluster, victim: str) -> Load:
    """Kill a server under load; its clients go on elsewhere."""
    async with Load(cluster.urls, "s.x", workers=8) as load:
        await load.more(500)
        killed_s = time.monotonic()
        cluster.kill(victim)
        await load.more(500)
    assert load.silence_s(killed_s) < OUTAGE_S
    return load


def test_a_killed_leader_is_replaced_and_nothing_acknowledged_is_lost(
    jsctl_cluster: ClusterFactory, tmp_path: Path
) -> None:
    cluster = jsctl_cluster(3)
    jsctl = CommandLine(tmp_path, cluster.urls)
    jsctl.run("stream", "add", "S", "--subjects", "s.>", "--replicas", "3", "--defaults")
    wait_for(lambda: is_whole(jsctl.json("stream", "info", "S"), 3), "all replicas are current")
    victim = leader_of(jsctl.json("stream", "info", "S"))
    load = asyncio.run(outage(cluster, victim))
    info = jsctl.json("stream", "info", "S")
    assert leader_of(info) not in ("", victim)
    cluster[victim].start()
    wait_for(lambda: is_whole(jsctl.json("stream", "info", "S"), 3), "the old leader is back")
    last = jsctl.json("stream", "info", "S")["state"]["last_seq"]
    kept = asyncio.run(contents(cluster[victim].url, "S", last))
    for one in load.acked:
        assert kept[one.seq][2] == one.message.encode()
    payloads = [body for _, _, body in kept.values()]
    assert len(payloads) == len(set(payloads)), "a retried message was stored twice"
