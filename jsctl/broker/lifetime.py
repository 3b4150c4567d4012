"""One life of the server process: it opens, serves, takes a new configuration, and ends.

What it logs is what operators, supervisors and test tools of nats-server look for.
"""

import asyncio
import gc
import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from jsctl import __version__
from jsctl.broker import lazy
from jsctl.broker.accel.choice import chosen
from jsctl.broker.conf.check import check, start_warnings
from jsctl.broker.conf.reloading.plan import plan
from jsctl.broker.conf.units import host_text, size_text
from jsctl.broker.errors import BrokerError, ConfigError, ConfigErrors, Damaged
from jsctl.broker.login_options.operators import OperatorOptions
from jsctl.broker.machine import (
    check_room,
    complete,
    keep_limits,
    new_server_id,
    store_path,
    with_limits,
)
from jsctl.broker.options import (
    COMPATIBLE_API_LEVEL,
    COMPATIBLE_VERSION,
    AccountOptions,
    Options,
)
from jsctl.broker.server import signals
from jsctl.broker.server.edge import Edge
from jsctl.broker.server.files import RunFiles
from jsctl.broker.server.listener import Listener, TurnedAway, bind_all
from jsctl.broker.server.logfile import LoopMessages, ServerLog
from jsctl.broker.server.looks import Looks
from jsctl.broker.server.process import keep_memory
from jsctl.broker.server.turns import NodeLike
from jsctl.broker.turn import ClaimsChange, Command, LogLevel
from jsctl.dataclass import replace, write_ahead

if TYPE_CHECKING:
    from jsctl.broker.server.account_keeper import AccountKeeper

LOAD_AFTER_S = 0.1
"""How long a new server waits before it loads what requests need."""
WRITTEN_AT_ONCE = 32
"""Classes that are made ready for their first objects between two turns."""
COLLECT_AFTER = (20_000, 3, 130)
"""Thresholds of the collector: what a turn makes for some hundred messages is gone before it looks.
With the interpreter's own (700 objects) a fifth of a busy broker's time went into looking. The
second look is at what three first ones left, 60 ms of it; it cost as much in all with twenty of
them, but held up everybody for 180."""
SWITCH_S = 0.0001
"""How long the disk thread waits for a turn to let it go on; it does so some times for each sync,
and with the interpreter's own 5 ms every one of them could take a turn."""
STOPS = (
    "Internal error, the server stops: its state may be torn, and nothing of this turn was"
    " acknowledged; please report it:"
)
RULE = "-------------------------------------------"


class NodeMaker(Protocol):
    """Builds the node for complete options."""

    def __call__(self, options: Options, server_id: str, store: Path | None) -> NodeLike:
        """`store` is JetStream's directory, None without JetStream."""


Leave = Callable[[int], object]
"""Ends the process with a status; one that returns leaves the process to its owner."""


