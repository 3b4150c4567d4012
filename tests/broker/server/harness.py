"""A running edge with the echo node inside a test, and a line client for it."""

import asyncio
import io
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any
from weakref import WeakKeyDictionary, ref

from jsctl.broker.options import Listen, Options
from jsctl.broker.server.connection import Connections
from jsctl.broker.server.edge import Edge
from jsctl.broker.server.listener import TurnedAway, bind_all
from jsctl.broker.server.logfile import ServerLog
from jsctl.broker.server.looks import Looks, made_looks
from jsctl.broker.turn import Command
from tests.broker.server.echo_node import EchoNode
from tests.support.waiting import eventually

LOCAL = Listen("127.0.0.1", -1)
DEADLINE_S = 30.0
looks_of: WeakKeyDictionary[asyncio.AbstractEventLoop, Looks] = WeakKeyDictionary()
"""The selectors of loops that were made as the broker's is."""


def looking(test: Callable[..., Coroutine[None, None, None]]) -> Callable[..., None]:
    """Run a test in a loop as the broker's, which reads plain connections while it looks."""

    @wraps(test)
    def run(*words: Any, **fields: Any) -> None:
        with asyncio.Runner(loop_factory=_looking_loop) as runner:
            runner.run(test(*words, **fields))

    return run


def _looking_loop() -> asyncio.AbstractEventLoop:
    looks = made_looks()
    loop = asyncio.SelectorEventLoop(looks)
    looks_of[loop] = looks
    return loop


class Running:
    """The parts of one running edge."""

    def __init__(self, options: Options) -> None:
        self.output = io.StringIO()
        self.node = EchoNode(options)
        self.clients: list[LineClient] = []
        self.looks = looks_of.get(asyncio.get_running_loop())
        log = ServerLog(options.log, self.output)
        self.turned_away = TurnedAway(log)
        self.edge = Edge(self.node, options, log, str, self.looks)

    @property
    def shared(self) -> Connections:
        """What its connections share, in a loop that looks."""
        assert self.looks is not None and self.looks.served is not None
        return self.looks.served

    def port(self, kind: str = "client") -> int:
        address = self.edge.address(kind)
        assert address is not None
        return address[1]

    async def client(
        self, kind: str = "client", context: ssl.SSLContext | None = None
    ) -> "LineClient":
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port(kind), ssl=context, limit=1 << 20
        )
        client = LineClient(reader, writer)
        self.clients.append(client)
        return client


class LineClient:
    """Sends and reads lines."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def line(self) -> str:
        async with asyncio.timeout(DEADLINE_S):
            return (await self.reader.readline()).decode().rstrip("\r\n")

    async def ask(self, text: str) -> str:
        self.writer.write(text.encode() + b"\r\n")
        return await self.line()

    async def close(self) -> None:
        self.writer.close()


@asynccontextmanager
async def running(options: Options) -> AsyncIterator[Running]:
    """Serve until the block ends; then the node is asked to shut down."""
    server = Running(options)
    opened = asyncio.Event()

    async def body() -> None:
        server.edge.start()
        for kind in server.node.ports:
            await server.edge.open(kind)
        opened.set()

    server.edge.bind(bind_all(options, server.turned_away.add))
    try:
        async with asyncio.TaskGroup() as tasks, asyncio.timeout(3 * DEADLINE_S):
            task = tasks.create_task(server.edge.run(body))
            await opened.wait()
            try:
                yield server
            finally:
                server.edge.command(Command.SHUTDOWN)
            await task
    finally:
        server.edge.close()
        for client in server.clients:
            client.writer.transport.abort()


async def let_go(ended: ref[Any]) -> None:
    """Wait until nobody has what ended, the collector switched off."""

    async def gone() -> bool:
        return ended() is None

    await eventually(gone, "nobody has what ended")
