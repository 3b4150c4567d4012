"""Every route between two servers goes through here, and may be cut: bytes stay where they are,
connections stay open, as with a network that carries nothing. What waited arrives when it heals."""

import asyncio
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from jsctl.testing import Cluster
from jsctl.testing.broker import HOST, ReservedPort

CHUNK = 1 << 16
LISTEN = re.compile(rf'listen: "{re.escape(HOST)}:(\d+)"')
ROUTES = re.compile(r"routes: \[[^\]]*\]")


class Direction:
    """What goes from one server to another, over all their connections."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Bytes of one connection, until it ends."""
        try:
            while data := await reader.read(CHUNK):
                await self.open.wait()
                writer.write(data)
                await writer.drain()
            await self.open.wait()
        except OSError:
            pass  # One end is gone; the other hears of it now.
        finally:
            writer.close()


class Links:
    """All directions between the servers of a cluster; a loop of its own, in a thread."""

    def __init__(self, cluster: Cluster) -> None:
        self.names = list(cluster.names)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._directions: dict[tuple[str, str], Direction] = {}
        self._servers: list[asyncio.Server] = []
        self._closed_port = ReservedPort()
        self._thread.start()
        ports = asyncio.run_coroutine_threadsafe(self._begin(cluster), self._loop).result()
        self._configure(cluster, ports)

    async def _begin(self, cluster: Cluster) -> dict[tuple[str, str], int]:
        ports = {}
        for one in self.names:
            for other in self.names:
                if one != other:
                    self._directions[(one, other)] = Direction()
        for one, other in self._directions:
            found = LISTEN.search(cluster[other].config)
            assert found, "each server listens for routes"
            ports[(one, other)] = await self._listen(one, other, int(found[1]))
        return ports

    async def _listen(self, one: str, other: str, target: int) -> int:
        async def dialled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there, back = self._directions[(one, other)], self._directions[(other, one)]
            await there.open.wait()
            try:
                far_reader, far_writer = await asyncio.open_connection(HOST, target)
            except OSError:
                writer.close()
                return
            async with asyncio.TaskGroup() as both:
                both.create_task(there.carry(reader, far_writer))
                both.create_task(back.carry(far_reader, writer))

        server = await asyncio.start_server(dialled, HOST, 0)
        self._servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    def _configure(self, cluster: Cluster, ports: dict[tuple[str, str], int]) -> None:
        """Servers know no other way to each other: the address that they advertise is nobody's."""
        for broker in cluster:
            mine = [ports[(broker.name, other)] for other in self.names if other != broker.name]
            urls = ", ".join(f'"nats://{HOST}:{port}"' for port in mine)
            nowhere = f'advertise: "{HOST}:{self._closed_port.number}"'
            broker.config = ROUTES.sub(f"routes: [{urls}], {nowhere}", broker.config)

    def cut(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Carry nothing from the first to the second of each pair."""
        self._set(pairs, False)

    def isolate(self, name: str) -> None:
        """Nothing goes in or out."""
        self.cut(pair for pair in self._directions if name in pair)

    def split(self, side: Iterable[str]) -> None:
        """Those on one side hear nothing of those on the other."""
        inside = set(side)
        self.cut(pair for pair in self._directions if len(inside & set(pair)) == 1)

    def heal(self) -> None:
        """Everything goes everywhere."""
        self._set(list(self._directions), True)

    def _set(self, pairs: Iterable[tuple[str, str]], is_open: bool) -> None:
        chosen = [self._directions[pair] for pair in pairs]

        def change() -> None:
            for one in chosen:
                one.open.set() if is_open else one.open.clear()

        self._loop.call_soon_threadsafe(change)

    def close(self) -> None:
        """End all connections."""

        async def end() -> None:
            for server in self._servers:
                server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        self._closed_port.release()


@contextmanager
def links(cluster: Cluster) -> Iterator[Links]:
    """Of a cluster that has not been started yet."""
    made = Links(cluster)
    try:
        yield made
    finally:
        made.close()
