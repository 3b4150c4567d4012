"""One run: servers and clients, faults by a plan, healing, and what must be true at the end."""

from collections.abc import Iterator, Sequence
from hashlib import sha256

from jsctl.broker.assets.engine_options import TICK_NS
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.jetstream.meta.assignments import (
    ConsumerAssignment,
    StreamAssignment,
)
from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.node import Node
from jsctl.broker.options import ClientLimits, RaftOptions
from jsctl.broker.raft.types import StandingKind
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.routes.types import FIRST_PING_NS
from jsctl.broker.store.stream_store import StreamStore
from tests.simulation import far
from tests.simulation.adders import Sums
from tests.simulation.chat import Room
from tests.simulation.checks import Checker, History, snapshot_of
from tests.simulation.clients import Hub, Operator, Reader
from tests.simulation.configs import consumer_config, stream_config
from tests.simulation.copies import Copies
from tests.simulation.dead_letters import DeadLetters
from tests.simulation.edge import Edge, linked_to
from tests.simulation.faults import Faults
from tests.simulation.getters import Getter
from tests.simulation.lost import lost_at_birth
from tests.simulation.machine import ACCOUNT, PENDING_MAX, SEGMENT_BYTES, Machine, Process
from tests.simulation.plan import ROT_FAULTS, ConsumerKind, Plan, StreamKind
from tests.simulation.publishers import AnyPublisher, publishers
from tests.simulation.settings import ROOM_BYTES, Build, Settings
from tests.simulation.side import Side
from tests.simulation.stream_checks import lost_of
from tests.simulation.violation import Violation
from tests.simulation.world import MS, SECOND, Network, Weather, World

HEAL_NS = 40 * SECOND
LOOK_NS = SECOND // 4
AT_ONCE = 8


