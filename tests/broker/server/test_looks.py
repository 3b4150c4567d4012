"""Plain connections are read while the loop looks at the sockets and written to for a whole turn,
by both twins; others as asyncio does.
"""

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import pytest

from jsctl.broker.accel.choice import PURE_VARIABLE, compiled, socket_loops
from jsctl.broker.options import Options
from jsctl.broker.server.connection import READ_ERROR, Connection
from jsctl.broker.server.looks import Looks, made_looks
from jsctl.broker.turn import ConnKind
from tests.broker.server.harness import LOCAL, LineClient, Running, looking, running
from tests.support.waiting import eventually

OPTIONS = Options(listen=LOCAL)


@pytest.fixture(autouse=True, params=["compiled", "pure"])
def twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which one runs."""
    name = str(request.param)
    monkeypatch.setenv(PURE_VARIABLE, "1" if name == "pure" else "0")
    if name == "compiled" and socket_loops() is None:
        pytest.skip("it is not built, or not for this system")
    return name


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


def plain_of(server: Running) -> dict[int, int]:
    return server.shared.plain


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
def passed_on(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What was not given to the system straight: how much, and how much of it was."""
    sizes: list[tuple[int, int]] = []
    write = Connection.write

    def noting(self: Connection, data: bytes, sent: int = 0) -> None:
        sizes.append((len(data), sent))
        write(self, data, sent)

    monkeypatch.setattr(Connection, "write", noting)
    return sizes


PONG = len(b"PONG\r\n")


@looking
async def test_answers_of_plain_connections_go_straight_to_the_system(
    passed_on: list[tuple[int, int]],
) -> None:
    async with greeted() as (server, client):
        assert await client.ask("PING") == "PONG"
        assert not passed_on
        assert len(server.shared.direct) == 1


@looking
async def test_what_the_system_does_not_take_is_sent_first(
    passed_on: list[tuple[int, int]],
) -> None:
    """What is written behind it waits in the same row, and goes straight again when it is gone."""
    async with greeted() as (server, client):
        transport = client.writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        flood = 64 << 20
        client.writer.write(b"FLOOD %d\r\n" % flood)
        client.writer.write(b"PING\r\n" * 3)

        async def answered() -> bool:
            return bool(passed_on)

        await eventually(answered, "the flood is written", 30)
        assert 0 < passed_on[0][1] < passed_on[0][0] == flood
        assert not server.shared.direct
        transport.resume_reading()
        assert await client.reader.readexactly(flood) == b"x" * flood
        assert [await client.line() for _ in range(3)] == ["PONG"] * 3
        assert await client.ask("PING") == "PONG"
        behind = passed_on[1:]
        assert 0 < len(behind) <= 4 and set(behind) == {(PONG, 0)}
        assert len(server.shared.direct) == 1
        assert await client.ask("PING") == "PONG"
        assert passed_on[1:] == behind


@looking
async def test_who_does_not_keep_up_is_told_to_the_node() -> None:
    limits = replace(OPTIONS.edge, pending_bytes_high=100_000, pending_bytes_low=1_000)
    async with greeted(replace(OPTIONS, edge=limits)) as (server, client):
        transport = client.writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        flood = 64 << 20
        client.writer.write(b"FLOOD %d\r\n" % flood)

        async def told() -> list[int]:
            return [size for one in server.node.seen for _, size in one.pending]

        assert (await eventually(told, "it does not keep up", 30))[-1] > 100_000
        transport.resume_reading()
        await client.reader.readexactly(flood)

        async def keeps_up() -> bool:
            return (await told())[-1] <= 1_000

        await eventually(keeps_up, "it keeps up again", 30)


class SlowTransport(asyncio.Transport):
    """Keeps all that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.unsent = 0
        self.aborted = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """It is told by hand."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.unsent += len(data)

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.aborted = True


@looking
async def test_who_falls_behind_again_has_a_whole_deadline_again() -> None:
    async with running(OPTIONS) as server:
        transport = SlowTransport()
        connection = Connection(server.shared, ConnKind.CLIENT)
        connection.connection_made(transport)
        connection.write(b"x" * 1000)
        connection.pause_writing()
        transport.unsent = 10
        connection.resume_writing()
        connection.write(b"x" * 1000)
        connection.pause_writing()
        assert not transport.aborted, "there was no time to send the first ten"
        connection.abort("the test ends")


@looking
async def test_who_is_closed_in_the_middle_of_what_is_sent_gets_all_of_it() -> None:
    async with greeted() as (server, client):
        flood = 16 << 20
        client.writer.write(b"FLOOD %d\r\nQUIT\r\nPING\r\n" % flood)
        sent = await client.reader.read(-1)
        assert sent[:flood] == b"x" * flood
        assert sent[flood:] in (b"BYE\r\n", b"PONG\r\nBYE\r\n", b"BYE\r\nPONG\r\n")
        assert not server.shared.direct


@looking
async def test_a_write_to_who_broke_off_ends_nothing_else() -> None:
    async with greeted() as (server, client):
        second = await server.client()
        await second.line()
        reset(client)
        server.shared.write([(conn, b"MORE\r\n") for conn in plain_of(server).values()])
        assert await second.line() == "MORE"
        assert await second.ask("PING") == "PONG"
        assert await reason_of(server) == READ_ERROR


@looking
async def test_what_is_for_nobody_is_dropped() -> None:
    async with greeted() as (server, client):
        server.shared.write([(999, b"MORE\r\n")])
        assert await client.ask("PING") == "PONG"


@looking
async def test_once_a_turn_has_enough_reads_are_small() -> None:
    limits = replace(OPTIONS.edge, turn_bytes_high=0, read_bytes_min=3)
    async with greeted(replace(OPTIONS, edge=limits)) as (server, client):
        client.writer.write(b"PING\r\n" * 20)
        assert [await client.line() for _ in range(20)] == ["PONG"] * 20
        assert {len(chunk) for one in server.node.seen for _, chunk in one.chunks} == {3}


def test_the_twin_is_the_one_that_is_asked_for(twin: str) -> None:
    with made_looks() as looks:
        assert (type(looks) is Looks) is (twin == "pure" or compiled() is None)
        assert looks.select(0) == []
