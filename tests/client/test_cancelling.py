"""A task that is cancelled ends, whatever comes at the same time.

What the library makes of a cancellation with Python 3.11 is that it goes on: a connection that was
closed looked for a server for ever, and a command did not end with Ctrl-C.
"""

import asyncio
from typing import Any

import pytest
from nats.aio import client as library

from jsctl.client.connection import connect
from jsctl.settings import Context, Settings
from jsctl.testing import BrokerFactory

pytestmark = pytest.mark.processes
END_S = 30.0


async def test_a_closed_connection_looks_for_no_server(
    jsctl_broker: BrokerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = jsctl_broker()
    settings = Settings(connection=Context(url=broker.url))
    refused, gone = asyncio.Event(), asyncio.Event()
    async with connect(settings, lambda _text: gone.set()) as client:

        async def refusing(**_more: Any) -> None:
            if not refused.is_set():
                refused.set()
                assert client._reconnection_task is not None
                client._reconnection_task.cancel()
            raise ConnectionRefusedError

        monkeypatch.setattr(vars(library)["asyncio"], "open_connection", refusing)
        broker.kill()
        await gone.wait()
        looking = client._reconnection_task
        assert looking is not None
        done, _ = await asyncio.wait([looking], timeout=END_S)
        assert refused.is_set()
        assert done, "it tries one connection after another"


async def test_a_cancellation_that_comes_with_the_answer_counts(
    jsctl_broker: BrokerFactory,
) -> None:
    settings = Settings(connection=Context(url=jsctl_broker().url))
    async with connect(settings) as client:
        subscription = await client.subscribe("asked")
        asking = asyncio.get_running_loop().create_task(client.request("asked", timeout=END_S))
        await subscription.next_msg(timeout=END_S)
        (answer,) = client._resp_map.values()
        answer.set_result("an answer")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_a_cancellation_while_much_is_to_be_sent_counts(
    jsctl_broker: BrokerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(connection=Context(url=jsctl_broker().url))
    async with connect(settings) as client:
        waiting = asyncio.Event()
        queue = client._flush_queue

        async def full(_future: object) -> None:
            waiting.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(queue, "put", full)
        sending = asyncio.get_running_loop().create_task(client.publish("x", b"y"))
        await waiting.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        monkeypatch.undo()
