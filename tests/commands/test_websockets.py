"""Servers that are reached by websockets, or are none.

The library asks in a way that its websocket client calls outdated.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jsctl.client.connection import connect
from jsctl.settings import Context, Settings
from jsctl.testing import RealServer
from tests.commands.conftest import Result
from tests.commands.test_silent_servers import greet
from tests.support.ports import free_port
from tests.support.relay import served
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes


def asked(servers: str, *words: str, path: str = "") -> Result:
    """By a process of its own: one that has asked others does not load what websockets need."""
    command = [sys.executable, "-m", "jsctl", "-s", servers, "--timeout", "1s"]
    found = subprocess.run(
        [*command, *(words or ("stream", "ls"))],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Result(found.returncode, found.stdout, found.stderr)


@pytest.mark.parametrize(
    ("servers", "why"),
    [
        (
            "ws://AT",
            "nats: no servers available for connection\n  ws://AT: no websocket is there\n",
        ),
        (
            "WS://AT",
            "nats: no servers available for connection\n  WS://AT: no websocket is there\n",
        ),
        ("wss://AT", "nats: tls error: WRONG_VERSION_NUMBER\n  wss://AT: no TLS is spoken there\n"),
    ],
)
def test_a_server_that_is_no_websocket_is_an_error_of_two_lines(servers: str, why: str) -> None:
    with served(greet) as port:
        at = f"127.0.0.1:{port}"
        found = asked(servers.replace("AT", at))
    assert found == Result(1, "", "jsctl: error: setup failed: " + why.replace("AT", at))


def test_both_kinds_of_urls_are_not_mixed() -> None:
    found = asked("ws://127.0.0.1:1,nats://127.0.0.1:2")
    assert (found.code, found.out) == (1, "")
    assert found.err == (
        "jsctl: error: nats: mixing of websocket and non websocket URLs is not allowed\n"
        "  ws://127.0.0.1:1, nats://127.0.0.1:2\n"
    )


def test_a_package_without_websockets_says_what_brings_them(tmp_path: Path) -> None:
    (tmp_path / "aiohttp.py").write_text("raise ImportError('not there')")
    found = asked("ws://127.0.0.1:1", path=str(tmp_path))
    assert found == Result(
        1, "", "jsctl: error: a websocket needs aiohttp: pip install 'jsctl[web]'\n"
    )


WEBSOCKET = """
websocket { listen: "127.0.0.1:PORT", no_tls: true }
"""


def test_a_stream_is_copied_to_a_server_that_is_reached_by_websocket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What websockets need was left out for the first server, and is loaded for the second."""
    port = free_port()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    contexts = tmp_path / "nats" / "context"
    contexts.mkdir(parents=True)
    (contexts / "there.json").write_text(f'{{"url": "ws://127.0.0.1:{port}"}}')
    config = WEBSOCKET.replace("PORT", str(port))
    with RealServer(config=config, jetstream=True) as server:
        made = asked(server.url, "stream", "add", "S", "--subjects", "s", "--defaults")
        assert made.code == 0, made
        copied = asked(server.url, "stream", "copy", "S", "T", "--subjects", "t", "--to", "there")
        assert "Stream T was created" in copied.out, copied


def test_a_benchmark_wants_another_url() -> None:
    found = asked("ws://127.0.0.1:1", "bench", "js", "consume", "--stream", "S")
    assert found == Result(
        1,
        "",
        "jsctl: error: a benchmark does not go through websockets\n"
        "  name a nats:// or tls:// URL in place of ws://127.0.0.1:1\n",
    )


@pytest.mark.filterwarnings("ignore:parameter 'timeout' of type:DeprecationWarning")
async def test_who_came_by_websocket_comes_back_when_the_server_does() -> None:
    port = free_port()
    where = Context(url=f"ws://127.0.0.1:{port}")
    with RealServer(config=WEBSOCKET.replace("PORT", str(port))) as server:
        async with connect(Settings(connection=where)) as client:
            heard = await client.subscribe("there")
            await client.flush()
            tried = client.tried
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(wait_for, lambda: client.tried > tried + 1, "tried in vain")
            await asyncio.to_thread(server.start)
            await asyncio.to_thread(wait_for, lambda: client.is_connected, "connected again")
            await client.publish("there", b"again")
            assert (await heard.next_msg(timeout=30)).data == b"again"
