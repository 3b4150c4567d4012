"""Answers that belong to another request than the last one, and shares of a consumer."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from jsctl.client.raw import RawConnection
from jsctl.commands.bench.job import Job
from jsctl.commands.bench.publishers import requester
from jsctl.commands.bench.receivers import consuming
from jsctl.errors import Unreachable

PATIENCE_S = 30
SID = 1_000_001
Answer = Callable[[bytes, bytes], bytes]
"""The reply subject and the body of a request -> what the server sends."""


@asynccontextmanager
async def connected(answer: Answer) -> AsyncIterator[RawConnection]:
    """To a server that says PONG, and what `answer` makes of each publish."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")
            elif line.startswith(b"PUB"):
                words = line.split()
                body = (await reader.readexactly(int(words[-1]) + 2))[:-2]
                writer.write(answer(words[2], body) if len(words) > 3 else b"")
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, own = await asyncio.open_connection(*listening.sockets[0].getsockname())
    connection = RawConnection(reader, own)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield connection
    finally:
        connection.close()
        await asyncio.gather(own.wait_closed(), return_exceptions=True)
        listening.close()


def message(subject: bytes, body: bytes = b"", reply: bytes = b"") -> bytes:
    where = subject + b" %d " % SID + (reply + b" " if reply else b"")
    return b"MSG %s%d\r\n%s\r\n" % (where, len(body), body)


async def test_an_answer_to_an_earlier_request_is_none_to_the_next() -> None:
    """Two services that are no queue group answer: the second one when the next request comes."""
    requests: list[bytes] = []

    def answer(reply: bytes, _body: bytes) -> bytes:
        late = b"".join(map(message, requests[-1:]))
        requests.append(reply)
        return late + (message(reply) if len(requests) < 3 else b"")

    async with connected(answer) as connection:
        with pytest.raises(Unreachable, match="timeout"):
            await requester(connection, Job(number=0, messages=3, subject="a", timeout=0.2))
    assert len(requests) == 3


async def test_who_asks_anew_takes_no_more_than_his_share() -> None:
    """Of two requests one ends, the other is still there: others wait for what is not his."""
    asked: list[int] = []

    def answer(reply: bytes, body: bytes) -> bytes:
        count = json.loads(body)["batch"]
        asked.append(count)
        sent = [message(reply, b"x", b"$JS.ACK.S.C.1.1.1.1.0")] * (7 if len(asked) == 1 else 0)
        if len(asked) == 2:  # three of the first request, and this one, were still to come
            header = b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 3\r\n\r\n"
            ended = b"HMSG %s %d %d %d\r\n%s\r\n" % (
                reply, SID, len(header), len(header), header,
            )  # fmt: skip
            sent.append(ended)
        if len(asked) == 3:
            sent += [message(reply, b"x", b"$JS.ACK.S.C.1.1.1.1.0")] * (count + asked[1])
        return b"".join(sent)

    job = Job(number=0, messages=14, batch=10, stream="S", consumer="C", acks="none")
    async with connected(answer) as connection:
        sample = await consuming(connection, job)
    assert sample.messages == 14, asked
