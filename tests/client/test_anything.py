"""Messages of anybody: none of them ends the reading, or is taken for a word of the server."""

from collections.abc import Iterator

import pytest
from nats.errors import MaxPayloadError

from jsctl.api.stream import StreamConfig
from jsctl.api.times import SECOND_NS
from jsctl.client import headers as block_of_headers
from jsctl.client.connection import connect
from jsctl.client.headers import Headers
from jsctl.client.manager import open_manager
from jsctl.client.reading import BATCH, read_stream
from jsctl.commands.toolkit.content.bodies import header_lines
from jsctl.settings import Context, Settings
from jsctl.testing import RealServer
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.processes

BLOCKS = (
    b"NATS/1.0",
    b"NATS/1.0 ",
    b"NATS/1.0\r\n",
    b"NATS/1.0 \xff\xff\xff\r\n\r\n",
    b"NATS/1.0 503 \xff\r\n\r\n",
    b"NATS/1.0\r\n\xff: \xff\r\n: x\r\nx\r\n\r\n",
    b"\xff",
)


@pytest.fixture(scope="module")
def here() -> Iterator[Settings]:
    """One server: what is published comes in its order, and finds a stream that was just made."""
    with RealServer(jetstream=True) as server:
        yield Settings(connection=Context(url=server.url), timeout_ns=20 * SECOND_NS)


async def test_no_message_ends_the_reading(here: Settings) -> None:
    wire = WireClient(here.urls[0])
    async with connect(here) as client:
        subscription = await client.subscribe("odd.>")
        await client.flush()
        for block in BLOCKS:
            wire.publish(b"odd.a", b"x", headers=block)
        wire.publish(b"odd.\xff", b"x", b"answers.\xfe")
        wire.publish(b"odd.end", b"")
        found = [await subscription.next_msg(timeout=30) for _ in range(len(BLOCKS) + 2)]
    wire.close()
    assert [one.subject for one in found] == ["odd.a"] * len(BLOCKS) + ["odd.\ufffd", "odd.end"]


async def test_a_header_may_have_the_name_of_a_status(here: Settings) -> None:
    async with open_manager(here) as manager:
        await manager.create_stream(StreamConfig(name="HS", subjects=("hs",), allow_direct=True))
        for status in ("503", "404", "shipped"):
            await manager.store("hs", status.encode(), {"Status": status})
        direct = [await manager.direct_message("HS", seq=seq) for seq in (1, 2, 3)]
        read = [one async for one in read_stream(manager, "HS")]
        await manager.delete_stream("HS")
    assert [one.data for one in direct] == [b"503", b"404", b"shipped"]
    assert [one.headers["Status"] for one in read] == ["503", "404", "shipped"]


async def test_what_a_server_says_is_shown_by_its_plain_name(here: Settings) -> None:
    wire = WireClient(here.urls[0])
    async with connect(here) as client:
        subscription = await client.subscribe("said")
        await client.flush()
        wire.publish(b"said", b"x", headers=b"NATS/1.0 503 Nobody\r\nA: 1\r\n\r\n")
        found = await subscription.next_msg(timeout=30)
    wire.close()
    assert header_lines(found.headers) == ["A: 1", "Description: Nobody", "Status: 503"]


def test_a_status_stands_in_the_first_line() -> None:
    status_of = block_of_headers.status_of
    blocks = {
        b"NATS/1.0 503\r\n\r\n": "503",
        b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 1\r\n\r\n": "100",
        b"NATS/1.0\r\nStatus: 503\r\n\r\n": "",
        b"NATS/1.0 5\r\n\r\n": "",
        b"NATS/1.0 \xb2\xb2\xb2\r\n\r\n": "",
    }
    assert {block: status_of(Headers({"Status": "503"}, block)) for block in blocks} == blocks
    assert status_of(None) == status_of({"Status": "503"}) == ""


async def test_what_is_removed_while_it_is_read_is_not_waited_for(here: Settings) -> None:
    async with open_manager(here) as manager:
        await manager.create_stream(StreamConfig(name="RM", subjects=("rm",)))
        for _ in range(BATCH + 1):
            await manager.client.publish("rm", b"")
        await manager.store("rm", b"")
        quick = manager.with_timeout(500_000_000)
        found: list[int] = []
        async for one in read_stream(quick, "RM"):
            found.append(one.seq)
            if one.seq == BATCH:
                await manager.purge("RM")
        await manager.delete_stream("RM")
    assert found == [*range(1, BATCH + 1)]


async def test_headers_count_where_a_message_is_too_large(here: Settings) -> None:
    """The server would close the connection, and a service would end by one request."""
    async with connect(here) as client:
        subscription = await client.subscribe("echo")
        body = bytes(client.max_payload)
        for headers in (Headers.of([("A", "1")]), {"A": "1"}):
            with pytest.raises(MaxPayloadError):
                await client.publish("echo", body, headers=headers)
        await client.publish("echo", body)
        assert (await subscription.next_msg(timeout=30)).data == body
