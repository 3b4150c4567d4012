"""One side of a run: servers whose streams have a checker and clients of their own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.protocol.deliveries import Item
from jsctl.broker.raft.types import Message
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.turn import DiskBatch
from tests.simulation.chat import Room
from tests.simulation.checks import Checker
from tests.simulation.clients import Hub
from tests.simulation.plan import Plan

if TYPE_CHECKING:
    from tests.simulation.machine import Process


class Side:
    """Implements `watch.Watch`: what servers do is shown to the checker, and to their clients."""

    plan: Plan
    checker: Checker
    hub: Hub

    @abstractmethod
    def talks_in(self) -> Room:
        """Where clients that only talk do so."""

    def started(self, process: Process) -> None:
        self.checker.started(process)
        if self.plan.chat:
            process.talk(self.talks_in())

    def sends(self, process: Process, name: str, messages: Sequence[Message]) -> None:
        self.checker.sends(process, name, messages)

    def says(self, process: Process, items: Sequence[Item]) -> None:
        for item in items:
            self.hub.says(process, item)

    def turned(self, process: Process) -> None:
        self.checker.acks = self.hub.take_acks()
        self.checker.turned(process)

    def leaves(self, process: Process, group: RaftGroup) -> None:
        if isinstance(group.unit, StreamReplica | ConsumerReplica):
            # What it told of in this very turn is known by that; and what waits for other
            # messages to go leaves later, and is checked by what it knew.
            self.checker.look(process, group)

    def durable(self, process: Process, batch: DiskBatch) -> None:
        self.checker.durable(process, batch)

    def stopped(self, process: Process) -> None:
        self.checker.ended(process)
