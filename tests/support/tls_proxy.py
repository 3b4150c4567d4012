"""A proxy with TLS on loopback: it decrypts, and passes on bytes as they are."""

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.support.certificates import make_certificates


class TlsProxy:
    """Its port, and the one of the server behind it, which may be known later."""

    def __init__(self) -> None:
        self.port = 0
        self.behind = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        there = await asyncio.open_connection("127.0.0.1", self.behind)
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
def tls_proxy(place: Path) -> Iterator[TlsProxy]:
    """Runs one in a thread; `place` gets its certificates."""
    make_certificates(place)
    secured = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    secured.load_cert_chain(place / "cert.pem", place / "key.pem")
    proxy, ready, ends = TlsProxy(), threading.Event(), list[Callable[[], object]]()

    async def run() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        ends.append(partial(loop.call_soon_threadsafe, stop.set))
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=secured)
        proxy.port = server.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        server.close()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    ready.wait()
    try:
        yield proxy
    finally:
        ends[0]()
        thread.join()
