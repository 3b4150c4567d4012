"""A first connection: each server is tried once."""

import asyncio
import json

import pytest

from jsctl.client.connection import connect
from jsctl.errors import JsctlError
from jsctl.settings import Context, Settings

INFO = b"INFO " + json.dumps({"server_id": "N", "max_payload": 1024}).encode() + b"\r\n"
FULL = INFO + b"-ERR 'maximum connections exceeded'\r\n"


class Servers:
    """Some that listen on ports of their own, and who came to each."""

    def __init__(self) -> None:
        self.came: list[str] = []
        self.urls: dict[str, str] = {}
        self._open: list[asyncio.Server] = []

    async def listen(self, name: str, refusal: bytes | None = None) -> None:
        """One more, which takes everybody, or says something else and hangs up."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.came.append(name)
            writer.write(INFO if refusal is None else refusal)
            while refusal is None and (line := await reader.readline()):
                if line == b"PING\r\n":
                    writer.write(b"PONG\r\n")
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self._open.append(server)
        self.urls[name] = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"

    def settings(self) -> Settings:
        """All of them, in any order: the library shuffles them."""
        return Settings(connection=Context(url=",".join(self.urls.values())))

    def close(self) -> None:
        """Nobody listens any more."""
        for one in self._open:
            one.close()


@pytest.mark.parametrize("refusal", [b"", FULL], ids=["silent", "full"])
@pytest.mark.parametrize("count", [1, 3])
async def test_each_server_is_tried_once(count: int, refusal: bytes) -> None:
    servers = Servers()
    for number in range(count):
        await servers.listen(f"n{number}", refusal)
    with pytest.raises(JsctlError, match=r"no servers available|unexpected EOF"):
        async with connect(servers.settings()):
            pass
    servers.close()
    assert sorted(servers.came) == sorted(servers.urls)


async def test_those_that_refuse_are_passed_over() -> None:
    """Each tells so, and ends the connection: that is one try, not two."""
    servers = Servers()
    for name in ("full", "full too", "full as well"):
        await servers.listen(name, FULL)
    await servers.listen("free")
    for _ in range(5):
        servers.came.clear()
        async with connect(servers.settings()) as client:
            assert client.is_connected
        assert servers.came[-1] == "free" and len(servers.came) == len(set(servers.came))
    servers.close()
