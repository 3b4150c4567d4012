"""Clusters that are far apart, and a leaf node: what goes wrong between them, and what may be
expected of their interest and of the API.

Links between clusters are stalled, or slower, or break; whole clusters stand still. Two seconds
after all of that is over, and what handshakes take on the long way, interest is right: see `chat`.
Whoever asks the API for something is answered in time, if only by an error, as long as the server
lives at which he asks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jsctl.broker.protocol.deliveries import Item as Said
from jsctl.broker.raft.types import Message
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.turn import DiskBatch
from tests.simulation.chat import ONE_PLACE, Places
from tests.simulation.plan import Item
from tests.simulation.settings import LEAF, Settings
from tests.simulation.violation import Violation
from tests.simulation.world import MS, SECOND

if TYPE_CHECKING:
    from tests.simulation.machine import Machine, Process
    from tests.simulation.port import Publish
    from tests.simulation.run import Simulation

INTEREST_NS = 2 * SECOND
"""So long after everything is whole again interest may still be wrong, and ..."""
WAYS = 8
"""... so many long ways more: a dial, a handshake, and news that go on from there."""
HEARD_NS = SECOND
"""What is said then is heard so soon."""
ANSWER_NS = 5 * SECOND
"""How long an answer of the API may take."""
ASK_MS = 40


def places_of(settings: Settings) -> Places:
    """Where talkers are in such a run."""
    if not settings.clusters:
        return ONE_PLACE
    names = settings.places()
    leaf = LEAF if settings.leafs else ""

    def of(talker: bytes) -> str:
        return settings.place(int(talker.partition(b"x")[0]))

    return Places(of, tuple(names), leaf, (names[-1], leaf) if leaf else (names[-1],))


class LeafWatch:
    """Implements `watch.Watch` for a server without JetStream."""

    def __init__(self, of: Simulation) -> None:
        self._of = of

    def started(self, process: Process) -> None:
        if self._of.plan.chat:
            process.talk(self._of.room)

    def sends(self, process: Process, name: str, messages: Sequence[Message]) -> None:
        pass

    def says(self, process: Process, items: Sequence[Said]) -> None:
        pass

    def turned(self, process: Process) -> None:
        pass

    def leaves(self, process: Process, group: RaftGroup) -> None:
        pass

    def durable(self, process: Process, batch: DiskBatch) -> None:
        pass

    def stopped(self, process: Process) -> None:
        pass


class Asker:
    """Asks for what each answer is known to come: how the streams are."""

    def __init__(self, of: Simulation) -> None:
        self._of = of
        self.world = of.world
        self.answers = 0
        self.refused = 0
        self.slowest_ns = 0
        self.waiting = 0
        """Requests whose time is not over, and that have no answer."""

    def step(self) -> None:
        """Ask again and again."""
        process = self._of.hub.any_process()
        if process is not None and not self._of.exam.over:
            number = self.world.random.randrange(len(self._of.configs))
            self._ask(process, f"STREAM.INFO.S{number}")
        self.world.at(int(self.world.random.expovariate(1.0) * ASK_MS * MS), self.step)

    def _ask(self, process: Process, subject: str) -> None:
        asked_ns = self.world.now_ns
        counted: list[bool] = []
        answers: list[bytes] = []

        def count() -> bool:
            """Whether this is the end of the wait: an answer may come when its time is over."""
            self.waiting -= not counted
            counted.append(True)
            return len(counted) == 1

        def take(message: Publish) -> None:
            if answers and not process.alive:
                # The process that told so is gone, and with it whoever asked there: another server
                # had kept the request, and passed it on to the process that came after.
                return
            answers.append(message[3])
            if len(answers) > 1:
                raise Violation(f"{subject} of {asked_ns} has {len(answers)} answers: {answers}")
            count()
            self.answers += 1
            self.refused += "error" in json.loads(message[3])
            self.slowest_ns = max(self.slowest_ns, self.world.now_ns - asked_ns)

        def late() -> None:
            if count() and process.alive and process.paused_ns < asked_ns:
                raise Violation(f"{process.machine.name} does not answer {subject} of {asked_ns}")

        self.waiting += 1
        process.request(subject, b"", self._of.hub.inbox("a", process.number, take))
        self.world.at(ANSWER_NS, late)


class FarFaults:
    """Carries out what happens between clusters."""

    def __init__(self, of: Simulation) -> None:
        self._of = of
        self.world = of.world
        self.network = of.network

    def event(self, item: Item) -> Callable[[], None] | None:
        """The item as an event, if it is one of these."""
        action = getattr(self, f"_{item.kind}", None)
        return None if action is None else lambda: action(item)

    def _between(self) -> list[tuple[int, int]]:
        """Ways from the servers of the first cluster to those of others."""
        of, machines = self._of.settings.place, self._of.machines
        first = of(0)
        numbers = [one.number for one in machines]
        return [(a, b) for a in numbers for b in numbers if of(a) == first != of(b)]

    def _block(self, pairs: list[tuple[int, int]], item: Item) -> None:
        if item.more % 4 != 0:
            pairs = pairs + [(b, a) for a, b in pairs]
        elif item.more & 4:
            pairs = [(b, a) for a, b in pairs]
        self.network.block(pairs, item.duration_ms * MS)

    def _far_cut(self, item: Item) -> None:
        """Nothing passes between clusters, at times in one direction only."""
        self._block(self._between(), item)

    def _far_link_cut(self, item: Item) -> None:
        """The same for one pair of servers."""
        pairs = self._between()
        self._block([pairs[item.pick % len(pairs)]], item)

    def _far_reset(self, item: Item) -> None:
        """Connections between clusters break, all or some of them."""
        for machine in self._of.machines:
            process = machine.process
            for socket in list(process.sockets.values()) if process is not None else []:
                there = socket.peer.owner.number
                far = self._of.settings.place(machine.number) != self._of.settings.place(there)
                if far and (item.more & 1 or (item.more >> machine.number) & 2):
                    socket.broken()
                    socket.peer.broken()

    def _far_slow(self, item: Item) -> None:
        """Other clusters are further away for a while."""
        pairs = self._between()
        pairs += [(b, a) for a, b in pairs]
        more = item.more % 200 * MS
        for pair in pairs:
            self.network.far_ns[pair] = self.network.far_ns.get(pair, 0) + more

        def nearer() -> None:
            for pair in pairs:
                self.network.far_ns[pair] -= more

        self.world.at(item.duration_ms * MS, nearer)

    def _cluster_pause(self, item: Item) -> None:
        """A whole cluster stands still."""
        names = self._of.settings.places()
        name = names[item.pick % len(names)]
        for machine in self._of.machines:
            if self._of.settings.place(machine.number) == name and machine.process is not None:
                machine.process.pause(item.duration_ms * MS)

    def _leaf_crash(self, item: Item) -> None:
        for machine in self._of.leafs:
            machine.stop(power=bool(item.more & 1), noticed=bool(item.more & 2))
            self.world.at(item.duration_ms * MS, machine.start)

    def _leaf_cut(self, item: Item) -> None:
        hubs = [machine.number for machine in self._of.machines]
        pairs = [(leaf.number, hub) for leaf in self._of.leafs for hub in hubs]
        self._block(pairs, item)

    def _leaf_reset(self, item: Item) -> None:
        for machine in self._of.leafs:
            process = machine.process
            for socket in list(process.sockets.values()) if process is not None else []:
                socket.broken()
                if item.more & 1:
                    socket.peer.broken()

    def _move(self, item: Item) -> None:
        """A stream is to go to another cluster, while it is published to."""
        number = item.pick % len(self._of.configs)
        names = self._of.settings.places()
        placement = {"cluster": names[item.more % len(names)]}
        config = {**self._of.configs[number], "placement": placement}
        self._of.operator.ask(f"STREAM.UPDATE.S{number}", config)


class Exam:
    """Looks at interest once all is well again."""

    def __init__(self, of: Simulation) -> None:
        self._of = of
        self.over = not of.plan.clusters

    def begin(self) -> None:
        """Everything is whole from now on."""
        if not self.over:
            far_ns = WAYS * self._of.plan.far_ms * MS
            self._of.world.at(INTEREST_NS + far_ns, self._speak)

    def _speak(self) -> None:
        self._of.room.speak()
        self._of.world.at(HEARD_NS, self._look)

    def _look(self) -> None:
        wrong = list(self._of.room.unheard())
        if wrong:
            raise Violation("interest is not right: " + "; ".join(wrong[:6]))
        self.over = True


def spread(of: Simulation, machines: Sequence[Machine], far_ns: int) -> None:
    """Put clusters, and leaf nodes, far away from each other."""
    place = of.settings.place
    for one in machines:
        for other in machines:
            if place(one.number) != place(other.number):
                of.network.far_ns[one.number, other.number] = far_ns
