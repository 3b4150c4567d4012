"""Ways between servers that lead through a proxy: they stall, break, and are long."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jsctl.testing import HOST
from tests.faults.links import CHUNK, Direction

WAITING_MAX = 256
"""Chunks that are on a long way at a time."""


class Lane(Direction):
    """One direction of a way; what comes arrives `delay_s` later."""

    def __init__(self) -> None:
        super().__init__()
        self.delay_s = 0.0

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Bytes of one connection, until it ends."""
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(WAITING_MAX)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._take(reader, waiting))
            both.create_task(self._give(waiting, writer))

    async def _take(
        self, reader: asyncio.StreamReader, waiting: asyncio.Queue[tuple[float, bytes]]
    ) -> None:
        clock, data = asyncio.get_running_loop().time, b"begin"
        while data:
            await self.open.wait()
            try:
                data = await reader.read(CHUNK)
            except OSError:
                data = b""
            await waiting.put((clock() + self.delay_s, data))

    async def _give(
        self, waiting: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter
    ) -> None:
        loop, gone = asyncio.get_running_loop(), False
        while True:
            due, data = await waiting.get()
            if due > loop.time():
                arrived = loop.create_future()
                loop.call_at(due, arrived.set_result, None)
                await arrived
            await self.open.wait()
            if not data:
                break
            try:
                if not gone:
                    writer.write(data)
                    await writer.drain()
            except OSError:
                gone = True  # What still comes is taken, so that its sender hears of the end.
        writer.close()


class Way:
    """What servers find in front of another one's port, which is `door`."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.door = 0
        self.there, self.back = Lane(), Lane()
        self.count = 0
        """Connections that came."""
        self._writers: list[asyncio.StreamWriter] = []

    async def dialed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Somebody connects."""
        self.count += 1
        await self.there.open.wait()
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self.target)
        except OSError:
            writer.close()
            return
        self._writers += [writer, far_writer]
        async with asyncio.TaskGroup() as both:
            both.create_task(self.there.carry(reader, far_writer))
            both.create_task(self.back.carry(far_reader, writer))

    def stall(self, stalled: bool) -> None:
        """Nothing passes, and connections stay; or all that waited does."""
        for one in (self.there, self.back):
            if stalled:
                one.open.clear()
            else:
                one.open.set()

    def lengthen(self, delay_s: float) -> None:
        """What comes from now on takes so long, in each direction."""
        self.there.delay_s = self.back.delay_s = delay_s

    def reset(self) -> None:
        """All connections end."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()


@asynccontextmanager
async def way(target: int) -> AsyncIterator[Way]:
    """One to a port of this machine."""
    made = Way(target)
    listener = await asyncio.start_server(made.dialed, HOST, 0)
    made.door = listener.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        made.stall(False)
        made.reset()
        listener.close()
