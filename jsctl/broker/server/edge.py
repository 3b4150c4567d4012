"""The edge in one piece: listeners, turns, disk thread, verifier, monitoring, dials.

Performs what the node decides, in the order of `TurnOutputs`: disk, writes, closes, dials, the
rest. It decides nothing itself but how to end.
"""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence

from jsctl.broker.accel.choice import made_syncer
from jsctl.broker.errors import ConfigError
from jsctl.broker.options import PORT_OFF, Options
from jsctl.broker.server.certificates import Certificates, current_context
from jsctl.broker.server.connection import TLS_FAILED, Connection, Connections
from jsctl.broker.server.disk_worker import DiskWorker, Ran
from jsctl.broker.server.files import Addresses
from jsctl.broker.server.http.monitor import Monitor
from jsctl.broker.server.listener import Listener, reached_at
from jsctl.broker.server.logfile import ServerLog
from jsctl.broker.server.looks import Looks
from jsctl.broker.server.process import LongLived, MemoryRelief, give_back_memory
from jsctl.broker.server.routes import RouteDialer
from jsctl.broker.server.signals import HEARD
from jsctl.broker.server.tls import HandshakeFailed, ServerSide, peer_certificate
from jsctl.broker.server.turns import Clock, NodeLike, Reloadable, Turns
from jsctl.broker.server.verify import Verifier
from jsctl.broker.turn import (
    BriefBatch,
    ClaimsChange,
    Command,
    ConnKind,
    Dial,
    DiskBatch,
    LinkDial,
    LogLevel,
    Query,
    TurnOutputs,
)
from jsctl.broker.write_options import WriteLimit
from jsctl.dataclass import dataclass

NANOSECONDS = 1_000_000_000
NAMES = {
    "client": "nats",
    "monitor": "monitoring",
    "cluster": "cluster",
}
"""What a ports file calls each kind of listener that it tells of."""
COMMANDS = {
    signal.SIGINT: Command.SHUTDOWN,
    signal.SIGTERM: Command.SHUTDOWN,
    signal.SIGUSR2: Command.LAME_DUCK,
}


@dataclass(frozen=True, slots=True)
class Renewal:
    """Changed options, with what could be wrong with them made already."""

    options: Options
    certificates: Certificates
    dialer: RouteDialer
    lines: list[str]
    """What the log says of files that options cannot tell of."""


