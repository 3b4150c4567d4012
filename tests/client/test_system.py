"""Facts about servers: over the system account and over monitoring ports."""

import asyncio
import contextlib
import json

import pytest
from nats.aio.msg import Msg

from jsctl.api.monitoring.health import Healthz
from jsctl.api.monitoring.jsz import Jsz
from jsctl.api.monitoring.statsz import Statsz
from jsctl.api.monitoring.varz import Varz
from jsctl.api.server import EventFilterOptions
from jsctl.client import system as asking
from jsctl.client.connection import connect
from jsctl.client.system import MonitorSystem, NatsSystem, open_system
from jsctl.errors import NotAllowed, Unreachable
from jsctl.settings import Settings
from jsctl.testing import Cluster
from tests.support.waiting import eventually

NAMES = {"n1", "n2", "n3"}


async def test_all_servers_answer(system_settings: Settings) -> None:
    async with connect(system_settings) as client:
        system = NatsSystem(client, system_settings)

        async def all_known() -> bool:
            return await system.count_servers() == 3

        # Who came last may be new to the one that answers.
        await eventually(all_known, "all servers are counted")
        pings = await system.gather("", expected=3)
        assert {reply.server.name for reply in pings} == NAMES
        assert all(reply.rtt_ns > 0 and reply.as_(Statsz).cores > 0 for reply in pings)
        reports = await system.gather("JSZ", {"raft": True}, expected=3)
        leaders = {reply.as_(Jsz).meta_cluster for reply in reports}
        assert len({meta.leader for meta in leaders if meta}) == 1
        one = EventFilterOptions(server_name="n2", exact_match=True)
        found = await system.gather("VARZ", where=one)
        assert [reply.as_(Varz).server_name for reply in found] == ["n2"]
        again = await system.gather("HEALTHZ", server_id=found[0].server.id)
        assert again[0].as_(Healthz).status == "ok"


async def test_ordinary_accounts_have_no_rights(settings: Settings) -> None:
    async with connect(settings) as client:
        with pytest.raises(NotAllowed, match="system privileges"):
            await NatsSystem(client, settings).gather("VARZ")


async def test_a_server_that_is_asked_on_two_ways_answers_once(settings: Settings) -> None:
    """As one behind a leaf node, with a link for the account and one for the system account."""
    async with connect(settings) as client:

        async def answer(message: Msg) -> None:
            for name in ("n1", "n1", "n2", "n3"):
                document = {"server": {"id": name, "name": name}, "data": {"connections": 1}}
                await client.publish(message.reply, json.dumps(document).encode())

        await client.subscribe("asked", cb=answer)
        found = await NatsSystem(client, settings).gather_on("asked", expected=3)
        assert [reply.server.name for reply in found] == ["n1", "n2", "n3"]


async def test_monitoring_ports_give_the_same(cluster: Cluster) -> None:
    urls = [broker.monitor_url for broker in cluster]
    system = open_system(None, Settings(monitor=tuple(urls)))
    assert isinstance(system, MonitorSystem)
    replies = await system.gather("JSZ", {"accounts": True})
    assert {reply.server.name for reply in replies} == NAMES
    assert all(reply.server.cluster == "C1" and reply.server.jetstream for reply in replies)
    assert all(reply.as_(Jsz).meta_cluster for reply in replies)
    where = EventFilterOptions(server_name="n1")
    assert [reply.server.name for reply in await system.gather("", where=where)] == ["n1"]
    with pytest.raises(Unreachable, match="no monitoring port answered"):
        await MonitorSystem(["http://127.0.0.1:1"], 0.5).gather("VARZ")


@pytest.mark.parametrize("body", [b"[1]", b'{"a":' * 100_000, b'{"a": NaN}'])
async def test_a_port_that_is_no_monitoring_port_does_not_answer(body: bytes) -> None:
    async def tell(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(tell, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        for where in (f"http://127.0.0.1:{port}", "http://127.0.0.1:99999"):
            for kind in ("", "JSZ"):
                with pytest.raises(Unreachable):
                    await MonitorSystem([where], 20.0).gather(kind)


@pytest.mark.parametrize("pause_s", [0.0, 0.02])
async def test_a_page_without_end_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, pause_s: float
) -> None:
    """It comes in time, part by part, and would keep all other servers' answers back."""
    monkeypatch.setattr(asking, "PAGE_BYTES_MAX", 1 << 20)
    monkeypatch.setattr(asking, "PAGE_TIMES", 1)

    async def tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n{")
        with contextlib.suppress(ConnectionError):
            while not reader.at_eof():
                writer.write(b" " * (1 if pause_s else 1 << 16))
                await writer.drain()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await reader.read(1)
        writer.close()

    async with await asyncio.start_server(tell, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(20):
            with pytest.raises(Unreachable):
                await MonitorSystem([f"http://127.0.0.1:{port}"], 1.0).gather("VARZ")
