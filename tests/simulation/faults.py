"""What a plan's items do to a running simulation, and which damage is too much to count."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from jsctl.broker.jetstream.meta.assignments import GroupAssignment
from jsctl.broker.raft.quorum import quorum_size
from jsctl.broker.raft.types import StandingKind
from tests.simulation import rot
from tests.simulation.far import FarFaults
from tests.simulation.figure_eight import FigureEight
from tests.simulation.machine import Machine, Process
from tests.simulation.plan import Item
from tests.simulation.settings import ROOM_BYTES
from tests.simulation.stream_checks import is_memory
from tests.simulation.world import MS, Event

if TYPE_CHECKING:
    from tests.simulation.run import Simulation

AMBUSH_LEAD_MS = 300
ROOM_LEFT_MAX = 4096
CLOCK_STEPS_MS = (-5_000, -300, 300, 3_000)


class Faults:
    """Carries out items."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.world = simulation.world
        self.network = simulation.network
        self.over = False
        self.doubtful: set[tuple[str, str]] = set()
        """(machine, group) whose disk was lost, and that is not filled up yet."""
        self.play: FigureEight | None = None
        self.rotten: Machine | None = None
        """The one server whose disk rots in this run."""
        self._known: dict[str, GroupAssignment] = {}
        self._far = FarFaults(simulation)

    def event(self, item: Item) -> Event:
        """The item as an event."""
        far = self._far.event(item)
        if far is not None:
            return far
        action: Callable[[Item], None] = getattr(self, f"_{item.kind}")
        return lambda: action(item)

    # Who

    def _machine(self, item: Item) -> Machine:
        machines = self.simulation.machines
        return machines[item.pick % len(machines)]

    def _stream(self, item: Item) -> int:
        return item.pick % len(self.simulation.configs)

    def _leader(self, item: Item) -> Machine | None:
        """The leader of a stream, or of the meta group."""
        count = len(self.simulation.configs)
        number = item.pick % (count + 1)
        name = self.simulation.group_name(number) if number < count else "_meta_"
        process = self.simulation.leader(name) if name else None
        return None if process is None else process.machine

    def _others(self, machine: Machine) -> list[tuple[int, int]]:
        pairs = [(machine.number, other.number) for other in machine.others]
        return pairs + [(b, a) for a, b in pairs]

    # Processes and disks

    def _stop(self, machine: Machine, item: Item, down_ms: int) -> None:
        if machine.process is None:
            return
        machine.stop(power=bool(item.more & 1), noticed=bool(item.more & 2))
        self.count_memory()
        self.world.at(down_ms * MS, machine.start)

    def _crash(self, item: Item) -> None:
        self._stop(self._machine(item), item, item.duration_ms)

    def _crash_leader(self, item: Item) -> None:
        machine = self._leader(item)
        if machine is not None:
            self._stop(machine, item, item.duration_ms)

    def _kill_all(self, item: Item) -> None:
        for machine in self.simulation.machines:
            self._stop(machine, item, item.duration_ms + machine.number * (item.more >> 8))

    def _wipe(self, item: Item) -> None:
        self._lose_disk(self._machine(item), item.duration_ms)

    def _lose_disk(self, machine: Machine, down_ms: int) -> None:
        if machine.process is None or not self._may_lose(machine):
            return
        machine.stop(power=True, noticed=True)
        machine.wipe()
        self.count_memory()
        self.world.at(down_ms * MS, machine.start)

    def _may_lose(self, machine: Machine, only: str = "") -> bool:
        """Whether the fault model has room for the loss of this disk; counts it if so. `only`:
        what the disk holds of one group."""
        lost: list[str] = []
        assigned = self._assigned()
        for name in [only] if only else {*self.simulation.checker.groups, *assigned}:
            voters = self._voters(name)
            if not voters and name in assigned:
                voters = set(assigned[name].peers)
            if self.simulation.checker.history(name).excused:
                continue
            if machine.peer not in voters:
                if len(voters) == 1 and self._joins(name, machine.peer):
                    return False  # A group of two, before its leader knows of the loss.
                continue
            doubtful = {peer for peer, group in self.doubtful if group == name}
            if self.rotten is not None:
                doubtful.add(self.rotten.peer)
            doubtful |= self._unfilled(name, assigned.get(name)) | {machine.peer}
            if len(voters) > 1 and len(doubtful & voters) > (len(voters) - 1) // 2:
                return False
            lost.append(name)
        for name in lost:
            if len(self._voters(name)) == 1:
                self.simulation.checker.history(name).excused = True
            else:
                self.doubtful.add((machine.peer, name))
        return True

    def _joins(self, name: str, peer: str) -> bool:
        """Whether a server is about to become a voter of a group."""
        found = [one.engine.groups.by_name.get(name) for one in self._lives()]
        return any(one is not None and peer in one.raft.members.learners for one in found)

    def _assigned(self) -> dict[str, GroupAssignment]:
        """Groups as the meta state has them, or had them when they began."""
        metas = [
            process.engine.meta.state for process in self._lives() if process.engine.meta.takes_part
        ]
        newest = max(metas, key=lambda meta: meta.applied, default=None)
        begun = self.simulation.checker.groups.values()
        self._known |= {one.name: one.assigned for one in begun if one.assigned is not None}
        if newest is not None:
            self._known |= {made.group.name: made.group for made in newest.assets()}
        return self._known

    def _unfilled(self, name: str, assigned: GroupAssignment | None) -> set[str]:
        """Replicas that began in doubt, or will: the disk that they were given to is lost."""
        found: set[str] = set()
        for machine in self.simulation.machines:
            life = machine.last
            group = None if life is None else life.engine.groups.by_name.get(name)
            if group is not None:
                if group.raft.standing.kind is not StandingKind.WHOLE:
                    found.add(machine.peer)
            elif assigned is None or assigned.storage == "memory":
                continue
            elif assigned.incarnations.get(machine.peer) != machine.life:
                found.add(machine.peer)
        return found

    def _lives(self) -> list[Process]:
        """What runs or ran last on each disk that is not lost."""
        return [machine.last for machine in self.simulation.machines if machine.last is not None]

    def _voters(self, name: str) -> set[str]:
        """Voters of a group as the most advanced of its replicas ever knew them."""
        return set(self.simulation.checker.history(name).voters)

    def turned(self, process: Process) -> None:
        """Disks that were lost and are filled up again may be counted out."""
        if self.play is not None and not self.over:
            self.play.turned(process)
        for peer, name in list(self.doubtful):
            if peer != process.peer:
                continue
            group = process.engine.groups.by_name.get(name)
            if group is None or group.raft.commit == 0:
                continue
            if group.raft.standing.kind is StandingKind.WHOLE:
                self.doubtful.discard((peer, name))

    def count_memory(self) -> None:
        """Memory groups of which no quorum is left have lost what they held."""
        running = self.simulation.processes()
        for name, known in self.simulation.checker.groups.items():
            if known.excused or not is_memory(name):
                continue
            voters = self._voters(name)
            whole = 0
            for process in running:
                group = process.engine.groups.by_name.get(name)
                if group is not None and process.peer in voters:
                    whole += group.raft.standing.kind is StandingKind.WHOLE
            if whole < quorum_size(max(len(voters), 1)):
                known.excused = True

    def _rot(self, item: Item) -> None:
        """Something on the disk of a server that is down turns into something else."""
        machine = self._rotting(item)
        if machine is None:
            return
        self._stop_and_start(machine, item)
        rng = random.Random(item.more)
        place = rot.choose(machine.disk, rng, machine.decay)
        if place is not None and self._may_spoil(machine, place):
            rot.spoil(machine.disk, rng, machine.decay, place)
            self._excuse_lone(machine)

    def _lose_log(self, item: Item) -> None:
        """All of the log of a server that is down is zeros, or gone; the rest is there."""
        machine = self._rotting(item)
        if machine is None or not self._may_lose(machine):
            return
        self.rotten = machine
        self._stop_and_start(machine, item)
        for path in machine.disk.paths():
            if rot.kind_of(path) == rot.LOG:
                size = len(machine.disk.content(path))
                rot.note(machine.disk, machine.decay, (path, 0, size))
                if item.more & 4:
                    machine.disk.remove(path)
                else:
                    machine.disk.overwrite(path, bytes(size))

    def _rotting(self, item: Item) -> Machine | None:
        """The server whose disk rots, if it runs."""
        machine = self.rotten or self._machine(item)
        return None if machine.process is None else machine

    def _may_spoil(self, machine: Machine, place: rot.Place) -> bool:
        """Whether the fault model has room for this; counts it if so."""
        kind = rot.kind_of(place[0])
        if rot.hides_a_frame(machine.disk, machine.incarnation, machine.decay, place):
            return False
        if kind == rot.LOG and not self._may_lose(machine):
            return False
        if kind == rot.STATE and not self._may_lose(machine, rot.group_of(place[0])):
            return False
        self.rotten = machine
        return True

    def _excuse_lone(self, machine: Machine) -> None:
        """A replica that had no peer may have forgotten removals once both a segment and a
        catalogue are damaged: nobody promises that these stay."""
        places = machine.decay.places
        spoilt = {rot.group_of(one) for one, _, _ in places if rot.kind_of(one) == rot.SEGMENT}
        for name in spoilt & machine.decay.catalogues:
            known = self.simulation.checker.history(name)
            known.excused = known.excused or known.was_alone

    def _stop_and_start(self, machine: Machine, item: Item) -> None:
        """The process ends; the page cache stays, so that what was promised can be told."""
        machine.stop(power=False, noticed=bool(item.more & 2))
        self.count_memory()
        self.world.at(item.duration_ms * MS, machine.start)

    def _unreadable(self, item: Item) -> None:
        """A place of a disk cannot be read for a while; for half of them the server starts then."""
        machine = self._rotting(item)
        if machine is None:
            return
        rng = random.Random(item.more)
        place = rot.choose(machine.disk, rng, machine.decay)
        if place is None or not self._may_spoil(machine, place):
            return
        if item.more & 1:
            self._stop_and_start(machine, item)
        machine.disk.unreadable.append(place)
        rot.note_unreadable(machine.disk, machine.decay)
        self._excuse_lone(machine)
        self.world.at(2 * item.duration_ms * MS, lambda: machine.disk.readable_again(place))

    def _unopenable(self, item: Item) -> None:
        """A file cannot be opened for a while; a process may end for that, or not start."""
        machine = self._machine(item)
        paths = machine.disk.paths()
        if not paths:
            return
        path = random.Random(item.more).choice(paths)
        machine.ill = True
        machine.disk.unopenable.add(path)
        if machine.process is not None and item.more & 1:
            self._stop_and_start(machine, item)
        self.world.at(2 * item.duration_ms * MS, lambda: machine.disk.unopenable.discard(path))

    def _slow_disk(self, item: Item) -> None:
        machine = self._machine(item)
        before, machine.sync_ms = machine.sync_ms, 80.0

        def restore() -> None:
            if not self.over:
                machine.sync_ms = before

        self.world.at(item.duration_ms * MS, restore)

    def _sync_fails(self, item: Item) -> None:
        """The next write to the disk gets lost, and the process hears of it once."""
        machine = self._machine(item)
        if machine.process is not None:
            machine.disk.fail_syncs = 1
            machine.ill = True

    def _full_disk(self, item: Item) -> None:
        """There is next to no room for a while."""
        machine = self._machine(item)
        disk = machine.disk
        disk.capacity -= disk.free_bytes() - item.more % ROOM_LEFT_MAX
        machine.ill = True

        def restore() -> None:
            disk.capacity = ROOM_BYTES

        self.world.at(item.duration_ms * MS, restore)

    def _set_clock(self, item: Item) -> None:
        """A clock is set forward, or back."""
        self._machine(item).offset_ns += CLOCK_STEPS_MS[item.more % len(CLOCK_STEPS_MS)] * MS

    def _pause(self, item: Item) -> None:
        process = self._machine(item).process
        if process is not None:
            process.pause(item.duration_ms * MS)

    # The network

    def _isolate(self, item: Item) -> None:
        self.network.block(self._others(self._machine(item)), item.duration_ms * MS)

    def _isolate_leader(self, item: Item) -> None:
        machine = self._leader(item)
        if machine is not None:
            self.network.block(self._others(machine), item.duration_ms * MS)

    def _cut_consumer_off(self, item: Item) -> None:
        """Who leads a consumer and the other replicas of that do not hear each other any more."""
        groups = self.simulation.checker.groups
        names = [name for name, one in groups.items() if one.consumer is not None]
        leader = self.simulation.leader(names[item.pick % len(names)]) if names else None
        if leader is None:
            return
        voters = self._voters(names[item.pick % len(names)])
        cut = [one.number for one in leader.machine.others if one.peer in voters]
        pairs = [(leader.machine.number, number) for number in cut]
        self.network.block(pairs + [(b, a) for a, b in pairs], item.duration_ms * MS)

    def _one_way(self, item: Item) -> None:
        machine = self._machine(item)
        pairs = self._others(machine)[: len(machine.others)]
        if item.more & 1:
            pairs = [(b, a) for a, b in pairs]
        if item.more & 2:
            pairs = pairs[:1]
        self.network.block(pairs, item.duration_ms * MS)

    def _reset(self, item: Item) -> None:
        """All connections between two servers break."""
        machine = self._machine(item)
        other = machine.others[item.more % len(machine.others)]
        for process in (machine.process, other.process):
            if process is None:
                continue
            for socket in list(process.sockets.values()):
                if socket.peer.owner.number in (machine.number, other.number):
                    socket.broken()

    def _split(self, item: Item) -> None:
        count = len(self.simulation.machines)
        side = {number for number in range(count) if item.more >> number & 1}
        pairs = [(a, b) for a in range(count) for b in range(count) if (a in side) != (b in side)]
        self.network.block(pairs, item.duration_ms * MS)

    def _ambush(self, item: Item) -> None:
        """The leader is cut off, and one of the others crashes."""
        machine = self._leader(item)
        if machine is not None:
            self.network.block(self._others(machine), item.duration_ms * MS)
            other = machine.others[item.more % len(machine.others)]
            self._stop(other, item, AMBUSH_LEAD_MS)

    def _wipe_ambush(self, item: Item) -> None:
        """One server misses a while; then one that did not loses its disk, and the leader goes."""
        machine = self._leader(item)
        if machine is None:
            return
        others = list(machine.others)
        late = others.pop(item.more % len(others))
        victim = others.pop((item.more >> 4) % len(others))
        self.network.block(self._others(late), AMBUSH_LEAD_MS * MS)

        def strike() -> None:
            if self.over:
                return
            self.network.block(self._others(machine), item.duration_ms * MS)
            self._lose_disk(victim, 20)

        self.world.at(AMBUSH_LEAD_MS * MS - MS, strike)

    def _figure_eight(self, item: Item) -> None:
        self.play = FigureEight(self.simulation, self._stream(item))

    # Requests

    def _step_down(self, item: Item) -> None:
        number = self._stream(item)
        kind = f"CONSUMER.LEADER.STEPDOWN.S{number}.C{number}"
        subject = kind if item.more & 1 else f"STREAM.LEADER.STEPDOWN.S{number}"
        self.simulation.operator.ask(subject)

    def _meta_step_down(self, item: Item) -> None:
        process = self.simulation.leader("_meta_")
        if process is not None:
            group = process.engine.meta.group
            group.raft.transfer(None)
            process.engine.groups.touch(group)
            process.wake()

    def _scale(self, item: Item) -> None:
        number = self._stream(item)
        config = self.simulation.configs[number]
        sizes = [1, 3, 5] if len(self.simulation.machines) >= 5 else [1, 3]
        config["num_replicas"] = sizes[item.more % len(sizes)]
        self.simulation.operator.ask(f"STREAM.UPDATE.S{number}", dict(config), tries=3)

    def _limit(self, item: Item) -> None:
        number = self._stream(item)
        config = self.simulation.configs[number]
        config["max_msgs"] = [-1, 10, 50][item.more % 3]
        self.simulation.operator.ask(f"STREAM.UPDATE.S{number}", dict(config), tries=3)

    def _remove_peer(self, item: Item) -> None:
        machines = self.simulation.machines
        body = {"peer": machines[item.more % len(machines)].name}
        self.simulation.operator.ask(f"STREAM.PEER.REMOVE.S{self._stream(item)}", body)

    def _purge(self, item: Item) -> None:
        number = self._stream(item)
        bodies: list[dict[str, object]] = [{}, {"keep": 5}, {"filter": f"S{number}.1"}]
        self.simulation.operator.ask(f"STREAM.PURGE.S{number}", bodies[item.more % 3])

    def _delete(self, item: Item) -> None:
        number = self._stream(item)
        name = self.simulation.group_name(number)
        books = self.simulation.checker.history(name).books if name else None
        if books is not None and books.last:
            seq = 1 + item.more % books.last
            self.simulation.operator.ask(f"STREAM.MSG.DELETE.S{number}", {"seq": seq})

    def _consumer(self, item: Item) -> None:
        number = self._stream(item)
        self.simulation.operator.ask(f"CONSUMER.DELETE.S{number}.C{number}")
        self.world.at(item.duration_ms * MS, lambda: self.simulation.create_consumer(number))

    def _recreate(self, item: Item) -> None:
        number = self._stream(item)
        self.simulation.operator.ask(f"STREAM.DELETE.S{number}")
        self.world.at(item.duration_ms * MS, lambda: self.simulation.create(number))
