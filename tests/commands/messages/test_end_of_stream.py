"""`sub --terminate-at-end`, where what was pending goes away before it is delivered."""

import asyncio
import os
import subprocess
import sys

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


@pytest.mark.parametrize("more", [(), ("--durable", "D")], ids=["ephemeral", "durable"])
def test_who_reads_no_more_ends_it_without_a_word(more: tuple[str, ...]) -> None:
    """As `head` does; the messages are there before, and shown after that."""
    with Broker(jetstream=True) as server:
        at = ["-s", server.url]
        assert main([*at, "stream", "add", "S", "--subjects", "s", "--defaults"]) == 0
        assert main([*at, "pub", "-J", "-q", "s", "x", "--count", "2"]) == 0
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [sys.executable, "-m", "jsctl", *at, "sub", "--stream", "S", *more],
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")
