"""A SOCKS5 proxy on loopback, as RFC 1928 has it: no login, CONNECT only."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.relay import pass_on, served

REFUSED = b"\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00"
GRANTED = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"


class SocksProxy:
    """Its URL, and to where it made connections."""

    def __init__(self) -> None:
        self.url = ""
        self.targets: list[tuple[str, int]] = []

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        methods = (await reader.readexactly(2))[1]
        await reader.readexactly(methods)
        writer.write(b"\x05\x00")
        kind = (await reader.readexactly(4))[3]
        size = 4 if kind == 1 else (await reader.readexactly(1))[0]
        raw = await reader.readexactly(size)
        host = ".".join(str(byte) for byte in raw) if kind == 1 else raw.decode()
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.targets.append((host, port))
        try:
            there = await asyncio.open_connection(host, port)
        except OSError:
            writer.write(REFUSED)
            writer.close()
            return
        writer.write(GRANTED)
        await pass_on(reader, writer, there)


@contextmanager
def socks_proxy() -> Iterator[SocksProxy]:
    """Runs one in a thread."""
    proxy = SocksProxy()
    with served(proxy._serve) as port:
        proxy.url = f"socks5://127.0.0.1:{port}"
        yield proxy
