"""The server process on a machine: the broker's own `Node`.

As at the edge inputs collect, a turn takes them all, bytes leave on sockets, batches run later.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from jsctl.broker.assets.engine import Engine
from jsctl.broker.errors import DiskError, DiskFull
from jsctl.broker.routing.router import SLOW_CONSUMER
from jsctl.broker.server.turns import ALONE_CHUNKS_MAX
from jsctl.broker.turn import Accepted, ConnKind, Dial, LinkDial, TurnInputs, TurnOutputs
from tests.simulation.chat import Room
from tests.simulation.disk_queue import DiskQueue
from tests.simulation.port import Port, Publish
from tests.simulation.settings import GATEWAY_PORT, LEAF_PORT, ROUTE_PORT
from tests.simulation.sockets import Socket, dial
from tests.simulation.violation import Violation
from tests.simulation.watch import CheckedOutbox, Mark, Shown, watch_removals, watch_traffic
from tests.simulation.world import MS

if TYPE_CHECKING:
    from tests.simulation.machine import Machine

TURN_DELAY_NS = 500_000
"""From an input to the turn that takes it."""
RESTART_NS = 300 * MS
DAMAGE_TOLD = "damage found in its store"
CLIENT_PORT = 4222
LISTENERS = {"cluster": ROUTE_PORT, "gateway": GATEWAY_PORT, "leafnode": LEAF_PORT}


class Client(Protocol):
    """What a connection of a client takes."""

    def take(self, data: bytes) -> None:
        """What the server sent."""


class Process:
    """One life of a server: a node, its sockets, its clock, its disk. Implements `sockets.End`."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.world = machine.world
        self.number = machine.number
        self.peer = machine.peer
        self.node = machine.settings.build(
            machine.settings.options(machine.number),
            disk=machine.disk,
            jitter=self._jitter,
            server_id=f"N{machine.number:03}{machine.runs:03}".ljust(56, "A"),
            incarnation=f"{self._jitter(1 << 62):032x}",
        )
        self.node.listening("client", machine.name, CLIENT_PORT)
        for kind, port in LISTENERS.items():
            self.node.listening(kind, machine.name, port, [machine.name])
        self.seen: dict[str, int] = {}
        """Group -> applied index that the checker has seen."""
        self.marks: dict[str, Mark] = {}
        """Group -> where it stood at the end of its last turn."""
        self.sockets: dict[int, Socket] = {}
        self.unpinged: dict[int, int] = {}
        """Routes on which no PING left yet -> since when they are there."""
        self.first_pings: list[int] = []
        """How long it took on the others."""
        self._inputs = TurnInputs()
        self._conns = 0
        self.writing = DiskQueue(self)
        self.shown = Shown()
        self._turn_ns = 0
        self._timer_ns = 1 << 62
        self._asked = False
        self.paused = False
        self.paused_ns = -1
        """When it stood still last."""
        self.unread: dict[int, int] = {}
        """Connections of clients that do not read -> bytes that wait for them."""
        self._silent: dict[int, tuple[LinkDial, bytes]] = {}
        """Connections that this side dialed and that have not said INFO yet, and what they said."""
        self._clients: dict[int, Client] = {}
        """Connections of clients besides the one below."""
        self.port = Port(machine.hub, machine.number, self._from_client)
        self._client = self.new_conn()

    @cached_property
    def engine(self) -> Engine:
        """JetStream, once it is started. Asked for at each turn, again and again."""
        assert self.node.engine is not None
        return self.node.engine

    @property
    def alive(self) -> bool:
        """Whether this is what runs on its machine."""
        return self.machine.process is self

    @property
    def replaced(self) -> bool:
        """Whether another process runs in its place."""
        return self.machine.process is not None and not self.alive

    def _jitter(self, count: int) -> int:
        return self.world.random.randrange(count)

    def start(self) -> None:
        """Recover, and take the clients of this server."""
        now_ns = self.machine.now_ns()
        outputs = self.node.start(now_ns)
        self._watch()
        self.machine.watch.started(self)
        self._perform(outputs, now_ns)
        self._inputs.accepted.append(Accepted(self._client, ConnKind.CLIENT, "client", 1))
        self._clients[self._client] = self.port
        self.port.open()

    def _watch(self) -> None:
        if self.node.engine is None:
            return  # A leaf node's: it has no JetStream.
        engine = self.engine
        self.machine.incarnation = engine.options.incarnation
        engine.groups.outbox = CheckedOutbox(self)
        watch_removals(self)
        watch_traffic(self)

    # Connections

    def new_conn(self) -> int:
        """A number for a connection."""
        self._conns += 1
        return self._conns

    def arrived(self, conn: int, data: bytes) -> None:
        """Bytes came."""
        if conn in self._silent:
            self._first_bytes(conn, data)
            return
        self._inputs.chunks.append((conn, data))
        self.wake()

    def ran(self, ticket: int, failed: str) -> None:
        """A batch is durable, or failed for a reason."""
        if failed:
            self._inputs.disk_failed.append((ticket, failed))
        else:
            self._inputs.synced.append(ticket)

    def lost(self, conn: int, reason: str) -> None:
        """A connection is gone."""
        self.sockets.pop(conn, None)
        self.unpinged.pop(conn, None)
        if conn in self._silent:
            wanted, _ = self._silent.pop(conn)
            self._inputs.dial_failed.append((wanted, reason))
        else:
            self._inputs.closed.append((conn, reason))
        self.wake()

    def unsent(self, conn: int, size: int) -> None:
        """What is not sent yet passed a mark."""
        self._inputs.pending.append((conn, size))
        self.wake()

    def hang_up(self) -> None:
        """The system closes the sockets of a process that ended; peers that can, hear of it."""
        network = self.machine.network
        for socket in self.sockets.values():
            there = socket.peer.owner.number
            if not network.is_cut(self.number, there):
                far_ns = network.far_ns.get((self.number, there), 0)
                self.world.at(network.delay_ns() + far_ns, socket.peer.broken)

    def _dial(self, wanted: Dial) -> None:
        target = self.machine.network_name(wanted.host)

        def done(here: Socket | None, there: Socket | None, reason: str) -> None:
            if here is None or there is None:
                if self.alive:
                    self._inputs.dial_failed.append((wanted, reason))
                    self.wake()
                return
            assert isinstance(there.owner, Process)
            if isinstance(wanted, LinkDial):
                self._await_info(here, wanted)
            else:
                self._accept(here, _outcome(here, wanted))
            name, port = self.machine.name, 40_000 + here.conn
            there.owner._accept(there, Accepted(there.conn, wanted.kind, name, port))

        dial(self.machine.network, self, lambda: target.process, target.number, done)

    def _accept(self, socket: Socket, made: Accepted) -> None:
        self.sockets[socket.conn] = socket
        if made.kind is ConnKind.ROUTE:
            self.unpinged[socket.conn] = self.world.now_ns
        self._inputs.accepted.append(made)
        self.wake()

    def _await_info(self, socket: Socket, wanted: LinkDial) -> None:
        """As the edge does: the node hears of a connection that has said INFO."""
        self.sockets[socket.conn] = socket
        self._silent[socket.conn] = wanted, b""

        def late() -> None:
            if socket.conn in self._silent:
                socket.close()
                self.lost(socket.conn, "i/o timeout")

        self.world.at(wanted.first_info_ns, late)

    def _first_bytes(self, conn: int, data: bytes) -> None:
        wanted, before = self._silent[conn]
        data = before + data
        self._silent[conn] = wanted, data
        if b"\n" in data:
            del self._silent[conn]
            self._accept(self.sockets[conn], _outcome(self.sockets[conn], wanted))
            self._inputs.chunks.append((conn, data))

    # Clients

    def _from_client(self, data: bytes) -> None:
        if self.alive:
            self.arrived(self._client, data)

    def talk(self, room: Room) -> None:
        """Have a client take part in what is said outside of streams."""
        conn = self.new_conn()

        def send(data: bytes) -> None:
            if self.alive:
                self.arrived(conn, data)

        self._inputs.accepted.append(Accepted(conn, ConnKind.CLIENT, "talker", conn))
        name = b"%dx%d" % (self.number, self.machine.runs)
        self._clients[conn] = room.enter(
            name, send, lambda: self.alive, lambda: max(self.sockets, default=0)
        )
        deaf = self.new_conn()
        self.unread[deaf] = 0
        self._inputs.accepted.append(Accepted(deaf, ConnKind.CLIENT, "deaf", deaf))
        self.arrived(deaf, b"CONNECT {}\r\nSUB room.> 1\r\n")

    def _keep_unread(self, conn: int, size: int) -> None:
        before = self.unread[conn]
        self.unread[conn] = now = before + size
        limit = self.machine.settings.pending_max
        if now > 2 * limit:
            raise Violation(f"{self.machine.name} keeps {now} bytes for a client that reads none")
        if now // (limit // 4) > before // (limit // 4):
            self.unsent(conn, now)

    def publish(self, message: Publish) -> None:
        """A client of this server publishes."""
        self.port.publish(message)

    def request(self, subject: str, payload: bytes, reply: bytes) -> None:
        """A client of this server uses the API."""
        self.port.publish((f"$JS.API.{subject}".encode(), reply, b"", payload))

    # Turns

    def wake(self) -> None:
        """Ask for a turn."""
        if not self._asked and not self.paused and not self.writing.here:
            self._asked = True
            self.world.at(TURN_DELAY_NS, self._turn)

    def pause(self, duration_ns: int) -> None:
        """Stand still for a while; the disk goes on."""
        self.paused, self.paused_ns = True, self.world.now_ns
        self.world.at(duration_ns, self._resume)

    def _resume(self) -> None:
        self.paused, self.paused_ns = False, self.world.now_ns
        if self.alive:
            self.writing.tell()
            self.wake()

    def _turn(self) -> None:
        self._asked = False
        if not self.alive or self.paused or self.writing.here:
            return
        inputs, self._inputs = self._inputs, TurnInputs()
        self._take(inputs, may_sync=len(inputs.chunks) <= ALONE_CHUNKS_MAX)

    def follow(self) -> None:
        """It has synced by itself: a turn with that alone, unless it stands still meanwhile."""
        if not self.paused:
            synced, failed = self._inputs.synced, self._inputs.disk_failed
            self._inputs.synced, self._inputs.disk_failed = [], []
            self._take(TurnInputs(synced=synced, disk_failed=failed), may_sync=False)

    def _take(self, inputs: TurnInputs, *, may_sync: bool) -> None:
        outputs = self._run(inputs)
        if outputs is not None:
            self._tell(outputs, may_sync=may_sync and outputs.exit is None)

    @contextmanager
    def _ending_with_its_disk(self) -> Iterator[None]:
        try:
            yield
        except DiskError as error:
            if not self.machine.ill or isinstance(error, DiskFull):
                raise
            self.give_up()

    def _run(self, inputs: TurnInputs) -> TurnOutputs | None:
        self._turn_ns = self.machine.now_ns()
        outputs = None
        with self._ending_with_its_disk():
            outputs = self.node.turn(inputs, self._turn_ns)
            if inputs.disk_failed and outputs.exit is None:
                raise Violation(f"{self.machine.name} goes on when its disk failed")
        return outputs

    def _tell(self, outputs: TurnOutputs, *, may_sync: bool = False) -> None:
        with self._ending_with_its_disk():
            self._perform(outputs, self._turn_ns, may_sync=may_sync)
            if self.alive:
                self.machine.watch.turned(self)

    def run_ahead(self, ticket: int) -> TurnOutputs | None:
        """The turn that takes a batch for durable which is being synced."""
        self.shown.hold()
        return self._run(TurnInputs(synced=[ticket]))

    def tell(self, outputs: TurnOutputs) -> None:
        """It is durable: what came of that turn leaves."""
        self.shown.release()
        self._tell(outputs)

    def _perform(self, outputs: TurnOutputs, now_ns: int, *, may_sync: bool = False) -> None:
        if outputs.exit is not None and not self.writing.failed:
            told = "; ".join(line.text for line in outputs.logs)
            raise Violation(f"{self.machine.name} ends of itself: {outputs.exit}: {told}")
        self._check_told(outputs)
        self.writing.submit(outputs.disk, may_sync=may_sync and not self.node.unfinished)
        for conn, data in outputs.writes:
            self._write(conn, data)
        self._end(outputs)
        for wanted in outputs.dials:
            self._dial(wanted)
        for socket in filter(None, map(self.sockets.get, outputs.pauses)):
            socket.reading = False
        for socket in filter(None, map(self.sockets.get, outputs.resumes)):
            socket.read_again()
        if outputs.exit is not None:
            self.give_up()
        if not self.writing.here:
            self._set_timer(self.node.settle(now_ns), now_ns)
        elif not outputs.writes:
            self.writing.run_ahead()

    def _check_told(self, outputs: TurnOutputs) -> None:
        """Damage of a store is told only where some is; what could not be read counts."""
        machine = self.machine
        if outputs.logs and not machine.decay.places and not machine.disk.refused:
            for line in outputs.logs:
                if DAMAGE_TOLD in line.text:
                    raise Violation(f"{machine.name} tells of damage where none is: {line.text}")

    def _write(self, conn: int, data: bytes) -> None:
        if conn in self.unread:
            self._keep_unread(conn, len(data))
        elif conn in self._clients:
            self._clients[conn].take(data)
        elif conn in self.sockets:
            self.sockets[conn].write(data)
            if conn in self.unpinged and b"PING\r\n" in data:
                self.first_pings.append(self.world.now_ns - self.unpinged.pop(conn))

    def give_up(self) -> None:
        """The process ends for its disk; what it had in its cache is not to be trusted."""
        self.machine.stop(power=True, noticed=True)
        self.machine.watch.stopped(self)
        self.world.at(RESTART_NS, self.machine.start)

    def _end(self, outputs: TurnOutputs) -> None:
        for conn, reason in outputs.closes:
            if conn in self.unread and reason == SLOW_CONSUMER:
                self.machine.hub.slow += 1
                del self.unread[conn]
                self.lost(conn, reason)
            elif conn in self._clients:
                raise Violation(f"{self.machine.name} closes its client: {reason}")
            if conn in self.sockets:
                self.sockets[conn].close()

    def _set_timer(self, at: int | None, now_ns: int) -> None:
        wait = int(max((at or now_ns) - now_ns, 0) / self.machine.rate) + 1
        due_ns = self.world.now_ns + wait
        if at is not None and due_ns < self._timer_ns:
            self._timer_ns = due_ns
            self.world.at(wait, lambda: self._ring(due_ns))

    def _ring(self, due_ns: int) -> None:
        if self._timer_ns == due_ns:
            self._timer_ns = 1 << 62
        if self.alive:
            self.wake()


def _outcome(socket: Socket, wanted: Dial) -> Accepted:
    """A dial that led to a connection."""
    return Accepted(socket.conn, wanted.kind, wanted.host, wanted.port, dial_token=wanted.token)
