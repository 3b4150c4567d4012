"""Lists of more than one page: what both servers tell from where on, and how much of it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from tests.contract.conftest import KINDS
from tests.contract.test_many_subjects import ask

STREAMS, CONSUMERS = 1030, 1000
"""Without a limit of its own a stream takes no more consumers than that."""
TOO_MANY = 10026
AT_ONCE = 100
NAMES_PAGE, LIST_PAGE = 1024, 256
OFFSETS = (0, 1, 255, 256, 774, 775, 999, 1000, 1024, 1029, 1030, 1031, 5000, -1, -7, 2**31, 2**62)
FIRST = "n0000"


def names(count: int) -> list[str]:
    return [f"n{number:04d}" for number in range(count)]


async def made(make: Callable[[str], Awaitable[dict[str, Any]]], count: int) -> None:
    """All of them, with some requests in flight."""
    for at in range(0, count, AT_ONCE):
        for answer in await asyncio.gather(*map(make, names(count)[at : at + AT_ONCE])):
            assert "error" not in answer


async def pages_are_right(client: Client, subject: str, what: str, count: int, page: int) -> None:
    for offset in OFFSETS:
        told = await ask(client, subject, offset=offset)
        begin = min(max(offset, 0), count)
        listed = [
            one if isinstance(one, str) else one.get("name") or one["config"]["name"]
            for one in told[what] or ()
        ]
        assert listed == names(count)[begin : begin + page], (subject, offset)
        assert (told["total"], told["offset"], told["limit"]) == (count, begin, page)


@pytest.mark.parametrize("kind", list(KINDS))
async def test_pages_of_streams_and_consumers(kind: str) -> None:
    with KINDS[kind]("-js", name="long") as broker:
        client = await nats.connect(broker.url, connect_timeout=30)

        async def stream(name: str) -> dict[str, Any]:
            config = {"name": name, "subjects": [f"{name}.>"], "storage": "memory"}
            return await ask(client, f"STREAM.CREATE.{name}", **config)

        async def consumer(name: str) -> dict[str, Any]:
            config = {"durable_name": name, "ack_policy": "explicit", "mem_storage": True}
            subject = f"CONSUMER.DURABLE.CREATE.{FIRST}.{name}"
            return await ask(client, subject, stream_name=FIRST, config=config)

        await made(stream, STREAMS)
        await made(consumer, CONSUMERS)
        assert (await consumer("more"))["error"]["err_code"] == TOO_MANY
        await pages_are_right(client, "STREAM.NAMES", "streams", STREAMS, NAMES_PAGE)
        await pages_are_right(client, "STREAM.LIST", "streams", STREAMS, LIST_PAGE)
        own = (client, f"CONSUMER.NAMES.{FIRST}", "consumers", CONSUMERS, NAMES_PAGE)
        await pages_are_right(*own)
        own = (client, f"CONSUMER.LIST.{FIRST}", "consumers", CONSUMERS, LIST_PAGE)
        await pages_are_right(*own)
        behind = await ask(client, "STREAM.NAMES", subject=f"{FIRST}.a", offset=1)
        assert (behind["total"], behind["offset"], behind["streams"]) == (1, 1, None)
        await client.close()
