"""A machine with a disk, and the server process that runs on it: an engine without sockets.

The process is driven as the node drives it: inputs collect, a turn takes them all, frames leave
as bytes, batches run on the disk one at a time and come back later.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from jsctl.broker.cluster.engine import Engine
from jsctl.broker.cluster.frame_items import ServerNews
from jsctl.broker.cluster.frames import decode_frame
from jsctl.broker.cluster.groups import Limits
from jsctl.broker.cluster.neighbours import EngineOptions
from jsctl.broker.cluster.traffic import RouterTraffic
from jsctl.broker.errors import DiskError
from jsctl.broker.jetstream.placement import ServerFacts
from jsctl.broker.jetstream.requests import ApiRequest, ClientInfo
from jsctl.broker.node.api_service import ApiService
from jsctl.broker.node.api_view import ApiView
from jsctl.broker.node.reports import UnitReports
from jsctl.broker.node.setup import peer_id
from jsctl.broker.node.usage import Usage
from jsctl.broker.options import ClusterOptions, JetStreamOptions, Options
from jsctl.broker.protocol.deliveries import Item, Said, singly
from jsctl.broker.raft.types import Limits as RaftLimits
from jsctl.broker.raft.types import Message, PeerId, Timing
from jsctl.broker.routing.accounts import Accounts
from jsctl.broker.routing.limits import RoutingLimits
from jsctl.broker.routing.router import Router
from jsctl.broker.routing.targets import Sink
from jsctl.broker.turn import DiskBatch
from tests.simulation.disks import DurableGroup, DurableLog, MachineDisk, dropped_by
from tests.simulation.world import MS, SECOND, Network

ACCOUNT = "$G"
CLUSTER = "sim"
EPOCH_NS = 1_700_000_000 * SECOND
TURN_DELAY_NS = 200_000
"""From an input to the turn that takes it."""
SEGMENT_BYTES = 192 * 1024
INBOX_PREFIX = b"_INBOX."

Publish = tuple[bytes, bytes, bytes, bytes]
"""(subject, reply, headers, payload)."""


class Watch(Protocol):
    """Who checks what servers do."""

    def started(self, process: "Process") -> None:
        """A process has read its disk."""

    def sends(self, process: "Process", name: str, messages: Sequence[Message]) -> None:
        """Raft messages of a group leave."""

    def says(self, process: "Process", items: Sequence[Item]) -> None:
        """A server publishes to clients."""

    def turned(self, process: "Process") -> None:
        """A turn is over."""

    def durable(self, process: "Process", batch: DiskBatch) -> None:
        """A batch ran."""


class CheckedTraffic(RouterTraffic):
    """Shows the watch what leaves to clients."""

    process: "Process"

    def deliver(self, account: str, said: Sequence[Said]) -> None:
        items = singly(said)
        self.process.machine.watch.says(self.process, items)
        inner = []
        for item in items:
            subject, reply, headers, payload, _ = item
            if subject.startswith(INBOX_PREFIX):
                self.process.answer((subject, reply, headers, payload))
            else:
                inner.append(item)
        super().deliver(account, inner)


@dataclass
class CheckedOutbox:
    """Shows the watch what leaves to peers."""

    process: "Process"

    def raft(self, peer: PeerId, key: bytes, messages: Sequence[Message]) -> None:
        """Queue messages of one group for a peer."""
        self.process.machine.watch.sends(self.process, key.decode(), messages)
        self.process.engine.outbox.raft(peer, key, messages)


@dataclass
class Settings:
    """What all servers of a run have in common."""

    timing: Timing
    limits: Limits
    servers: int
    raft: RaftLimits


class Machine:
    """One server over all its lives. `rate`, `offset_ns`: how its clock differs."""

    def __init__(
        self, number: int, network: Network, settings: Settings, watch: Watch, reply: "Replies"
    ) -> None:
        self.number = number
        self.name = f"n{number}"
        self.peer = peer_id(self.name)
        self.network = network
        self.world = network.world
        self.settings = settings
        self.watch = watch
        self.reply = reply
        self.others: list[Machine] = []
        self.rate = self.world.random.uniform(0.99, 1.01)
        self.offset_ns = self.world.random.randrange(2 * SECOND)
        self.sync_ms = 1.0
        self.process: Process | None = None
        self.last: Process | None = None
        """What runs, or ran last on the present disk."""
        self.runs = 0
        self.log = DurableLog()
        self.lost: list[DurableLog] = []
        """What disks held that were lost since."""
        self.memory: dict[str, DurableGroup] = {}
        """What the running process holds of groups that live in memory."""
        self.dropping: set[str] = set()
        """Groups whose removal was being written when the last process ended."""
        self._new_disk()

    def _new_disk(self) -> None:
        self.disk = MachineDisk(random.Random(self.world.random.randrange(1 << 60)))
        self.incarnation = self.world.random.randbytes(16)
        self.log = DurableLog()

    @property
    def life(self) -> int:
        """What an assignment calls the present disk."""
        return int.from_bytes(self.incarnation[:8], "big") >> 1

    def now_ns(self) -> int:
        """What its clock says."""
        return EPOCH_NS + self.offset_ns + int(self.world.now_ns * self.rate)

    def start(self) -> None:
        """Begin to run, if it does not."""
        if self.process is not None:
            return
        self.runs += 1
        self.process = self.last = Process(self)
        self.process.start()
        for other in self.others:
            if other.process is not None:
                self.process.link(other.process)

    def stop(self, *, power: bool, noticed: bool) -> None:
        """End at once. `power`: what is not synced is lost; `noticed`: peers see it end."""
        process, self.process = self.process, None
        if process is None:
            return
        self.dropping = set()
        for name, group in self.memory.items():
            self.log.dropped.setdefault(name, []).append(group)
        self.memory = {}
        process.interrupt(power=power)
        if power:
            self.disk.crash()
        else:
            self.disk.kill()
        for other in self.others:
            if noticed and other.process is not None:
                other.process.unlink(process)

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


Replies = Callable[[int, "Process", Publish], None]
"""(entry, server that answers, message) for clients."""


class Process:
    """One life of a server."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.world = machine.world
        self.number = machine.number
        self.peer = machine.peer
        options = Options(
            server_name=machine.name,
            cluster=ClusterOptions(name=CLUSTER, port=1),
            jetstream=JetStreamOptions(enabled=True),
        )
        self.accounts = Accounts(options)
        self.router = Router(self.accounts, RoutingLimits(), self._jitter)
        self.account = self.accounts.default
        self.traffic = CheckedTraffic(self.router)
        self.traffic.process = self
        self.reports = UnitReports()
        self.boot = self._jitter(1 << 62) + 1
        self.engine = Engine(
            EngineOptions(
                me=machine.peer,
                server_name=machine.name,
                cluster=CLUSTER,
                incarnation=machine.incarnation,
                boot=self.boot,
                clustered=True,
                promised=machine.settings.servers,
                timing=machine.settings.timing,
                limits=machine.settings.limits,
                log_segment_bytes=SEGMENT_BYTES,
            ),
            disk=machine.disk,
            traffic=self.traffic,
            jitter=self._jitter,
            new_id=lambda: f"{self._jitter(1 << 60):x}",
            reports=self.reports,
            news=self._news,
        )
        self.engine.groups.outbox = CheckedOutbox(self)
        self.engine.founder.limits = machine.settings.raft
        self.view = ApiView(self.engine, options, Usage(options, self.engine.assets), self._jitter)
        self.api = ApiService(
            self.view, self.engine, self._publish, lambda *_: False, lambda *_: None
        )
        self.reports.view, self.reports.answer = self.view, self.api.answer
        self.reports.propose_meta = self.engine.to_meta
        self.inbox = Sink(None, self.account)
        self.router.subscribe(self.account, INBOX_PREFIX + b">", self.inbox)
        self.seen: dict[str, int] = {}
        """Group -> applied index that the checker has seen."""
        self._frames: list[bytes] = []
        self._publishes: list[Publish] = []
        self._requests: list[ApiRequest] = []
        self._synced: list[int] = []
        self._links: list[Process] = []
        self._unlinks: list[Process] = []
        self._batches: list[DiskBatch] = []
        self._running = False
        self._timer_ns = 1 << 62
        self._asked = False
        self.paused = False

    @property
    def alive(self) -> bool:
        """Whether this is what runs on its machine."""
        return self.machine.process is self

    def _jitter(self, count: int) -> int:
        return self.world.random.randrange(count)

    def _news(self) -> ServerNews:
        engine, machine = self.engine, self.machine
        facts = ServerFacts(
            peer=machine.peer,
            name=machine.name,
            cluster=CLUSTER,
            jetstream=not engine.removed,
            store_max=1 << 40,
            memory_max=1 << 40,
            streams=len(engine.assets.streams),
            incarnation=engine.options.life,
            boot=self.boot,
        )
        return ServerNews(facts, machine.name, "host", "0")

    def _publish(self, account: str, subject: bytes, headers: bytes, payload: bytes) -> None:
        self.answer((subject, b"", headers, payload))

    def answer(self, message: Publish) -> None:
        """Something for a client: the inbox tells at which server."""
        self.machine.reply(int(message[0].split(b".", 3)[2]), self, message)

    # Peers

    def start(self) -> None:
        """Recover."""
        now_ns = self.machine.now_ns()
        self.router.now_ns = now_ns
        self.engine.start(now_ns)
        self.machine.watch.started(self)
        self.wake()

    def link(self, other: "Process") -> None:
        """A connection in both directions."""
        self.connected(other)
        other.connected(self)

    def connected(self, other: "Process") -> None:
        """A connection to another process is there."""
        self._links.append(other)
        self.wake()

    def unlink(self, other: "Process") -> None:
        """A connection closed."""
        self._unlinks.append(other)
        self.wake()

    def receive(self, sender: "Process", frame: bytes) -> None:
        """A frame arrives, unless it is from an earlier life than its sender's present one."""
        current = sender.machine.process
        if self.alive and (current is sender or current is None):
            self._frames.append(frame)
            self.wake()

    # Clients

    def publish(self, message: Publish) -> None:
        """A client of this server publishes: here, and where else somebody listens."""
        self.routed(message)
        for other in self.machine.others:
            target = other.process
            if target is not None and target.router.has_interest(target.account, message[0]):
                self._route(target, message)

    def _route(self, target: "Process", message: Publish) -> None:
        self.machine.network.send(self.number, target.number, lambda: target.routed(message))

    def routed(self, message: Publish) -> None:
        """A message that came over a route."""
        if self.alive:
            self._publishes.append(message)
            self.wake()

    def request(self, subject: str, payload: bytes, reply: bytes) -> None:
        """A client of this server uses the API."""
        client = ClientInfo(ACCOUNT, cluster=CLUSTER)
        name = f"$JS.API.{subject}".encode()
        self._requests.append(ApiRequest(ACCOUNT, name, reply, b"", payload, client, self.peer))
        self.wake()

    # Turns

    def wake(self) -> None:
        """Ask for a turn."""
        if not self._asked and not self.paused:
            self._asked = True
            self.world.at(TURN_DELAY_NS, self._turn)

    def pause(self, duration_ns: int) -> None:
        """Stand still for a while; the disk goes on."""
        self.paused = True
        self.world.at(duration_ns, self._resume)

    def _resume(self) -> None:
        self.paused = False
        if self.alive:
            self.wake()

    def _turn(self) -> None:
        self._asked = False
        if not self.alive or self.paused:
            return
        engine, now_ns = self.engine, self.machine.now_ns()
        self.router.now_ns = now_ns
        late = engine.tick_early(now_ns)
        self._take_disk()
        self._take_peers(now_ns)
        self._take_clients()
        self._collect()
        engine.tick_late(late)
        self.api.retry()
        engine.run(self._collect)
        while self.api.confirmed():
            engine.run(self._collect)
        self._batches += engine.seal()
        self._run_disk()
        self._send()
        engine.env.logs.clear()
        self.machine.watch.turned(self)
        self._set_timer(now_ns)

    def _take_disk(self) -> None:
        synced, self._synced = self._synced, []
        for ticket in synced:
            self.engine.synced(ticket)

    def _take_peers(self, now_ns: int) -> None:
        links, self._links = self._links, []
        gone, self._unlinks = self._unlinks, []
        for other in gone:
            self.engine.unlinked(other.peer)
        for other in links:
            self.engine.linked(other.peer)
        frames, self._frames = self._frames, []
        for data in frames:
            frame = decode_frame(data)
            self.engine.receive(frame, now_ns)
            for forward in frame.forwards:
                self.api.take(forward.request, forward.hops)
            for reply in frame.replies:
                self.api.answered(reply)

    def _take_clients(self) -> None:
        publishes, self._publishes = self._publishes, []
        for subject, reply, headers, payload in publishes:
            self.router.publish(self.account, subject, payload, reply=reply, headers=headers)
        requests, self._requests = self._requests, []
        for request in requests:
            self.api.take(request)

    def _collect(self) -> None:
        while sinks := self.router.take_dirty():
            for sink in self.engine.collect(sinks):
                sink.take()

    def _send(self) -> None:
        numbers = {other.peer: other for other in self.machine.others}
        for peer, frames in self.engine.outbox.take():
            target = numbers[peer].process
            if target is not None:
                for frame in frames:
                    self._deliver(target, frame)

    def _deliver(self, target: "Process", frame: bytes) -> None:
        network = self.machine.network
        network.send(self.number, target.number, lambda: target.receive(self, frame))

    def _set_timer(self, now_ns: int) -> None:
        due = [self.engine.next_due_ns(), self.api.next_due_ns()]
        at = min((one for one in due if one is not None), default=None)
        if at is None:
            return
        wait = int(max(at - now_ns, 0) / self.machine.rate) + 1
        due_ns = self.world.now_ns + wait
        if due_ns < self._timer_ns:
            self._timer_ns = due_ns
            self.world.at(wait, lambda: self._ring(due_ns))

    def _ring(self, due_ns: int) -> None:
        if self._timer_ns == due_ns:
            self._timer_ns = 1 << 62
        if self.alive:
            self.wake()

    # The disk, one batch at a time

    def _run_disk(self) -> None:
        if self._batches and not self._running:
            batch = self._batches[0]
            self._running = True
            took = self.world.random.expovariate(1.0) * self.machine.sync_ms
            self.world.at(int(took * MS) + 100_000, lambda: self._ran(batch))

    def _ran(self, batch: DiskBatch) -> None:
        if not self.alive:
            return
        batch.run()
        self._batches.pop(0)
        self._running = False
        self.machine.watch.durable(self, batch)
        self._synced.append(batch.ticket)
        self._run_disk()
        self.wake()

    def interrupt(self, *, power: bool) -> None:
        """The end comes while a batch runs: some of it may be written."""
        disk = self.machine.disk
        if not self._batches or self.world.chance(0.3):
            return
        syncs = self.world.random.randrange(3)
        if power:
            disk.power_fails_in = syncs
        else:
            disk.killed_in = syncs
        self.machine.dropping = dropped_by(self._batches[0])
        try:
            self._batches[0].run()
            self.machine.watch.durable(self, self._batches[0])
        except DiskError:
            pass
        disk.power_fails_in = disk.killed_in = None
