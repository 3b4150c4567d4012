"""`sub --terminate-at-end`, where what was pending goes away before it is delivered."""

import asyncio

import pytest

from jsctl.cli import main
from jsctl.client.manager import open_manager
from jsctl.settings import Context, Settings
from jsctl.testing import Broker
from tests.commands.messages.test_message_commands import Background

pytestmark = pytest.mark.processes
CONSUMERS = {
    "pull": ("--pull", "--max-pending", "1"),
    "push": ("--target", "out", "--ack", "explicit", "--max-pending", "1"),
}


async def purge(url: str) -> None:
    async with open_manager(Settings(connection=Context(url=url))) as manager:
        await manager.purge("S")


@pytest.mark.parametrize("kind", CONSUMERS)
def test_what_is_purged_meanwhile_is_not_waited_for(kind: str) -> None:
    """Both messages are pending, and the first one waits for its acknowledgement."""
    with Broker(jetstream=True) as server:
        at = ["-s", server.url]
        assert main([*at, "stream", "add", "S", "--subjects", "s", "--defaults"]) == 0
        assert main([*at, "pub", "-J", "-q", "s", "x", "--count", "2"]) == 0
        assert main([*at, "consumer", "add", "S", "C", *CONSUMERS[kind], "--defaults"]) == 0
        words = ("sub", "--stream", "S", "--durable", "C", "--no-ack", "-T")
        shown = Background(server.url, words, "Subscribing")
        try:
            line = shown.line()
            assert "pending: 1" in line, line
            asyncio.run(purge(server.url))
            done = shown.result()
        finally:
            shown.close()
    assert done.code == 0, done
