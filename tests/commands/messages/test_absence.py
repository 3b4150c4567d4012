"""Subscriptions to streams, of servers that go away and come back."""

import asyncio
from contextlib import ExitStack

import pytest

from jsctl.cli import main
from jsctl.client.manager import open_manager
from jsctl.settings import Context, Settings
from jsctl.testing import RealServer
from tests.commands.messages.test_message_commands import Background
from tests.support.waiting import wait_for


async def consumers(url: str) -> list[str]:
    async with open_manager(Settings(connection=Context(url=url))) as manager:
        return await manager.consumer_names("S")


@pytest.mark.processes
def test_a_subscription_to_a_stream_outlives_its_server() -> None:
    """What was asked of the server that ended is asked of the one that follows it."""
    with RealServer(jetstream=True) as running, ExitStack() as ending:
        at = ["-s", running.url]
        stream = ("stream", "add", "S", "--subjects", "s", "--defaults")
        assert main([*at, *stream]) == 0
        asking = [
            Background(running.url, ("sub", "--stream", "S", *more, "--count", "1"), "Subscribing")
            for more in (("--new",), ("--durable", "D", "--all"))
        ]
        for one in asking:
            ending.callback(one.close)
        wait_for(lambda: len(asyncio.run(consumers(running.url))) == 2, "both consumers")
        running.restart()
        assert main([*at, "pub", "-J", "-q", "s", "late"]) == 0
        for one in asking:
            assert "late\n" in one.result().out
