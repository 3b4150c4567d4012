"""`server run`: a local server or cluster in the foreground, with accounts and contexts.

The servers are processes of their own. They end with this one, whichever way it ends: each has a
pipe for its input whose other end nobody else has. What they stored stays for the next run unless
`--clean` is given.
"""

import asyncio
import os
import shutil
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from jsctl import OWNER
from jsctl.api.errors import ApiError
from jsctl.client.connection import connect
from jsctl.commands.server.development.layout import (
    HOST,
    MONITOR_OFFSET,
    PORT_MAX,
    SERVERS_MAX,
    USERS,
    Layout,
    home_of,
    passwords_of,
)
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, JsctlError, UsageError
from jsctl.settings import Context, ContextStore, Settings

FIRST_PORT_MAX = PORT_MAX - MONITOR_OFFSET - SERVERS_MAX
START_S = 60.0
PAUSE_S = 0.05
END_S = 20.0
LOG_LINES = 5


async def run(call: Call) -> int:
    """Runs until Ctrl-C or a signal; 1 if a server ends by itself."""
    layout = _layout(call)
    _check_ports(layout)
    layout.write()
    store = ContextStore.default(call.environ)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _asked_by():
        loop.add_signal_handler(number, stop.set)
    theirs, ours = os.pipe()
    processes: dict[str, Process] = {}
    try:
        for node in layout.nodes:
            processes[node] = await _start(layout, node, call, theirs)
        await _ready(layout, processes, stop)
        if not stop.is_set():
            layout.store_contexts(store)
            if call.flag("select"):
                store.select(layout.name)
            _tell(call, layout)
        ended = await _wait(processes, stop)
    finally:
        await _end(processes)
        os.close(theirs)
        os.close(ours)
        if call.flag("clean"):
            layout.remove_contexts(store)
            shutil.rmtree(layout.directory, ignore_errors=True)
    if ended:
        raise JsctlError(f"server {ended} ended by itself: {_last_words(layout.log_path(ended))}")
    return 0


def _asked_by() -> Iterator[signal.Signals]:
    """Signals that ask for an end. A terminal that closes does, unless `nohup` was in front."""
    yield from (signal.SIGINT, signal.SIGTERM)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        yield signal.SIGHUP


def _layout(call: Call) -> Layout:
    name, servers, port = call.text("name"), call.integer("servers"), call.integer("port")
    if not 1 <= servers <= SERVERS_MAX:
        raise UsageError(f"--servers is a number from 1 to {SERVERS_MAX}, got {servers}")
    if not 1 <= port <= FIRST_PORT_MAX:
        raise UsageError(f"--port is a number from 1 to {FIRST_PORT_MAX}, got {port}")
    given = call.text("directory")
    directory = Path(given).expanduser().absolute() if given else home_of(call.environ, name)
    if call.flag("clean") and given and directory.exists() and any(directory.iterdir()):
        raise UsageError(f"--clean removes {directory} at the end, and it is not empty")
    return Layout(
        name=name,
        directory=directory,
        port=port,
        servers=servers,
        jetstream=call.flag("jetstream"),
        monitor=call.flag("http"),
        passwords=passwords_of(directory),
    )


def _check_ports(layout: Layout) -> None:
    """Raises Conflict for a port that somebody listens on."""
    for port in layout.ports:
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((HOST, port))
            except OSError as error:
                raise Conflict(
                    f"cannot listen on {HOST}:{port}: {error.strerror}",
                    hints=("--port takes another first port",),
                ) from None


async def _start(layout: Layout, node: str, call: Call, pipe: int) -> Process:
    command = (sys.executable, "-m", "jsctl", "broker", "-c", str(layout.config_path(node)))
    environ = {**os.environ, OWNER: "0"}
    if call.flag("verbose"):
        return await asyncio.create_subprocess_exec(*command, stdin=pipe, env=environ)
    handle = os.open(layout.log_path(node), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as log:
        return await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=log, stderr=log, env=environ, start_new_session=True
        )


async def _ready(layout: Layout, processes: dict[str, Process], stop: asyncio.Event) -> None:
    """Until every server takes a user, and JetStream has a leader. Raises JsctlError."""
    from jsctl.client.manager import Manager

    for at, node in enumerate(layout.nodes):
        url = f"nats://{HOST}:{layout.port + at}"
        context = Context(url=url, user="local", password=layout.passwords["local"])
        settings = Settings(connection=context)
        try:
            async with asyncio.timeout(START_S):
                while not stop.is_set():
                    if processes[node].returncode is not None:
                        words = _last_words(layout.log_path(node))
                        raise JsctlError(f"server {node} did not start: {words}")
                    with suppress(JsctlError, ApiError):
                        async with connect(settings) as client:
                            if layout.jetstream:
                                await Manager(client, settings).account_info()
                            break
                    await asyncio.sleep(PAUSE_S)
        except TimeoutError:
            words = _last_words(layout.log_path(node))
            raise JsctlError(f"server {node} is not ready after {START_S:g} s: {words}") from None


def _last_words(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "see above"
    return " | ".join(lines[-LOG_LINES:]) or f"{path} is empty"


def _tell(call: Call, layout: Layout) -> None:
    """Who one can be, and where things are."""
    if call.as_json:
        contexts = {user: layout.context_of(user) for user in USERS}
        document = {
            "name": layout.name,
            "url": layout.url,
            "contexts": contexts,
            "passwords": dict(layout.passwords),
            "directory": str(layout.directory),
        }
        call.output.json(document)
        call.output.stdout.flush()
        return
    kind = "Cluster" if layout.servers > 1 else "Server"
    lines = [f"Starting local development NATS {kind} instance: {layout.name}", ""]
    for user, label in (("local", "User"), ("service", "Service"), ("system", "System")):
        password, context = layout.passwords[user], layout.context_of(user)
        lines.append(
            f"{label + ' Credentials':>20}: User: {user:<7} Password: {password} Context: {context}"
        )
    lines.append(f"{'Server URLs':>20}: {layout.url}")
    if layout.monitor:
        lines.append(f"{'Monitoring':>20}: http://{HOST}:{layout.ports[-layout.servers]}")
    if layout.jetstream:
        lines.append(f"{'JetStream Storage':>20}: {layout.directory}")
    lines += ["", "Press Ctrl-C to stop.", ""]
    call.output.print("\n".join(lines))
    call.output.stdout.flush()


async def _wait(processes: dict[str, Process], stop: asyncio.Event) -> str:
    """The server that ended by itself; empty when it was asked to stop."""
    async with asyncio.TaskGroup() as group:
        watched = {group.create_task(one.wait()): node for node, one in processes.items()}
        asked = group.create_task(stop.wait())
        done, others = await asyncio.wait([*watched, asked], return_when=asyncio.FIRST_COMPLETED)
        for task in others:
            task.cancel()
    ended = [node for task, node in watched.items() if task in done]
    return "" if asked in done else ended[0]


async def _end(processes: dict[str, Process]) -> None:
    """Asks all to end, and ends those that do not."""
    for process in processes.values():
        with suppress(ProcessLookupError):
            process.terminate()
    for process in processes.values():
        try:
            async with asyncio.timeout(END_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
