"""A server that is ready loads what requests need, so that nobody's first request waits for it."""

import asyncio
import re
import sys
from pathlib import Path

import nats
import pytest

from jsctl.testing import Broker

pytestmark = pytest.mark.processes

NEEDED = {
    "jsctl.broker.handlers.answers",
    "jsctl.broker.handlers.consumers",
    "jsctl.broker.handlers.placing",
    "jsctl.broker.handlers.stream_messages",
    "jsctl.broker.system.monitoring.live_view",
    "jsctl.broker.system.trace_events",
}
"""Of what requests need, and the start does not."""


class TracedBroker(Broker):
    """Its log has a line for each module that is imported."""

    program = (sys.executable, "-X", "importtime", "-m", "jsctl", "broker")


def imported(logs: str) -> list[str]:
    """The broker's modules in the order in which they came."""
    return re.findall(r"^import time:.*\| +(jsctl\.broker\.\S+)$", logs, re.MULTILINE)


async def ask(url: str) -> None:
    """A first request of most kinds."""
    client = await nats.connect(url)
    stream = client.jetstream()
    await stream.add_stream(name="S", subjects=["s"], allow_direct=True)
    await stream.publish("s", b"1")
    await stream.add_consumer("S", durable_name="C", ack_policy="explicit")
    subscription = await stream.pull_subscribe_bind("C", "S")
    await (await subscription.fetch(1))[0].ack_sync()
    await stream.get_msg("S", 1)
    await stream.get_msg("S", 1, direct=True)
    await stream.streams_info()
    await stream.account_info()
    await client.request("$SYS.REQ.USER.INFO", b"", timeout=30)
    await client.close()


def test_nothing_is_loaded_once_the_store_is_made(tmp_path: Path) -> None:
    """It is made beside that; what came later would make a start longer by as much."""
    with TracedBroker("-js", directory=tmp_path) as broker:
        broker.wait_log("Server is ready")
        start = broker.logs.partition("Starting JetStream")[2].partition("Server is ready")[0]
        assert not re.findall(r"^import time:.*", start, re.MULTILINE)


def test_first_requests_import_nothing(tmp_path: Path) -> None:
    with TracedBroker("-js", "-D", directory=tmp_path) as broker:
        broker.wait_log("Loaded what requests need")
        logs = broker.logs
        assert set(imported(logs)) >= NEEDED
        assert not set(imported(logs[: logs.index("Server is ready")])) & NEEDED
        asyncio.run(ask(broker.url))
        assert imported(broker.logs) == imported(logs)