class Simulation(Side):
    """`run` raises Violation, or an AssertionError of a server."""

    def __init__(self, plan: Plan, build: Build = Node) -> None:
        self.plan = plan
        self.world = World(plan.seed)
        weather = Weather(plan.delay_ms, plan.loss, plan.pieces, plan.slow)
        self.network = Network(self.world, weather)
        self.settings = Settings(
            RaftOptions(
                election_min_ns=plan.election_ticks * TICK_NS,
                hibernate_after_ns=plan.quiet_ticks * TICK_NS,
                append_entries_max=plan.append_entries_max,
                entries_kept=plan.entries_kept,
                checkpoint_bytes=1 << 20,
                checkpoint_entries=plan.checkpoint_entries,
                log_segment_bytes=SEGMENT_BYTES,
                store_segment_bytes=plan.segment_bytes,
            ),
            plan.servers,
            _pending_max(plan),
            plan.seeds,
            build,
            plan.clusters,
            int(plan.leaf),
            plan.edge,
        )
        self.machines: list[Machine] = []
        self.checker = Checker(self.machines)
        self.hub = Hub(self.network)
        self.hub.machines = self.machines
        linked_to(self.hub, self.checker)
        for number in range(plan.servers):
            machine = Machine(number, self.network, self.settings, self, self.hub)
            machine.sync_ms = plan.sync_ms
            machine.loop_syncs = plan.loop_syncs
            self.machines.append(machine)
        for machine in self.machines:
            machine.others = [one for one in self.machines if one is not machine]
        self.leafs: list[Machine] = []
        self.edge = Edge(self, plan.servers) if plan.edge else None
        if self.edge is not None:
            self.leafs.append(self.edge.machine)
        elif plan.leaf:
            watch = far.LeafWatch(self)
            self.leafs.append(Machine(plan.servers, self.network, self.settings, watch, self.hub))
        for leaf in self.leafs:
            leaf.others = self.machines
        far.spread(self, [*self.machines, *self.leafs], plan.far_ms * MS)
        self.operator = Operator(self.hub)
        self.operator.calm = not plan.items
        self.configs = [stream_config(plan, number) for number in range(len(plan.streams))]
        self.takers: list[Copies | Sums | DeadLetters | Edge] = (
            [Copies(self)] if plan.copies else []
        )
        self.takers += [DeadLetters(self)] if plan.letters else []
        self.takers += [Sums(self)] if plan.sums else []
        self.takers += [self.edge] if self.edge is not None else []
        self.room = Room(self.world, far.places_of(self.settings))
        self.asker = far.Asker(self)
        self.exam = far.Exam(self)
        self.getter = Getter(self)
        self.publishers: list[AnyPublisher] = []
        self.readers: list[Reader] = []
        self.faults = Faults(self)

    # side.Side

    def talks_in(self) -> Room:
        return self.room

    def turned(self, process: Process) -> None:
        super().turned(process)
        self.getter.turned()
        self.faults.turned(process)

    def stopped(self, process: Process) -> None:
        super().stopped(process)
        self.faults.count_memory()

    # Phases

    def run(self) -> "Simulation":
        """Everything."""
        for machine in [*self.machines, *self.leafs]:
            self.world.at(int(self.world.random.uniform(0, 200) * MS), machine.start)
        self.world.at(600 * MS, self._create)
        for item in self.plan.items:
            self.world.at(item.at_ms * MS, self.faults.event(item))
        self.world.run(self.plan.chaos_ms * MS)
        self._heal()
        self._finish()
        return self

    def kind(self, number: int) -> StreamKind:
        """What a stream is besides what every plan says."""
        return self.plan.kind(number)

    def consumers(self, number: int) -> dict[str, ConsumerKind]:
        """Name -> kind of a stream's consumers."""
        kinds = self.kind(number).consumers
        return {f"C{number}" + "x" * at: kind for at, kind in enumerate(kinds)}

    def create(self, number: int) -> None:
        """Have a stream and its consumer made."""
        config = self.configs[number]
        self.operator.ask(f"STREAM.CREATE.S{number}", config, tries=20, until="already in use")
        self.create_consumer(number)

    def create_consumer(self, number: int) -> None:
        """Have a stream's consumers made."""
        for name, kind in self.consumers(number).items():
            config = consumer_config(number, name, kind)
            self.operator.ask(
                f"CONSUMER.CREATE.S{number}.{name}",
                {"stream_name": f"S{number}", "config": config},
                tries=20,
            )

    def _create(self) -> None:
        if self.plan.clusters:
            self.asker.step()
        for taker in self.takers:
            taker.create()
        for number in range(len(self.configs)):
            self.create(number)
            for made in publishers(self.plan, self.hub, number, len(self.publishers)):
                self.publishers.append(made)
                made.step()
            if self.kind(number).direct:
                self.getter.begin()
            for name, kind in self.consumers(number).items():
                reader = Reader(self.hub, f"S{number}", name, kind)
                self.readers.append(reader)
                reader.step()

    def _heal(self) -> None:
        self.faults.over = True
        self.network.heal()
        for machine in [*self.machines, *self.leafs]:
            machine.sync_ms = 0.5
            machine.disk.mend()
            machine.disk.capacity = ROOM_BYTES
            if machine.process is not None:
                machine.process.paused = False
                machine.process.wake()
            machine.start()
        self.exam.begin()
        for number in range(len(self.configs)):
            self.create(number)
        for taker in self.takers:
            taker.create()
        for publisher in self.publishers:
            publisher.stopped = True
        for reader in self.readers:
            reader.careless *= reader.kind.letters

    def _finish(self) -> None:
        end = self.world.now_ns + HEAL_NS
        probed = False
        reasons: list[str] = []
        while self.world.now_ns < end:
            self.world.run(self.world.now_ns + LOOK_NS)
            reasons = list(self.reasons())
            self._create_again(reasons)
            if not reasons and probed:
                break
            if not reasons:
                probed = True
                for publisher in self.publishers:
                    publisher.probe()
        else:
            raise Violation("does not settle: " + "; ".join(reasons[:6]))
        self._compare_all()

    def _create_again(self, reasons: Sequence[str]) -> None:
        """A request to delete may have been under way when the last one to create was answered."""
        if self.operator.waiting:
            return
        for number in range(len(self.configs)):
            if f"S{number} is not there" in reasons:
                self.create(number)
            elif any(f"{name} is not there" in reasons for name in self.consumers(number)):
                self.create_consumer(number)

    # What is not settled

    def processes(self) -> list[Process]:
        """Running servers."""
        return [machine.process for machine in self.machines if machine.process is not None]

    def leader(self, name: str) -> Process | None:
        """Who leads a group, as far as it knows itself."""
        found: Process | None = None
        term = -1
        for process in self.processes():
            group = process.engine.groups.by_name.get(name)
            if group is not None and group.leading and group.raft.term > term:
                found, term = process, group.raft.term
        return found

    def group_name(self, number: int) -> str:
        """The group of a stream, as the meta leader knows it; empty when there is none."""
        process = self.leader("_meta_")
        if process is None:
            return ""
        made = process.engine.meta.state.stream(ACCOUNT, f"S{number}")
        return "" if made is None else made.group.name

    def reasons(self) -> Iterator[str]:
        """What is still to happen before all is well."""
        process = self.leader("_meta_")
        if process is None:
            yield "no meta leader"
            return
        if not self.exam.over:
            yield "interest was not looked at"
        elif self.asker.waiting:
            yield f"{self.asker.waiting} requests wait for an answer"
        elif self.plan.chat:
            yield from self.room.reasons()
        yield from self._behind("_meta_", [machine.peer for machine in self.machines])
        meta = process.engine.meta.state
        for made in meta.assets():
            name = made.group.name
            if lost_at_birth(self, made.group):
                self.checker.history(name).excused = True
            if self.checker.history(name).excused:
                continue
            if not made.group.settled and not self._held_up(meta, made):
                yield f"{name} is not settled: {process.engine.reconfigurator.status.get(name)}"
            yield from self._behind(name, made.group.peers)
        yield from self._unserved()
        for taker in self.takers:
            yield from taker.reasons(meta)

    def _unserved(self) -> Iterator[str]:
        for number in range(len(self.configs)):
            name = self.group_name(number)
            if not name:
                yield f"S{number} is not there"
            elif not self.checker.history(name).excused:
                yield from self._clients(number, name)

    def _held_up(self, meta: Meta, made: StreamAssignment | ConsumerAssignment) -> bool:
        """Whether a stream waits for a consumer that may have lost its quorum for good."""
        if isinstance(made, ConsumerAssignment):
            return False
        return any(
            self.checker.history(consumer.group.name).excused and not consumer.group.settled
            for consumer in meta.consumers(made.account, made.name).values()
        )

    def _behind(self, name: str, peers: Sequence[str]) -> Iterator[str]:
        leader = self.leader(name)
        if leader is None:
            yield f"{name} has no leader"
            return
        applied = len(self.checker.history(name).entries)
        for process in self.processes():
            if process.peer not in peers:
                continue
            group = process.engine.groups.by_name.get(name)
            if group is None:
                yield f"{name} is not on {process.machine.name}"
            elif group.raft.applied != applied:
                yield f"{process.machine.name} applied {group.raft.applied} of {applied} of {name}"
            elif group.raft.standing.kind is not StandingKind.WHOLE:
                yield f"{process.machine.name} is not whole in {name}"

    def _clients(self, number: int, name: str) -> Iterator[str]:
        for publisher in self.publishers:
            if publisher.stream == f"S{number}" and publisher.open:
                yield f"publisher {publisher.number} waits for {sorted(publisher.open)[:3]}"
        yield from self._unrepaired(number, name)
        leader = self.leader(name)
        if leader is None:
            return
        store = leader.engine.assets.streams[(ACCOUNT, f"S{number}")].store
        meta = leader.engine.meta.state
        books = self.checker.history(name).books
        if books is not None:
            yield from books.due(leader.machine.latest_ns)
        whole = True
        for consumer in self.consumers(number):
            made = meta.consumer(ACCOUNT, f"S{number}", consumer)
            if made is None:
                yield f"{consumer} is not there"
                return
            whole = whole and not self.checker.history(made.group.name).excused
            yield from self._consumer(made, leader, store)
        kind = self.kind(number)
        if self._damaged(number):
            return
        if whole and kind.retention != "limits" and books is not None and books.model.rows:
            unfiltered = not any(one.filter for one in kind.consumers)
            if unfiltered and all(one.max_deliver < 0 for one in kind.consumers):
                yield f"S{number} keeps {list(books.model.rows)[:3]}, which were consumed"

    def _unrepaired(self, number: int, name: str) -> Iterator[str]:
        """What a replica lacks although another one has it whole."""
        found: dict[str, StreamStore] = {}
        for process in self.processes():
            unit = process.engine.assets.streams.get((ACCOUNT, f"S{number}"))
            if unit is not None and unit.group.name == name:
                found[process.machine.name] = unit.store
        for server, store in found.items():
            for seq in lost_of(store):
                if any(one.is_live(seq) and seq not in lost_of(one) for one in found.values()):
                    yield f"{server} lacks {seq} of S{number}, which another server has"
                    break

    def _damaged(self, number: int) -> bool:
        """Whether some replica of a stream reports messages as lost: its consumers wait there."""
        streams = [process.engine.assets.streams for process in self.processes()]
        found = [one.get((ACCOUNT, f"S{number}")) for one in streams]
        return any(one is not None and lost_of(one.store) for one in found)

    def _consumer(
        self, made: ConsumerAssignment, leader: Process, store: StreamStore
    ) -> Iterator[str]:
        history = self.checker.history(made.group.name)
        if history.excused:
            return
        unit = leader.engine.assets.consumers.get((ACCOUNT, made.stream, made.name))
        if unit is None:
            yield f"{made.name} is not beside its stream's leader"
            return
        state = unit.consumer.state
        missing = [] if history.consumer is None else history.consumer.missing()
        ahead = self.leader(made.group.name) or leader
        lost = lost_of(ahead.engine.assets.streams[(ACCOUNT, made.stream)].store)
        if _not_held_up({*state.pending, *missing}, lost, state.delivered_stream):
            yield f"{made.name} stands at {state.delivered_stream} of {store.last_seq}"

    # The end

    def _compare_all(self) -> None:
        self._check_pings()
        if self.edge is not None:
            self.edge.compare()
        for machine in self.machines:
            process = machine.process
            if process is not None and not machine.decay.places:
                for one in process.engine.upkeep.scrubber.report.findings:
                    if one.text.partition(":")[0] not in machine.disk.refused:
                        raise Violation(f"{machine.name} finds damage where none is: {one.text}")
        for name, known in self.checker.groups.items():
            if known.excused:
                continue
            for process in self.processes():
                group = process.engine.groups.by_name.get(name)
                if group is not None and group.raft.applied == len(known.entries):
                    self._compare(process, known, group)

    def _check_pings(self) -> None:
        """Who is connected is asked for a sign of life soon, where nothing else is in the way."""
        plan = self.plan
        if plan.items or plan.loss or plan.slow or plan.pieces:
            return
        for process in self.processes():
            took_ns = max(process.first_pings, default=0)
            if took_ns > FIRST_PING_NS + SECOND // 4:
                raise Violation(f"{process.machine.name} sends its first PING after {took_ns} ns")

    def _compare(self, process: Process, known: History, group: RaftGroup) -> None:
        if isinstance(group.unit, StreamReplica):
            if known.books is not None:
                may_lack = process.machine.decay.may_lack(known.name)
                may_lack |= self.checker.passed_over(known.name)
                known.books.compare_all(process.machine.name, group.unit, may_lack)
            return
        state = snapshot_of(process, group)
        if known.snapshots.setdefault(group.raft.applied, state) != state:
            raise Violation(f"{process.machine.name} has another state of {known.name}")


