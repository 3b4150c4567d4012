"""A leaf node with a JetStream of its own, in a domain of its own: what it stores without its hub,
what a stream of the hub takes from it, and what it takes from the hub.

It is a side of its own: its streams have a checker, clients and an operator that know nothing of
those of the hub. In the end both sides have what the other one stored, each message once, in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.jetstream.sourcing.names import stream_identity
from tests.simulation.chat import Room
from tests.simulation.checks import Checker
from tests.simulation.clients import Hub, Operator, Publisher
from tests.simulation.machine import ACCOUNT, Machine
from tests.simulation.settings import EDGE_DOMAIN, HUB_DOMAIN
from tests.simulation.side import Side
from tests.simulation.stream_checks import Books

if TYPE_CHECKING:
    from tests.simulation.run import Simulation

STREAM, MIRROR, COPY = "EDGE", "DOWN", "UP"
"""What the leaf node stores, its mirror of the hub's first stream, and what the hub takes of it."""
FIRST_PUBLISHER = 100


def linked_to(hub: Hub, checker: Checker) -> None:
    """Have a checker told of what is promised to clients."""
    hub.look = checker.look
    hub.told = checker.told
    hub.consumers = checker.consumers
    hub.excused = checker.excused
    hub.fast_told = checker.fast_told


class Edge(Side):
    """That side."""

    def __init__(self, of: Simulation, number: int) -> None:
        self._of = of
        self.plan = of.plan
        self.hub = Hub(of.network)
        self.machine = Machine(number, of.network, of.settings, self, self.hub)
        self.hub.machines = [self.machine]
        self.checker = Checker(self.hub.machines)
        linked_to(self.hub, self.checker)
        self.operator = Operator(self.hub)
        self.publishers: list[Publisher] = []

    def talks_in(self) -> Room:
        return self._of.room

    # Phases

    def create(self) -> None:
        """Have the streams of both sides made; they may be there."""
        first = {"name": "S0", "external": {"api": f"$JS.{HUB_DOMAIN}.API"}}
        shared: dict[str, Any] = {"storage": "file"}
        for name, config in (
            (STREAM, {"subjects": [f"{STREAM}.>"]}),
            (MIRROR, {"mirror": first}),
        ):
            self._ask(self.operator, {**shared, **config, "name": name})
        source = {"name": STREAM, "external": {"api": f"$JS.{EDGE_DOMAIN}.API"}}
        replicas = self._of.plan.streams[0][0]
        config = {**shared, "name": COPY, "sources": [source], "num_replicas": replicas}
        self._ask(self._of.operator, config)
        if not self.publishers:
            self._publish()

    def _ask(self, operator: Operator, config: dict[str, Any]) -> None:
        operator.ask(f"STREAM.CREATE.{config['name']}", config, tries=20, until="already in use")

    def _publish(self) -> None:
        for at, ids in enumerate((True, False), FIRST_PUBLISHER):
            pace_ms = self._of.world.random.choice([20, 60, 150])
            made = Publisher(self.hub, at, STREAM, ids=ids, pace_ms=pace_ms)
            self.publishers.append(made)
            made.step()
        self._of.publishers += self.publishers

    # What is not settled

    def reasons(self, meta: Meta) -> Iterator[str]:
        """What is still to happen."""
        for publisher in self.publishers:
            if publisher.open:
                yield f"publisher {publisher.number} waits for {sorted(publisher.open)[:3]}"
        process = self.machine.process
        if process is None:
            yield "the leaf node is down"
            return
        own, main = process.engine.meta.state, self._of.checker
        made, taker = own.stream(ACCOUNT, STREAM), meta.stream(ACCOUNT, COPY)
        if made is None or taker is None or own.stream(ACCOUNT, MIRROR) is None:
            yield "not all streams at the leaf node are there"
            return
        edge, up = _books(self.checker, own, STREAM), _books(main, meta, COPY)
        if edge is not None and up is not None:
            identity = stream_identity(made.created_ns)
            taken = [one for (_, known), one in up.taken.items() if known == identity]
            yield from _lacking(COPY, edge, taken[0] if taken else {})
        first, down = _books(main, meta, "S0"), _books(self.checker, own, MIRROR)
        if first is not None and down is not None:
            yield from _lacking(MIRROR, first, down.values)

    def compare(self) -> None:
        """What its disk has is what its books have."""
        process = self.machine.process
        assert process is not None
        for name, known in self.checker.groups.items():
            group = process.engine.groups.by_name.get(name)
            if group is not None and isinstance(group.unit, StreamReplica):
                assert known.books is not None
                known.books.compare_all(self.machine.name, group.unit, set())


def _books(checker: Checker, meta: Meta, name: str) -> Books | None:
    """None for a stream that lost what was acknowledged, or is not there."""
    made = meta.stream(ACCOUNT, name)
    known = None if made is None else checker.history(made.group.name)
    return None if known is None or known.excused else known.books


def _lacking(name: str, origin: Books, taken: dict[int, bytes]) -> Iterator[str]:
    missing = [seq for seq in origin.model.rows if seq not in taken]
    if missing:
        yield f"{name} lacks {missing[:5]} of {origin.name}"
    wrong = [seq for seq in taken if origin.values.get(seq, b"") != taken[seq]]
    if wrong:
        yield f"{name} has other messages {wrong[:5]} than {origin.name}"
