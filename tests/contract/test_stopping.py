"""A server that is told to end while clients publish: what it acknowledged is kept."""

import asyncio
import json
import signal
from contextlib import suppress

import nats
import pytest
from nats.errors import Error

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.waiting import eventually

WAIT_S = 30.0
STREAMS = 64
ACKED_MIN = 500
GONE_S = 5.0
"""Between the end of a connection and that of the process; much less unless the machine is busy."""


async def publish_until_stopped(broker: Broker) -> list[int]:
    """The last sequence that each stream acknowledged before the server went."""
    ended = asyncio.Event()

    async def note() -> None:
        ended.set()

    client = await nats.connect(
        broker.url, allow_reconnect=False, closed_cb=note, connect_timeout=int(WAIT_S)
    )
    for number in range(STREAMS):
        config = json.dumps({"name": f"L{number}", "subjects": [f"load.{number}"]}).encode()
        await client.request(f"$JS.API.STREAM.CREATE.L{number}", config, timeout=WAIT_S)
    acked = [0] * STREAMS

    async def load(number: int) -> None:
        with suppress(Error):
            while not ended.is_set():
                reply = await client.request(f"load.{number}", b"x" * 100, timeout=WAIT_S)
                acked[number] = json.loads(reply.data)["seq"]

    async def loaded() -> bool:
        return sum(acked) >= ACKED_MIN

    async def gone() -> bool:
        return not broker.running

    async with asyncio.TaskGroup() as tasks:
        loads = [tasks.create_task(load(number)) for number in range(STREAMS)]
        await eventually(loaded, "publishes to be under way")
        broker.signal(signal.SIGTERM)
        async with asyncio.timeout(WAIT_S):
            await ended.wait()
        await eventually(gone, "the process to end with its connections", GONE_S)
        for task in loads:
            task.cancel()
    return acked


@pytest.mark.parametrize("kind", list(KINDS))
async def test_what_was_acknowledged_is_there_again(kind: str) -> None:
    with KINDS[kind]("-js", name="one") as broker:
        acked = await publish_until_stopped(broker)
        broker.stop()
        broker.start()
        client = await nats.connect(broker.url, connect_timeout=int(WAIT_S))
        for number, last in enumerate(acked):
            reply = await client.request(f"$JS.API.STREAM.INFO.L{number}", timeout=WAIT_S)
            assert json.loads(reply.data)["state"]["last_seq"] >= last
        await client.close()
