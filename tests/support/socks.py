"""A SOCKS5 proxy on loopback, as RFC 1928 has it: no login, CONNECT only."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

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
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_copy(reader, there[1]))
            tasks.create_task(_copy(there[0], writer))


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    except OSError:
        pass
    target.close()


@contextmanager
def socks_proxy() -> Iterator[SocksProxy]:
    """Runs one in a thread."""
    proxy, ready = SocksProxy(), threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def run() -> None:
        server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
        proxy.url = f"socks5://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        await stop.wait()
        server.close()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    ready.wait()
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
