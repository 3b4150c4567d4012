"""Proxies of tests: a server in a thread that hands its connections on, byte for byte."""

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def pass_on(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    there: tuple[asyncio.StreamReader, asyncio.StreamWriter],
) -> None:
    """Between two connections, until both ways have ended."""
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
def served(serve: Serve, secured: ssl.SSLContext | None = None) -> Iterator[int]:
    """Runs it on loopback; its port."""
    loop, ready, ports = asyncio.new_event_loop(), threading.Event(), list[int]()
    stop = asyncio.Event()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=secured)
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        await stop.wait()
        server.close()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    ready.wait()
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
