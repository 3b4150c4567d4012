"""Plain connections are read while the loop looks at the sockets, and others as asyncio does."""

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import pytest

from jsctl.broker.options import Options
from jsctl.broker.server.connection import READ_ERROR, Connection
from tests.broker.server.harness import LOCAL, LineClient, Running, looking, running
from tests.support.waiting import eventually

OPTIONS = Options(listen=LOCAL)


@pytest.fixture
def fed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of what came asyncio's way."""
    sizes: list[int] = []
    updated = Connection.buffer_updated

    def noting(self: Connection, nbytes: int) -> None:
        sizes.append(nbytes)
        updated(self, nbytes)

    monkeypatch.setattr(Connection, "buffer_updated", noting)
    return sizes


@asynccontextmanager
async def greeted(options: Options = OPTIONS) -> AsyncIterator[tuple[Running, LineClient]]:
    async with running(options) as server:
        client = await server.client()
        await client.line()
        yield server, client
        await client.close()


def plain_of(server: Running) -> dict[int, Connection]:
    assert server.looks is not None
    return server.looks.plain


async def reason_of(server: Running) -> str:
    """Why the first connection that ended did so."""

    async def told() -> list[str]:
        return [reason for one in server.node.seen for _, reason in one.closed]

    return (await eventually(told, "the end is told", 30))[0]


async def let_go(server: Running) -> bool:
    return not plain_of(server)


def reset(client: LineClient) -> None:
    """End it with what is not an orderly end."""
    made = client.writer.get_extra_info("socket")
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.writer.transport.abort()


@looking
async def test_what_a_look_finds_is_one_turn(fed: list[int]) -> None:
    async with greeted() as (server, first):
        second = await server.client()
        await second.line()
        before = len(server.node.seen)
        for client in (first, second):
            os.write(client.writer.get_extra_info("socket").fileno(), b"PING\r\n")
        assert [await first.line(), await second.line()] == ["PONG"] * 2
        assert [len(one.chunks) for one in server.node.seen[before:]] == [2]
        assert not fed


@looking
async def test_more_than_one_read_takes_comes_in_order() -> None:
    limits = replace(OPTIONS.edge, read_bytes_max=7)
    async with greeted(replace(OPTIONS, edge=limits)) as (server, client):
        client.writer.write(b"PING\r\n" * 50)
        assert [await client.line() for _ in range(50)] == ["PONG"] * 50
        assert max(len(chunk) for one in server.node.seen for _, chunk in one.chunks) == 7


@looking
async def test_an_end_is_told_behind_what_came_before_it() -> None:
    async with greeted() as (server, client):
        client.writer.write(b"PING\r\n")
        await client.close()
        assert await reason_of(server) == "Client Closed"
        chunks = [chunk for one in server.node.seen for _, chunk in one.chunks]
        assert b"".join(chunks) == b"PING\r\n"
        assert not plain_of(server)


@looking
async def test_who_breaks_off_is_let_go_of() -> None:
    """Before another socket may have its number."""
    async with greeted() as (server, client):
        assert len(plain_of(server)) == 1
        reset(client)
        assert await reason_of(server) == READ_ERROR
        assert not plain_of(server)
        again = await server.client()
        await again.line()
        assert await again.ask("PING") == "PONG"


@looking
async def test_who_is_closed_by_the_node_is_let_go_of() -> None:
    async with greeted() as (server, client):
        client.writer.write(b"QUIT\r\n")
        assert await client.reader.read()  # What it says, and the end.
        await eventually(partial(let_go, server), "it is let go of", 30)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What was given to the system without asyncio: how much, and how much of it was taken."""
    sizes: list[tuple[int, int]] = []
    write = os.write

    def noting(fd: int, data: bytes) -> int:
        taken = write(fd, data)
        sizes.append((len(data), taken))
        return taken

    monkeypatch.setattr(os, "write", noting)
    return sizes


PONG = (len(b"PONG\r\n"), len(b"PONG\r\n"))


@looking
async def test_answers_of_plain_connections_go_straight_to_the_system(
    sent: list[tuple[int, int]],
) -> None:
    async with greeted() as (_, client):
        sent.clear()
        assert await client.ask("PING") == "PONG"
        assert sent == [PONG]


@looking
async def test_what_the_system_does_not_take_is_sent_first(sent: list[tuple[int, int]]) -> None:
    """What is written behind it waits in the same row, and goes straight again when it is gone."""
    async with greeted() as (server, client):
        transport = client.writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        sent.clear()
        flood = 64 << 20
        client.writer.write(b"FLOOD %d\r\n" % flood)
        client.writer.write(b"PING\r\n" * 3)

        async def answered() -> bool:
            return sum(len(one.chunks) for one in server.node.seen) > 0 and bool(sent)

        await eventually(answered, "the flood is written", 30)
        assert len(sent) == 1
        assert 0 < sent[0][1] < sent[0][0]
        transport.resume_reading()
        assert await client.reader.readexactly(flood) == b"x" * flood
        assert [await client.line() for _ in range(3)] == ["PONG"] * 3
        assert len(sent) == 1
        assert await client.ask("PING") == "PONG"
        assert await client.ask("PING") == "PONG"
        assert sent[1:] and set(sent[1:]) == {PONG}


@looking
async def test_a_write_to_who_broke_off_ends_nothing_else(sent: list[tuple[int, int]]) -> None:
    async with greeted() as (server, client):
        second = await server.client()
        await second.line()
        reset(client)
        for one in list(plain_of(server).values()):
            one.write(b"MORE\r\n")
        assert await second.line() == "MORE"
        assert await second.ask("PING") == "PONG"
        assert await reason_of(server) == READ_ERROR
