"""A machine with a disk, and the server process that runs on it: the broker's own `Node`.

As at the edge inputs collect, a turn takes them all, bytes leave on sockets, batches run later.
"""

import random
from functools import cached_property
from typing import Protocol

from jsctl.broker.assets.engine import Engine
from jsctl.broker.errors import DiskError, DiskFull
from jsctl.broker.routing.router import SLOW_CONSUMER
from jsctl.broker.routing.setup import peer_id
from jsctl.broker.server.turns import ALONE_CHUNKS_MAX
from jsctl.broker.store.identity import INCARNATION_BYTES
from jsctl.broker.turn import Accepted, ConnKind, Dial, LinkDial, TurnInputs, TurnOutputs
from tests.simulation.chat import Room
from tests.simulation.disk_queue import DiskQueue
from tests.simulation.disks import DurableGroup, DurableLog, Interrupted, MachineDisk
from tests.simulation.port import Hub, Port, Publish
from tests.simulation.rot import Decay, note_refused
from tests.simulation.settings import GATEWAY_PORT, LEAF_PORT, ROUTE_PORT, Settings
from tests.simulation.sockets import Socket, dial
from tests.simulation.violation import Violation
from tests.simulation.watch import CheckedOutbox, Mark, Watch, watch_removals, watch_traffic
from tests.simulation.world import MS, SECOND, Network

ACCOUNT = "$G"
EPOCH_NS = 1_700_000_000 * SECOND
TURN_DELAY_NS = 500_000
"""From an input to the turn that takes it."""
SEGMENT_BYTES = 192 * 1024
RESTART_NS = 300 * MS
PENDING_MAX = 48 * 1024
"""What may wait for a client that does not read."""
DAMAGE_TOLD = "damage found in its store"
CLIENT_PORT = 4222
LISTENERS = {"cluster": ROUTE_PORT, "gateway": GATEWAY_PORT, "leafnode": LEAF_PORT}


class Client(Protocol):
    """What a connection of a client takes."""

    def take(self, data: bytes) -> None:
        """What the server sent."""


class Machine:
    """One server over all its lives. `rate`, `offset_ns`: how its clock differs."""

    def __init__(
        self, number: int, network: Network, settings: Settings, watch: Watch, hub: Hub
    ) -> None:
        self.number = number
        self.name = f"n{number}"
        self.peer = peer_id(self.name)
        self.network = network
        self.world = network.world
        self.settings = settings
        self.watch = watch
        self.hub = hub
        self.others: list[Machine] = []
        self.rate = self.world.random.uniform(0.99, 1.01)
        self.offset_ns = self.world.random.randrange(2 * SECOND)
        self.sync_ms = 1.0
        self.loop_syncs = 0.0  # How often a process syncs in its own loop, where it may.
        self.ill = False
        """Its disk failed once, or is full: its process may end for it."""
        self._told_ns = self._looked_ns = 0
        self.latest_ns = 0
        """The latest time that its clock ever told."""
        self.process: Process | None = None
        self.last: Process | None = None
        """What runs, or ran last on the present disk."""
        self.runs = 0
        self.log = DurableLog()
        self.lost: list[DurableLog] = []
        """What disks held that were lost since."""
        self.memory: dict[str, DurableGroup] = {}
        """What the running process holds of groups that live in memory."""
        self.interrupted = Interrupted()
        """What was being written when the last process ended."""
        self._new_disk()

    def _new_disk(self) -> None:
        self.incarnation = bytes(INCARNATION_BYTES)
        """What the server calls the present disk, once it has seen it."""
        self.log = DurableLog()
        self.decay = decay = Decay()
        self.disk = disk = MachineDisk(random.Random(self.world.random.randrange(1 << 60)))
        disk.crowded = self.number % 3 == 1
        disk.when_refused = lambda path: note_refused(disk, decay, path)

    @property
    def life(self) -> int:
        """What an assignment calls the present disk."""
        return int.from_bytes(self.incarnation[:8], "big") >> 1

    def network_name(self, host: str) -> "Machine":
        """The machine of that name."""
        return next(one for one in (self, *self.others) if one.name == host)

    def now_ns(self) -> int:
        """What its process takes for the time: a clock that is set back slows it down only."""
        wall_ns = EPOCH_NS + self.offset_ns + int(self.world.now_ns * self.rate)
        elapsed = self.world.now_ns - self._looked_ns
        self._looked_ns = self.world.now_ns
        self._told_ns = max(self._told_ns + elapsed // 2, wall_ns)
        self.latest_ns = max(self.latest_ns, self._told_ns)
        return self._told_ns

    def start(self) -> None:
        """Begin to run, if it does not."""
        if self.process is not None:
            return
        self.runs += 1
        self._told_ns = 0
        self.process = process = Process(self)
        try:
            process.start()
        except DiskError:
            if not self.ill:
                raise
            self.process = None
            self.disk.crash()
            self.world.at(RESTART_NS, self.start)
            return
        self.last = process

    def stop(self, *, power: bool, noticed: bool) -> None:
        """End at once. `power`: what is not synced is lost; `noticed`: peers see it end."""
        process, self.process = self.process, None
        if process is None:
            return
        self.interrupted = Interrupted()
        for name, group in self.memory.items():
            self.log.dropped.setdefault(name, []).append(group)
        self.memory = {}
        process.writing.interrupt(power=power)
        if power:
            self.disk.crash()
        else:
            self.disk.kill()
        if noticed:
            process.hang_up()

    def wipe(self) -> None:
        """Lose the disk. Only while nothing runs."""
        assert self.process is None
        self.lost.append(self.log)
        self.last = None
        self._new_disk()

    def held(self, name: str, index: int, term: int) -> bool:
        """Whether an entry was made safe here; what disks and memory that were lost held counts,
        too."""
        memory = self.memory.get(name)
        if memory is not None and memory.holds(index, term):
            return True
        return any(log.held(name, index, term) for log in (self.log, *self.lost))


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
        now_ns = self.machine.now_ns()
        try:
            outputs = self.node.turn(inputs, now_ns)
            if inputs.disk_failed and outputs.exit is None:
                raise Violation(f"{self.machine.name} goes on when its disk failed")
            self._perform(outputs, now_ns, may_sync=may_sync and outputs.exit is None)
        except DiskError as error:
            if not self.machine.ill or isinstance(error, DiskFull):
                raise
            self._give_up()
            return
        if self.alive:
            self.machine.watch.turned(self)

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
            self._give_up()
        if not self.writing.here:
            self._set_timer(self.node.settle(now_ns), now_ns)

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

    def _give_up(self) -> None:
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