def _pending_max(plan: Plan) -> int:
    """What may wait for a client: more where a lot comes at once, when a long way is open again,
    damage that held up a consumer is repaired, or one begins anew."""
    if not plan.chat:
        return ClientLimits().pending_bytes_max
    at_once = plan.clusters or any(item.kind in {*ROT_FAULTS, "consumer"} for item in plan.items)
    return PENDING_MAX * (AT_ONCE if at_once else 1)


def _not_held_up(waiting: set[int], lost: set[int], last: int) -> list[int]:
    """Of what a consumer has still to do what it can: it waits in front of a new message that is
    lost on its server, and what it delivered before it cannot deliver again from there."""
    stop = min([seq for seq in lost & waiting if seq > last], default=1 << 62)
    return [seq for seq in waiting if seq < stop and seq not in lost]


def digest(simulation: Simulation) -> str:
    """What happened in a run, as one word: the same for the same plan, wherever it runs."""
    known = sha256()
    known.update(b"%d %d" % (simulation.world.now_ns, simulation.world.count))
    for name, history in sorted(simulation.checker.groups.items()):
        known.update(name.encode())
        for term, kind, data in history.entries:
            known.update(b"%d %d %d " % (term, kind, len(data)) + data)
    return known.hexdigest()


def failure(plan: Plan, build: Build = Node) -> str:
    """How a run of a plan breaks a promise, or a server ends of itself; empty when all is well."""
    return failure_of(Simulation(plan, build))


def failure_of(simulation: Simulation) -> str:
    """The same of a run that begins now."""
    try:
        simulation.run()
    except Exception as error:  # noqa: BLE001 - whatever is raised in a turn ends a server
        return f"{type(error).__name__}: {error}"
    return ""


def fails(plan: Plan) -> bool:
    """Whether a run breaks a promise, or a server ends of itself."""
    return bool(failure(plan))
