"""The monitoring port speaks HTTP/1.1 well enough for browsers, curl and scrapers."""

import asyncio
import contextlib
import json
import socket
import urllib.request
from typing import Any

import pytest

from jsctl.broker.options import MonitorOptions, Options
from tests.broker.server.harness import LOCAL, running
from tests.support.waiting import eventually


def options(base_path: str = "/", **more: Any) -> Options:
    monitoring = MonitorOptions(port=-1, base_path=base_path, **more)
    return Options(listen=LOCAL, monitoring=monitoring)


async def exchange(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(30):
        answer = await reader.read()
    writer.close()
    return answer


async def test_a_get_reaches_the_node_and_its_answer_the_client() -> None:
    async with running(options()) as server:
        url = f"http://127.0.0.1:{server.port('monitor')}/jsz?streams=1&acc=A%2BB&x="

        def fetch() -> tuple[str, object]:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.headers["Content-Type"], json.load(answer)

        kind, body = await asyncio.to_thread(fetch)
        assert kind == "application/json"
        assert body == {"path": "/jsz", "params": {"streams": "1", "acc": "A+B", "x": ""}}


async def test_connections_are_kept_and_answers_stay_in_order() -> None:
    async with running(options()) as server:
        requests = b"".join(
            b"GET /%d HTTP/1.1\r\nHost: x\r\n%s\r\n" % (n, b"Connection: close\r\n" * (n == 4))
            for n in range(5)
        )
        answer = await exchange(server.port("monitor"), requests)
        paths = [json.loads(part)["path"] for part in answer.split(b"\r\n\r\n") if part[:1] == b"{"
                 for part in [part.partition(b"HTTP/1.1")[0]]]  # fmt: skip
        assert paths == [f"/{n}" for n in range(5)]
        assert answer.count(b"HTTP/1.1 200 OK\r\n") == 5
        assert answer.count(b"Connection: close") == 1


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (b"nonsense\r\n\r\n", b"400 Bad Request"),
        (b"GET / SPDY/3\r\n\r\n", b"400 Bad Request"),
        (
            b"POST /varz HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
            b"405 Method Not Allowed",
        ),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", b"400 Bad Request"),
        (b"GET /" + b"x" * 20000, b"431 Request Header Fields Too Large"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400 Bad Request"),
        (b"GET /nope HTTP/1.0\r\n\r\n", b"404 Not Found"),
        (b"GET http://[bad HTTP/1.0\r\n\r\n", b"400 Bad Request"),
    ],
)
async def test_what_cannot_be_served(request_text: bytes, status: bytes) -> None:
    async with running(options()) as server:
        answer = await exchange(server.port("monitor"), request_text)
        assert answer.startswith(b"HTTP/1.1 " + status + b"\r\n")


@pytest.mark.parametrize("path", [b"//healthz", b"///healthz"])
async def test_slashes_too_many_are_one(path: bytes) -> None:
    """A probe of `//healthz` is not to be shown the first page, which is there in any case."""
    async with running(options()) as server:
        answer = await exchange(server.port("monitor"), b"GET %s?a=//b HTTP/1.0\r\n\r\n" % path)
        body = json.loads(answer.partition(b"\r\n\r\n")[2])
        assert body == {"path": "/healthz", "params": {"a": "//b"}}


async def test_head_and_callback() -> None:
    async with running(options()) as server:
        port = server.port("monitor")
        head = await exchange(port, b"HEAD /varz HTTP/1.0\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200") and head.endswith(b"\r\n\r\n")
        script = await exchange(port, b"GET /varz?callback=f HTTP/1.0\r\n\r\n")
        assert b"application/javascript" in script and b'f({"path": "/varz"' in script


async def test_web_pages_from_elsewhere_may_read_what_is_answered() -> None:
    """Dashboards that run in a browser ask servers themselves."""
    async with running(options()) as server:
        port = server.port("monitor")
        for method, readable in ((b"GET", True), (b"POST", False)):
            answer = await exchange(port, b"%s /varz HTTP/1.0\r\n\r\n" % method)
            assert (b"\r\nAccess-Control-Allow-Origin: *\r\n" in answer) == readable


async def test_the_base_path_is_left_to_the_node() -> None:
    """It cuts the path off; cut off here too, no page would be found."""
    async with running(options(base_path="/nats")) as server:
        inside = await exchange(server.port("monitor"), b"GET /nats/varz HTTP/1.0\r\n\r\n")
        assert b'{"path": "/nats/varz"' in inside


async def test_many_requests_at_once_are_answered_one_by_one() -> None:
    """Not one within the other: a few hundred would be more than the interpreter's stack takes."""
    async with running(options(base_path="/nats")) as server:
        outside = b"GET /x HTTP/1.1\r\nHost:\r\n\r\n" * 1000
        answer = await exchange(server.port("monitor"), outside + b"GET /x HTTP/1.0\r\n\r\n")
        assert answer.count(b"HTTP/1.1 ") == 1001


async def ends(reader: asyncio.StreamReader) -> bool:
    async with asyncio.timeout(30):
        try:
            return await reader.read() == b""
        except ConnectionError:
            return True


@pytest.mark.parametrize("said", [b"", b"GET /varz HT", b"GET /varz HTTP/1.1\r\nHost: x\r\nA: "])
async def test_half_a_request_is_not_waited_for(said: bytes) -> None:
    """However often something of it comes."""
    async with running(options(header_ns=300_000_000)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port("monitor"))
        writer.write(said)
        async with asyncio.timeout(30):
            with contextlib.suppress(ConnectionError):
                while not reader.at_eof():
                    writer.write(b"x" * bool(said))
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(0.05):
                            assert await reader.read() == b""
        writer.close()


async def test_a_peer_that_does_not_read_gets_no_more_answers() -> None:
    async with running(options(idle_ns=300_000_000)) as server:
        request = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % (b"x" * 8000)
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)  # The least that there is
        peer.connect(("127.0.0.1", server.port("monitor")))
        _, writer = await asyncio.open_connection(sock=peer, limit=1)

        async def ended() -> bool:
            writer.write(b"x")
            await writer.drain()
            return writer.is_closing()

        with contextlib.suppress(ConnectionError):
            for _ in range(20):
                writer.write(request * 100)
                await writer.drain()
            await eventually(ended, "the connection is given up")
        asked = sum(len(inputs.queries) for inputs in server.node.seen)
        assert 0 < asked < 1500, "answers are more than the sockets hold"
        writer.close()


async def test_what_a_peer_sends_that_does_not_read_stays_in_the_sockets() -> None:
    request = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % (b"x" * 8000)
    piece, sent = request * 8, 0
    async with running(options(header_ns=60_000_000_000)) as server:
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        peer.connect(("127.0.0.1", server.port("monitor")))
        peer.setblocking(False)
        loop = asyncio.get_running_loop()
        with contextlib.suppress(TimeoutError):
            while sent < 64 << 20:
                async with asyncio.timeout(0.5):
                    await loop.sock_sendall(peer, piece)
                sent += len(piece)
        peer.close()
    assert sent < 16 << 20, "the server takes in what it does not look at"


async def test_silent_connections_and_too_many_are_closed() -> None:
    async with running(options(header_ns=100_000_000, connections_max=1)) as server:
        port = server.port("monitor")
        first, writer = await asyncio.open_connection("127.0.0.1", port)
        second, other = await asyncio.open_connection("127.0.0.1", port)
        assert await ends(second)
        assert await ends(first)
        writer.close()
        other.close()