class Server:
    """One life of the server process. `read` reads the configuration again; raises ConfigError."""

    def __init__(
        self,
        options: Options,
        read: Callable[[], Options],
        make_node: NodeMaker,
        leave: Leave,
        looks: Looks,
        owner: int | None = None,
    ) -> None:
        """`owner` is a pipe: the server ends when nobody has its other end."""
        self._looks = looks
        self._owner = owner
        self._read = read
        self._make_node = make_node
        self._leave = leave
        self._ended = False
        self._status = 0
        self._server_id = new_server_id()
        self._configured = options
        """As it was read: a reload is compared with that."""
        self.options = complete(options, self._server_id)
        self._log = ServerLog(options.log)
        self._files = RunFiles(options.pid_file, options.ports_file_dir)
        self._edge: Edge | None = None
        self._listeners: dict[str, Listener] = {}
        self._keeper: AccountKeeper | None = None

    async def run(self) -> int:
        """Start, serve, end; the exit status is returned.

        What is made until the server is ready stays for its life: the collector waits for so
        long, and does not look at that again.
        """
        gc.disable()
        sys.setswitchinterval(SWITCH_S)
        messages = LoopMessages(self._log)
        logging.getLogger().addHandler(messages)
        failures: list[str] = []
        try:
            await self._serve()
        except* BrokerError as group:
            failures = [fatal_text(error, self.options) for error in leaves(group)]
        except* Exception as group:  # noqa: BLE001 (top of the process: a bug is told and ends it)
            failures = [STOPS, *trace_lines(group)]
        finally:
            # The interpreter need not look through what it is about to drop: that takes longer
            # than all the rest of the end, and clients take the server for gone already.
            gc.freeze()
            gc.enable()
            for text in failures:
                self._log.line(LogLevel.FATAL, text)
            logging.getLogger().removeHandler(messages)
            self._files.remove()
            self._close()
            self._log.close()
        return 1 if failures else self._status

    def _close(self) -> None:
        """Let everybody go."""
        if self._ended:
            self._leave(self._status)
        if self._edge is not None:
            self._edge.close()
        for listener in self._listeners.values():
            listener.close()

    async def _serve(self) -> None:
        self._banner()
        self._files.check()
        store = self._prepare_store()
        # Before the node, which takes most of the start: a taken port is told at once.
        self._listeners = bind_all(self.options, TurnedAway(self._log).add)
        node = self._make_node(self.options, self._server_id, store)
        if self.options.operator.enabled:
            from jsctl.broker.server.account_keeper import AccountKeeper  # in operator mode alone

            self._keeper = AccountKeeper(self, self._log)
        self._edge = edge = Edge(
            node, self.options, self._log, self._reload, self._looks, self._change_accounts
        )
        signals.install(self._heard)
        if self._owner is not None:
            signals.when_alone(self._owner, self._alone)
        self._files.write_pid()
        edge.bind(self._listeners)
        if self._keeper is not None:
            self._keeper.begin()
        reason, self._status = await edge.run(self._open)
        signals.uninstall()
        if self._keeper is not None:
            self._keeper.end()
        self._info(f"Server Exiting.. ({reason})")
        self._ended = True

    async def _open(self) -> None:
        """Recover, then let peers in, then clients."""
        edge = self._edge
        assert edge is not None
        if (monitor := edge.address("monitor")) is not None:
            scheme = edge.addresses.schemes["monitoring"]
            self._info(f"Starting {scheme} monitor on {host_text(*monitor)}")
        began = time.monotonic_ns()
        if self.options.jetstream.enabled:
            self._jetstream_lines()
        edge.start()
        if self.options.jetstream.enabled:
            self._info(f"Took {(time.monotonic_ns() - began) / 1e6:.3f}ms to start JetStream")
        if (cluster := edge.address("cluster")) is not None:
            await edge.open("cluster")
            self._info(f"Cluster name is {self.options.cluster.name}")
            self._info(f"Listening for route connections on {host_text(*cluster)}")
        if (gateway := edge.address("gateway")) is not None:
            await edge.open("gateway")
            self._info(f"Gateway name is {self.options.gateway.name}")
            self._info(f"Listening for gateways connections on {host_text(*gateway)}")
        if (leafnode := edge.address("leafnode")) is not None:
            await edge.open("leafnode")
            self._info(f"Listening for leafnode connections on {host_text(*leafnode)}")
        if monitor is not None:
            await edge.open("monitor")
        client = edge.address("client")
        assert client is not None
        await edge.open("client")
        self._info(f"Listening for client connections on {host_text(*client)}")
        if self.options.tls is not None:
            self._info("TLS required for client connections")
        self._files.write_ports(edge.addresses)
        gc.freeze()
        gc.set_threshold(*COLLECT_AFTER)
        gc.enable()
        self._info("Server is ready")
        loop = asyncio.get_running_loop()
        loop.call_soon(keep_memory)
        loop.call_later(LOAD_AFTER_S, self._load_ahead)

    def _load_ahead(self) -> None:
        """What the first request of a kind would wait for, one module between two turns, or some
        classes.

        As long as a module took others have the time: servers that have just found each other
        shake hands, and who is not told of a third one in time cannot go there when this one ends.
        The collector need not look through them later either.
        """
        began = time.monotonic()
        if lazy.ahead() or write_ahead(WRITTEN_AT_ONCE):
            pause_s = time.monotonic() - began
            asyncio.get_running_loop().call_later(pause_s, self._load_ahead)
        else:
            gc.freeze()
            self._log.line(LogLevel.DEBUG, "Loaded what requests need")

    def _info(self, text: str) -> None:
        self._log.line(LogLevel.INFO, text)

    def _banner(self) -> None:
        options = self.options
        self._info(f"Starting nats-server (jsctl {__version__})")
        self._info(f"  Version:  {COMPATIBLE_VERSION} (jsctl {__version__})")
        self._info("  Git:      [not set]")
        self._info(f"  Lane:     {chosen().name}")
        if options.clustered:
            self._info(f"  Cluster:  {options.cluster.name}")
        self._info(f"  Name:     {options.server_name}")
        if options.jetstream.enabled:
            from jsctl.broker.routing.setup import peer_id  # loaded late, with the node

            self._info(f"  Node:     {peer_id(options.server_name)}")
        self._info(f"  ID:       {self._server_id}")
        if options.config_file:
            self._info(f"Using configuration file: {options.config_file} ({options.config_digest})")
        found = [*start_warnings(options), *options.warnings]
        for warning in found:
            self._log.line(LogLevel.WARNING, warning)

    def _jetstream_lines(self) -> None:
        jetstream = self.options.jetstream
        self._info("Starting JetStream")
        self._info("---------------- JETSTREAM ----------------")
        self._info(f"  Strict:          {str(jetstream.strict).lower()}")
        self._info(f"  Max Memory:      {size_text(jetstream.memory_bytes_max)}")
        self._info(f"  Max Storage:     {size_text(jetstream.store_bytes_max)}")
        self._info(f'  Store Directory: "{store_path(jetstream)}"')
        if jetstream.domain:
            self._info(f"  Domain:          {jetstream.domain}")
        self._info(f"  Sync:            {jetstream.sync.value}")
        self._info(f"  API Level:       {COMPATIBLE_API_LEVEL}")
        self._info(RULE)

    def _prepare_store(self) -> Path | None:
        """Make JetStream's directory. Raises ConfigError in the words that tools look for."""
        if not self.options.jetstream.enabled:
            return None
        path = store_path(self.options.jetstream)
        for directory in (path.parent, path):
            if directory.exists() and not directory.is_dir():
                raise ConfigError(
                    "Can't start JetStream: storage directory is not a directory",
                    place=str(directory),
                    remedy="choose another store_dir",
                )
        try:
            path.mkdir(mode=0o750, parents=True, exist_ok=True)
            probe = path / f".probe.{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise ConfigError(
                f"Can't start JetStream: could not create storage directory - {error.strerror}",
                place=str(path),
                remedy="choose a store_dir that can be written",
            ) from error
        self.options = with_limits(self.options)
        check_room(self.options)
        return path

    def _heard(self, number: signal.Signals) -> None:
        assert self._edge is not None
        actions: dict[signal.Signals, Callable[[], object]] = {
            signal.SIGUSR1: self._reopen,
            signal.SIGHUP: self._reload,
        }
        if (action := actions.get(number)) is None:
            self._edge.heard(number)
        else:
            self._info(f'Trapped "{signals.HEARD[number]}" signal')
            action()

    def _alone(self) -> None:
        assert self._edge is not None
        self._info("Whoever started this server has ended")
        self._edge.command(Command.SHUTDOWN)

    def _reopen(self) -> None:
        if not self.options.log.file:
            self._info("File log re-open ignored, not a file logger")
            return
        try:
            self._log.reopen()
        except ConfigError as error:
            self._log.line(LogLevel.ERROR, str(error))
        else:
            self._info("File log re-opened")

    def _reload(self) -> str:
        """Read the configuration again; what is wrong leaves everything as it is, and is given."""
        try:
            self._take_configuration()
        except ConfigError as error:
            self._log.line(LogLevel.ERROR, f"Failed to reload server configuration: {error}")
            return str(error)
        digest = f" ({self.options.config_digest})" if self.options.config_digest else ""
        self._info(f"Reloaded server configuration{digest}")
        return ""

    # Accounts of JWTs: see `server.account_keeper`

    def _change_accounts(self, changes: list[ClaimsChange]) -> None:
        assert self._keeper is not None, "nobody asks for that without an operator"
        self._keeper.take(changes)

    def try_accounts(self, accounts: tuple[AccountOptions, ...]) -> None:
        """Raises ConfigError for those that would not work."""
        assert self._edge is not None
        self._edge.try_out_accounts(replace(self.options, accounts=accounts))

    def take_accounts(
        self, operator: OperatorOptions, accounts: tuple[AccountOptions, ...]
    ) -> None:
        """These count from now on, and are what a later reload is compared with."""
        assert self._edge is not None
        self._configured = replace(self._configured, operator=operator, accounts=accounts)
        self.options = replace(self.options, operator=operator, accounts=accounts)
        self._edge.take_accounts(self.options)

    def begin(self, work: Coroutine[None, None, None]) -> None:
        """Have something done beside the turns."""
        assert self._edge is not None
        self._edge.spawn(work)

    def changed(self, told: list[tuple[int, str]]) -> None:
        """Tell the node what came of changes."""
        assert self._edge is not None
        self._edge.changed(told)

    def _take_configuration(self) -> None:
        """Whatever can fail is done before anything changes. Raises ConfigError."""
        edge = self._edge
        assert edge is not None
        read = self._read()
        if errors := check(read):
            raise ConfigErrors(errors)
        wanted = plan(self._configured, read, edge.bound())
        if wanted.refusal:
            raise ConfigError(wanted.refusal)
        options = complete(wanted.options, self._server_id)
        limited = keep_limits(options, self.options)
        check_room(limited)
        renewal = edge.try_out(limited)
        log_file = self._log.opened(options.log)
        for line in dict.fromkeys([*wanted.lines, *renewal.lines]):
            self._info(line)
        for warning in read.warnings:
            if warning not in self._configured.warnings:
                self._log.line(LogLevel.WARNING, warning)
        self._log.switch(options.log, log_file)
        self._configured, self.options = wanted.options, renewal.options
        edge.reload(renewal)
        if self._keeper is not None:
            self._keeper.begin()
        try:
            self._files.change(options.pid_file, options.ports_file_dir, edge.addresses)
        except ConfigError as error:
            self._log.line(LogLevel.ERROR, str(error))


def leaves(group: BaseExceptionGroup[BrokerError]) -> list[BrokerError]:
    """The errors in a group of groups."""
    found: list[BrokerError] = []
    for error in group.exceptions:
        found += leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def trace_lines(group: BaseException) -> list[str]:
    """A traceback, one line of the log for each of its lines."""
    return "".join(traceback.format_exception(group)).splitlines()


def fatal_text(error: BrokerError, options: Options) -> str:
    """The line that a server dies with."""
    if isinstance(error, Damaged):
        return f"{store_path(options.jetstream)}/{error}"
    if isinstance(error, ConfigError) and error.place and error.place not in error.reason:
        tail = f"{error.place}; {error.remedy}" if error.remedy else error.place
        return f"{error.reason} ({tail})"
    return str(error)
