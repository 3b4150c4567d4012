"""What accounts and servers may store: refused beyond it, taken again when there is room."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from itertools import count
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StorageType, StreamConfig

from jsctl.testing import Broker
from tests.contract.conftest import KINDS

MB = 1 << 20
FILE_BYTES, MEMORY_BYTES = 8 * MB, 4 * MB
MESSAGE_BYTES = 100_000
SLACK_BYTES = MB
"""Beyond its limit an account may have this much: what is in flight is not stored yet."""
BURST = 300
WAIT_S = 30.0
ACCOUNT_FULL, SERVER_FULL = 10002, 10023
CONFIG = f"""
jetstream {{ max_file: {3 * FILE_BYTES}, max_mem: {3 * MEMORY_BYTES} }}
accounts {{
    A {{ users: [{{ user: a, password: a }}]
         jetstream {{ max_file: {FILE_BYTES}, max_mem: {MEMORY_BYTES} }} }}
    B {{ users: [{{ user: b, password: b }}], jetstream: enabled }}
}}
"""
_NUMBERS = count(1)


@pytest.fixture(scope="module", params=list(KINDS))
def limited(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A server with limits, and an account with lower ones."""
    with KINDS[str(request.param)](name="limited", config=CONFIG) as running:
        yield running


@pytest.fixture
async def a(limited: Broker) -> AsyncIterator[Client]:
    """A user of the account with limits of its own."""
    connection = await nats.connect(
        limited.url, user="a", password="a", allow_reconnect=False, connect_timeout=30
    )
    yield connection
    await connection.close()


@pytest.fixture
async def b(limited: Broker) -> AsyncIterator[Client]:
    """A user of the account that may have all."""
    connection = await nats.connect(
        limited.url, user="b", password="b", allow_reconnect=False, connect_timeout=30
    )
    yield connection
    await connection.close()


async def burst(client: Client, subject: str) -> list[dict[str, Any]]:
    """The answers to many messages that are all sent before the first answer is read."""
    inbox = client.new_inbox()
    answers = await client.subscribe(inbox)
    for _ in range(BURST):
        await client.publish(subject, b"x" * MESSAGE_BYTES, reply=inbox)
    return [json.loads((await answers.next_msg(WAIT_S)).data) for _ in range(BURST)]


async def stream(js: JetStreamContext, storage: StorageType) -> str:
    name = f"L{next(_NUMBERS)}"
    await js.add_stream(StreamConfig(name=name, subjects=[f"{name}.>"], storage=storage))
    return name


def codes(answers: list[dict[str, Any]]) -> set[int]:
    """The errors among answers."""
    return {found["error"]["err_code"] for found in answers if "error" in found}


@pytest.mark.parametrize("storage", list(StorageType))
async def test_an_account_takes_no_more_than_it_may(a: Client, storage: StorageType) -> None:
    js = a.jetstream(timeout=WAIT_S)
    name = await stream(js, storage)
    limit = FILE_BYTES if storage is StorageType.FILE else MEMORY_BYTES
    assert codes(await burst(a, f"{name}.x")) == {ACCOUNT_FULL}
    held = (await js.stream_info(name)).state.bytes
    assert limit - SLACK_BYTES < held < limit + SLACK_BYTES
    await js.purge_stream(name)
    async with asyncio.timeout(WAIT_S):
        while codes([json.loads((await a.request(f"{name}.x", b"x")).data)]):
            pass
    await js.delete_stream(name)


async def test_a_server_takes_no_more_than_it_may(b: Client) -> None:
    js = b.jetstream(timeout=WAIT_S)
    name = await stream(js, StorageType.FILE)
    assert codes(await burst(b, f"{name}.x")) == {SERVER_FULL}
    held = (await js.stream_info(name)).state.bytes
    assert 3 * FILE_BYTES - SLACK_BYTES < held < 3 * FILE_BYTES + SLACK_BYTES
    await js.delete_stream(name)
