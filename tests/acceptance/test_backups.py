"""Backups between servers with the tools that people use: the real `nats`, and `jsctl`."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.js.api import ConsumerConfig

from jsctl.cli import main
from jsctl.testing import Broker, RealServer
from tests.support.nats_tool import NATS
from tests.support.nats_tool import needed as needs_nats

pytestmark = pytest.mark.processes
TOOLS = ("nats", "jsctl")
MESSAGES = 2000
NAME = "ORDERS"


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Broker]]:
    """One of each kind."""
    with RealServer("-js", name="real") as real, Broker("-js", name="ours") as ours:
        yield {"nats-server": real, "jsctl": ours}


async def fill(url: str) -> dict[str, Any]:
    """A stream with a consumer, some of its messages deleted; its state."""
    client = await nats.connect(url)
    js = client.jetstream()
    await js.add_stream(name=NAME, subjects=["orders.>"])
    await js.add_consumer(NAME, ConsumerConfig(durable_name="C"))
    for number in range(MESSAGES):
        body = json.dumps({"number": number, "words": f"{number * 7919 % 1009}" * 9}).encode()
        await client.publish(f"orders.{number % 50}", body, headers={"N": str(number)})
    await js.publish("orders.last", b"the last one")
    await js.delete_msg(NAME, 77)
    await client.close()
    return await look(url)


async def look(url: str, *, remove: bool = False) -> dict[str, Any]:
    """What a server tells of the stream, which goes then if it is to."""
    client = await nats.connect(url)
    answer = await client.request(f"$JS.API.STREAM.INFO.{NAME}", b"{}", timeout=30)
    if remove:
        await client.jetstream(timeout=30).delete_stream(NAME)
    await client.close()
    found: dict[str, Any] = json.loads(answer.data)["state"]
    return found


def run(tool: str, broker: Broker, *words: str) -> None:
    """A command of a tool, which has to work."""
    line = ["-s", broker.url, "stream", *words, "--no-progress"]
    if tool == "jsctl":
        assert main(line) == 0
        return
    done = subprocess.run([NATS or tool, *line], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (line, done.stdout, done.stderr)


@needs_nats
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    ("source", "target"), [("nats-server", "jsctl"), ("jsctl", "nats-server"), ("jsctl", "jsctl")]
)
def test_a_backup_of_one_server_is_restored_on_the_other(
    servers: dict[str, Broker], tmp_path: Path, tool: str, source: str, target: str
) -> None:
    directory = tmp_path / "backup"
    before = asyncio.run(fill(servers[source].url))
    assert before["messages"] == MESSAGES
    run(tool, servers[source], "backup", NAME, str(directory), "--consumers")
    asyncio.run(look(servers[source].url, remove=True))
    run(tool, servers[target], "restore", str(directory))
    assert asyncio.run(look(servers[target].url, remove=True)) == before