class Edge:
    """One running server. Create it in the loop, `bind`, `start`, `serve`, then `run`.

    `looks` is the selector of the loop, if it is one that reads by itself.
    """

    def __init__(
        self,
        node: NodeLike,
        options: Options,
        log: ServerLog,
        reload: Callable[[], str],
        looks: Looks | None = None,
        change_accounts: Callable[[list[ClaimsChange]], None] | None = None,
    ) -> None:
        """`reload` reads the configuration again for a request, and gives the reason if it does
        not; `change_accounts` has `changed` called. Raises ConfigError for useless certificates."""
        self.options = options
        self.addresses = Addresses()
        self._node = node
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._finished: asyncio.Future[tuple[str, int]] = self._loop.create_future()
        self._turns = Turns(node, self._perform, self._crashed, Clock(), options.edge)
        self._connections = Connections(self._turns, options.edge, _write_limits(options))
        if looks is not None:
            looks.serve(self._connections)
        self._syncer = made_syncer()
        if self._syncer is not None:
            told = self._syncer.fileno()
            self._connections.told[told] = self._synced_beside
            self._loop.add_reader(told, self._hear_syncer)
        here_ns_max = options.edge.loop_sync_ns_max
        self._disk = DiskWorker(self._synced, self._crashed, here_ns_max, self._syncer)
        waits = self._connections.by_id.__contains__
        self._verifier = Verifier(options.edge.verify_threads, self._verified, waits)
        self._monitor = Monitor(options.monitoring, self._ask)
        self._dialer = RouteDialer(self._connections, options.cluster)
        self._relief = MemoryRelief(self._loop.call_later)
        self._long_lived = LongLived(lambda: node.assets)
        self._tasks: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._lame = False
        self._reload_wanted = reload
        self._change_accounts = change_accounts
        self._unfinished: BriefBatch | None = None
        """What was synced here is durable, and the rest of it is to be done."""
        self._listeners: dict[str, Listener] = {}
        self._certificates = Certificates.read(options)
        monitor = self._certificates.monitor
        self._monitor_context = current_context(monitor) if monitor is not None else None

    def try_out(self, options: Options) -> "Renewal":
        """Everything that changed options need, for `reload`. Raises ConfigError for what would
        not work; nothing has changed then."""
        if isinstance(self._node, Reloadable):
            self._node.try_out(options)
        dialer = RouteDialer(self._connections, options.cluster)
        certificates = Certificates.read(options)
        return Renewal(options, certificates, dialer, certificates.changes(self._certificates))

    def reload(self, renewal: "Renewal") -> None:
        """Take changed options; open connections keep what secures them.

        Raises ConfigError for a bug that the node met on the way, and ends the server: what it
        would go on with is half of one configuration and half of the other.
        """
        self.options = options = renewal.options
        self._connections.write_limits = _write_limits(options)
        self._certificates, self._dialer = renewal.certificates, renewal.dialer
        if self._monitor_context is not None and renewal.certificates.monitor is not None:
            self._monitor_context.renew(renewal.certificates.monitor)
        self._reload_node(options, by_claims=False)
        if gone := renewal.certificates.turn_away(list(self._connections.by_id.values())):
            text = f"Disconnect {gone} clients due to pinned certs reload"
            self._log.line(LogLevel.INFO, text)
        self.command(Command.RELOAD)

    def _reload_node(self, options: Options, *, by_claims: bool) -> None:
        if isinstance(self._node, Reloadable):
            try:
                self._node.reload(options, by_claims=by_claims)
            except Exception as error:
                self._turns.stop()
                self._crashed(error)
                raise ConfigError("internal error, the server stops") from error

    def try_out_accounts(self, options: Options) -> None:
        """Raises ConfigError for accounts of JWTs that would not work."""
        if isinstance(self._node, Reloadable):
            self._node.try_out(options)

    def take_accounts(self, options: Options) -> None:
        """Take options whose accounts alone are others. Raises what `reload` raises."""
        self.options = options
        self._reload_node(options, by_claims=True)
        self.command(Command.RELOAD)

    def changed(self, told: list[tuple[int, str]]) -> None:
        """Changes of accounts were carried out, or refused: (ticket, what went wrong)."""
        self._turns.inputs.claimed += told
        self._turns.wake()

    def bind(self, listeners: dict[str, Listener]) -> None:
        """Take over the bound listeners and tell the node where they are."""
        if self.options.monitoring.https_port != PORT_OFF:
            self.addresses.schemes["monitoring"] = "https"
        self._listeners = listeners
        for kind, listener in listeners.items():
            host, port = listener.host, listener.port
            if kind in NAMES:
                self.addresses.bound[NAMES[kind]] = (host, port)
            self._node.listening(kind, host, port, reached_at(host))

    def bound(self) -> dict[str, tuple[str, int]]:
        """Host and real port of every listener."""
        return {kind: (one.host, one.port) for kind, one in self._listeners.items()}

    def address(self, kind: str) -> tuple[str, int] | None:
        """Host and real port of a listener."""
        listener = self._listeners.get(kind)
        return None if listener is None else (listener.host, listener.port)

    def start(self) -> None:
        """Recover the node. Raises what its `start` raises."""
        self._turns.start()

    async def open(self, kind: str) -> None:
        """Begin to accept on one listener. Raises ConfigError if the port was lost."""
        protocols: dict[str, Callable[[], asyncio.BaseProtocol]] = {
            "client": lambda: self._accept(ConnKind.CLIENT),
            "cluster": lambda: self._accept(ConnKind.ROUTE),
            "leafnode": lambda: self._accept(ConnKind.LEAF),
            "gateway": lambda: self._accept(ConnKind.GATEWAY),
            "monitor": self._watch,
        }
        context = self._monitor_context if kind == "monitor" else None
        handshake_s = self.options.monitoring.header_ns / NANOSECONDS
        await self._listeners[kind].open(protocols[kind], context, handshake_s)

    def _watch(self) -> asyncio.BaseProtocol:
        # Loaded with the port.
        from jsctl.broker.server.http.http_connection import MonitorConnection

        return MonitorConnection(self._monitor)

    async def run(self, body: Callable[[], Awaitable[None]]) -> tuple[str, int]:
        """Open everything by `body`, then serve until the node ends; why, and the exit status.

        Clients have been sent everything then, and are let go by `close` or with the process.
        """
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            await body()
            ending = await self._finished
            # Who sees his connection end may start the next server on this directory.
            await asyncio.to_thread(self._stop_disk)
            self._close_listeners()
            self._monitor.close()
            await self._drain()
            self._tasks = None
            for task in list(self._running):
                task.cancel()  # Handshakes and dials that still run have nobody to report to.
        return ending

    def close(self) -> None:
        """Release threads and sockets; safe to call in any state."""
        self._turns.stop()
        self._close_listeners()
        self._monitor.close()
        for connection in list(self._connections.by_id.values()):
            connection.abort("Server Shutdown")
        self._verifier.stop()
        self._stop_disk()
        if self._syncer is not None:
            self._loop.remove_reader(self._syncer.fileno())

    def command(self, command: Command) -> None:
        """Put an operator's wish to the node."""
        self._turns.inputs.commands.append(command)
        self._turns.wake()

    def heard(self, number: signal.Signals) -> None:
        """A signal that concerns the node; TERM is ignored while the lame duck swims."""
        self._log.line(LogLevel.INFO, f'Trapped "{HEARD[number]}" signal')
        if number is signal.SIGTERM and self._lame:
            return
        command = COMMANDS[number]
        self._lame = self._lame or command is Command.LAME_DUCK
        self.command(command)

    def _accept(self, kind: ConnKind) -> asyncio.BufferedProtocol:
        return AcceptedConnection(self._connections, kind, self._welcome)

    def _welcome(self, connection: Connection) -> None:
        """A socket was accepted: announce it, after its handshake where that comes first."""
        tls = self._certificates.of(connection.kind)
        if tls is None:
            connection.announce_plain()
        else:
            connection.pause_reading()
            self.spawn(self._secure(connection, tls))

    async def _secure(self, connection: Connection, tls: ServerSide) -> None:
        try:
            await tls.welcome(connection)
            self._show(connection, tls)
            if self._certificates.unpinned(connection):
                raise HandshakeFailed("certificate not pinned")  # since a reload meanwhile
        except HandshakeFailed as error:
            why = str(error) or "the other side closed the connection"
            self._log.line(LogLevel.ERROR, f"cid:{connection.id} - TLS handshake error: {why}")
            connection.abort(TLS_FAILED)
        except Exception:
            connection.abort(TLS_FAILED)
            raise

    def _show(self, connection: Connection, tls: ServerSide) -> None:
        """Tell the node whom the certificate of a client names, before the client says a word."""
        shown = connection.transport.get_extra_info("ssl_object") if connection.transport else None
        if tls.options.map_users and shown is not None:
            found = peer_certificate(shown.getpeercert() or {})
            self._turns.inputs.secured.append((connection.id, found))

    def _perform(self, outputs: TurnOutputs) -> None:
        brief = self._disk.may_run_here(outputs.disk)
        if brief is not None and not self._turns.is_alone(outputs):
            brief = None
        if brief is None and outputs.disk:
            self._hand_over(outputs.disk)
        if outputs.writes:
            self._connections.write(outputs.writes)
        if outputs.closes or outputs.dials:
            self._close_and_dial(outputs)
        if outputs.pauses or outputs.resumes:
            self._hold_and_release(outputs)
        self._perform_rare(outputs)
        self._relief.turned()
        self._long_lived.turned()
        if self._unfinished is not None:
            self._finish_batch()
        if brief is not None:
            self._sync_here(brief, asked=bool(outputs.writes))

    def _hand_over(self, batches: Sequence[DiskBatch]) -> None:
        """Let the disk have these while everybody is served."""
        self._finish_batch()
        beside = self._disk.may_run_beside(batches)
        for batch in batches:
            if batch is not beside:
                self._disk.submit(batch)
        if beside is not None:
            self._disk.begin_beside(beside)

    def _synced_beside(self) -> None:
        """What was synced beside the loop is durable, or has failed."""
        self._take(*self._disk.end_beside())

    def _take(self, batch: BriefBatch, ran: Ran) -> None:
        """The next turn hears what came of a batch."""
        if ran.reason is None:
            self._turns.inputs.synced.append(batch.ticket)
            self._unfinished = batch
        else:
            self._turns.inputs.disk_failed.append((batch.ticket, ran.reason))

    def _sync_here(self, batch: BriefBatch, *, asked: bool) -> None:
        """Everything else is sent: do what the disk thread would do, without the ways there and
        back, and go on with what waited for it. `asked`: somebody may have answered meanwhile,
        as followers do, and is read first."""
        ran = self._disk.run_here(batch)
        if ran is None:
            return
        self._take(batch, ran)
        if asked:
            self._finish_batch()
        self._turns.follow(ran.took_ns, straight=not asked)

    def _finish_batch(self) -> None:
        """What was synced here is told to whom it concerns: do what is left of its batch."""
        batch, self._unfinished = self._unfinished, None
        if batch is not None and (reason := self._disk.finish_here(batch)) is not None:
            self._turns.inputs.disk_failed.append((batch.ticket, reason))
            self._turns.wake()

    def _dial(self, wanted: Dial) -> Coroutine[None, None, None]:
        if not isinstance(wanted, LinkDial):
            return self._dialer.dial(wanted)
        from jsctl.broker.server.link_dialer import LinkDialer  # loaded with the first of them

        return LinkDialer(self._connections, self._certificates.dialing).dial(wanted)

    def _known(self, conns: list[int]) -> list[Connection]:
        by_id = self._connections.by_id
        return [by_id[conn] for conn in conns if conn in by_id]

    def _close_and_dial(self, outputs: TurnOutputs) -> None:
        for connection in self._known([conn for conn, _ in outputs.closes]):
            connection.close()
        for wanted in outputs.dials:
            self.spawn(self._dial(wanted))

    def _hold_and_release(self, outputs: TurnOutputs) -> None:
        for connection in self._known(outputs.pauses):
            connection.pause_reading()
        for connection in self._known(outputs.resumes):
            connection.resume_reading()

    def _perform_rare(self, outputs: TurnOutputs) -> None:
        for request in outputs.verifies:
            self._verifier.submit(request)
        for answer in outputs.answers:
            self._monitor.answer(answer)
        if outputs.logs:
            self._log.write(outputs.logs)
        for fault in outputs.faults:
            self._log.fault(fault.place, fault.error)
        if outputs.relieved:
            self._loop.call_soon(give_back_memory)
        if outputs.reload or outputs.claims:
            self._change_later(outputs)
        for kind in ("client", "leafnode") if outputs.stop_accepting else ():
            if (listener := self._listeners.get(kind)) is not None:
                listener.close()
        if outputs.exit is not None and not self._finished.done():
            self._turns.stop()
            self._finished.set_result((outputs.exit, outputs.exit_status))

    def _change_later(self, outputs: TurnOutputs) -> None:
        """Between two turns, as these change what turns are run with."""
        if outputs.reload:
            self._loop.call_soon(self._reload_for_requests)
        if outputs.claims and self._change_accounts is not None:
            self._loop.call_soon(self._change_accounts, outputs.claims)

    def _reload_for_requests(self) -> None:
        self._turns.inputs.reloaded.append(self._reload_wanted())
        self._turns.wake()

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Run a handshake, a dial or the like beside the turns; none is begun once the end has
        come."""
        if self._tasks is None:
            work.close()
            return
        task = self._tasks.create_task(self._alone(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _alone(self, work: Coroutine[None, None, None]) -> None:
        """A bug in a handshake or a dial ends that, not the tasks beside it."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 (the last line: one connection's work)
            self._log.fault("a handshake or dial", error)
            self._turns.inputs.faults.append("a handshake or dial")
            self._turns.wake()

    def _hear_syncer(self) -> None:
        """A loop that has no looks of ours tells of what was synced beside."""
        self._synced_beside()
        self._turns.wake()

    def _synced(self, synced: list[int], failed: list[tuple[int, str]]) -> None:
        inputs = self._turns.inputs
        inputs.synced += synced
        inputs.disk_failed += failed
        self._turns.wake()

    def _verified(self, token: int, ok: bool) -> None:
        self._turns.inputs.verified.append((token, ok))
        self._turns.wake()

    def _ask(self, query: Query) -> None:
        self._turns.inputs.queries.append(query)
        self._turns.wake()

    def _crashed(self, error: BaseException) -> None:
        """A turn or the disk thread met a bug: nothing can be promised any more."""
        if not self._finished.done():
            self._finished.set_exception(error)

    def _close_listeners(self) -> None:
        for listener in self._listeners.values():
            listener.close()

    def _stop_disk(self) -> None:
        self._disk.stop(self.options.edge.shutdown_ns / NANOSECONDS)
        if self._syncer is not None:
            self._syncer.close()

    async def _drain(self) -> None:
        """Let what was written be sent, for a limited time."""
        deadline = self._loop.time() + self.options.edge.shutdown_ns / NANOSECONDS
        for connection in list(self._connections.by_id.values()):
            connection.finish()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                for connection in list(self._connections.by_id.values()):
                    await connection.finished()


class AcceptedConnection(Connection):
    """A connection that came through a listener."""

    __slots__ = ("_welcome",)

    def __init__(
        self, shared: Connections, kind: ConnKind, welcome: Callable[[Connection], None]
    ) -> None:
        super().__init__(shared, kind)
        self._welcome = welcome

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register, then announce or secure."""
        super().connection_made(transport)
        self._welcome(self)


def _write_limits(options: Options) -> dict[ConnKind, WriteLimit]:
    """How long each kind of connection may take to be sent what waits for it."""
    client = options.client
    clients = WriteLimit.of_clients(client.write_deadline_ns, client.write_timeout)
    routes, leafs, gates = options.cluster, options.leafnodes, options.gateway
    return {
        ConnKind.CLIENT: clients,
        ConnKind.ROUTE: clients.of_servers(routes.write_deadline_ns, routes.write_timeout),
        ConnKind.LEAF: clients.of_servers(leafs.write_deadline_ns, leafs.write_timeout),
        ConnKind.GATEWAY: clients.of_servers(gates.write_deadline_ns, gates.write_timeout),
    }
