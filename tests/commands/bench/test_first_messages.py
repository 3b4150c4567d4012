"""What comes with the server's first answer, and messages that nobody wants an answer to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from jsctl.client.raw import RawConnection
from jsctl.commands.bench.job import Job, Pace
from jsctl.commands.bench.receivers import core_subscriber
from jsctl.commands.bench.receivers import server as serve

PATIENCE_S = 30
SID = 1_000_001
LAST = b"PUB last 2\r\nok\r\n"


def message(text: str, reply: str = "") -> bytes:
    where = f"{reply} " if reply else ""
    return f"MSG a {SID} {where}{len(text)}\r\n{text}\r\n".encode()


@asynccontextmanager
async def connected(messages: bytes) -> AsyncIterator[tuple[RawConnection, asyncio.StreamReader]]:
    """To a server that says all of it with its PONG; what it hears afterwards."""
    accepted: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    listening = await asyncio.start_server(lambda *both: accepted.put_nowait(both), "127.0.0.1", 0)
    reader, own = await asyncio.open_connection(*listening.sockets[0].getsockname())
    connection = RawConnection(reader, own)
    heard, writer = await accepted.get()
    writer.write(b"PONG\r\n" + messages)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield connection, heard
    finally:
        connection.close()
        writer.close()
        await asyncio.gather(own.wait_closed(), writer.wait_closed(), return_exceptions=True)
        listening.close()


async def test_a_subscriber_counts_what_comes_at_once() -> None:
    for count in (2, 3):
        async with connected(message("ab") + message("cde") + message("f")) as (connection, _):
            sample = await core_subscriber(connection, Job(number=0, messages=count, subject="a"))
        assert (sample.messages, sample.bytes) == (3, 6)
        assert sample.started_ns <= sample.ended_ns < sample.started_ns + PATIENCE_S * 10**9


@pytest.mark.parametrize("pace", [Pace(), Pace(sleep_seconds=1e-9)], ids=["free", "slow"])
async def test_a_service_answers_who_wants_an_answer(pace: Pace) -> None:
    said = message("x", "first") + message("for nobody") + message("x", "last")
    job = Job(number=0, messages=1, subject="a", pace=pace)
    async with connected(said) as (connection, heard), asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(serve(connection, job))
        await heard.readuntil(b"PING\r\n")
        assert await heard.readuntil(LAST) == b"PUB first 2\r\nok\r\n" + LAST
        serving.cancel()
