"""The JetStream API of a real cluster through the manager."""

import asyncio
import json
import socket
import struct

import pytest

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import ApiError
from jsctl.api.stream import StreamConfig
from jsctl.api.words import AckPolicy
from jsctl.client.connection import connect
from jsctl.client.manager import Manager, as_request, open_manager
from jsctl.client.requests import api_prefix
from jsctl.errors import NotAllowed, Unreachable, UsageError
from jsctl.settings import Context, Settings
from jsctl.testing import Cluster
from tests.support.waiting import eventually

pytestmark = pytest.mark.of_peer


async def test_a_stream_from_birth_to_death(settings: Settings) -> None:
    async with open_manager(settings) as manager:
        made = await manager.create_stream(
            StreamConfig(name="M", subjects=("m.*",), num_replicas=3)
        )
        assert made.config.num_replicas == 3
        assert made.cluster is not None
        assert len(made.cluster.replicas) == 2
        for number in range(5):
            await manager.client.request(f"m.{number % 2}", b"x", headers={"A": "b"})
        message = await manager.message("M", seq=2)
        assert (message.subject, message.data) == ("m.1", b"x")
        assert message.hdrs.startswith(b"NATS/1.0\r\nA: b")
        assert (await manager.message("M", last_for="m.0")).seq == 5
        assert await manager.stream_subjects("M") == {"m.0": 3, "m.1": 2}
        await manager.delete_message("M", 1)
        assert await manager.purge("M", keep=1) == 3
        assert (await manager.stream_info("M")).state.messages == 1
        changed = await manager.update_stream(
            StreamConfig(name="M", subjects=("m.*",), num_replicas=3, max_msgs=9)
        )
        assert as_request(changed.config).metadata == {}

        async def listed() -> bool:
            return "M" in await manager.stream_names("m.1")

        await eventually(listed, "the list of names to have the stream")
        assert [one.config.name for one in (await manager.streams("m.1")).items] == ["M"]
        await manager.delete_stream("M")
        with pytest.raises(ApiError) as missing:
            await manager.stream_info("M")
        assert missing.value.err_code == 10059


async def test_consumers(settings: Settings) -> None:
    async with open_manager(settings) as manager:
        await manager.create_stream(StreamConfig(name="C", subjects=("c",), num_replicas=1))
        config = ConsumerConfig(name="X", durable_name="X", ack_policy=AckPolicy.EXPLICIT)
        assert (await manager.create_consumer("C", config)).name == "X"

        async def listed() -> bool:
            return await manager.consumer_names("C") == ["X"]

        # A consumer's leader may have it, and say so, before the leader of the meta group does.
        await eventually(listed, "the list of names to have the consumer")
        assert [one.name for one in (await manager.consumers("C")).items] == ["X"]
        await manager.delete_consumer("C", "X")
        assert (await manager.consumers("C")).items == []
        await manager.delete_stream("C")


async def test_many_streams_come_in_pages(settings: Settings) -> None:
    async with open_manager(settings) as manager:
        for number in range(260):
            name = f"P{number:03}"
            await manager.create_stream(StreamConfig(name=name, subjects=(name,), num_replicas=1))
        names = [f"P{number:03}" for number in range(260)]

        async def listed() -> bool:
            return set(names) <= set(await manager.stream_names())

        await eventually(listed, "the list of names to have all streams")
        listing = await manager.streams()
        found = [one.config.name for one in listing.items if one.config.name.startswith("P")]
        assert sorted(found) == names
        assert (listing.missing, listing.offline) == ((), {})
        for name in names:
            await manager.delete_stream(name)


async def test_account_and_level(settings: Settings) -> None:
    async with open_manager(settings) as manager:
        assert (await manager.account_info()).limits.max_streams == -1
        assert await manager.server_level() >= 5


async def test_silence_and_refusals(cluster: Cluster, settings: Settings) -> None:
    wrong = Settings(
        connection=Context(url=cluster.urls[0], jetstream_domain="nowhere"),
        timeout_ns=2_000_000_000,
    )
    async with open_manager(wrong) as manager:
        with pytest.raises(Unreachable, match="no responders"):
            await manager.stream_names()
    with pytest.raises(NotAllowed, match="Authorization Violation"):
        async with connect(
            Settings(connection=Context(url=cluster.urls[0], user="u", password="wrong"))
        ):
            pass
    with pytest.raises(Unreachable, match="no servers available"):
        async with connect(Settings(connection=Context(url="127.0.0.1:1"), timeout_ns=10**9)):
            pass
    with pytest.raises(UsageError, match="SOCKS"):
        async with connect(Settings(connection=Context(url="x", socks_proxy="socks5://y"))):
            pass


async def test_a_refusal_that_ends_in_a_reset_says_why() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"auth_required":true}\r\n')
        await reader.readline()
        own: socket.socket = writer.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.write(b"-ERR 'Authorization Violation'\r\n")
        await writer.drain()
        writer.transport.abort()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(NotAllowed, match="Authorization Violation"):
            async with connect(Settings(connection=Context(url=f"127.0.0.1:{port}", user="u"))):
                pass


async def test_traces_show_requests_and_answers(settings: Settings) -> None:
    lines: list[str] = []
    async with connect(settings) as client:
        traced = Settings(connection=settings.connection, trace=True)
        await Manager(client, traced, lines.append).stream_names()
    sent, body, heard = lines[:3]
    assert sent == ">>> $JS.API.STREAM.NAMES"
    assert json.loads(body) == {"offset": 0}
    assert heard.startswith("<<< $JS.API.STREAM.NAMES\n{")


def test_prefixes() -> None:
    assert api_prefix(Settings()) == b"$JS.API."
    assert api_prefix(Settings(connection=Context(jetstream_domain="hub"))) == b"$JS.hub.API."
    assert api_prefix(Settings(connection=Context(jetstream_api_prefix="my.js"))) == b"my.js."
