"""Who looks at what servers do, and where it is shown to them.

A node's traffic and outbox are replaced by ones that show what passes before they pass it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from jsctl.broker.assets.traffic import RouterTraffic
from jsctl.broker.protocol.deliveries import Item, OutgoingMessage, singly
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import Message, PeerId, Role
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.turn import DiskBatch

if TYPE_CHECKING:
    from tests.simulation.machine import Process


class Mark(NamedTuple):
    """Where a group stands on a server: the same one again, and nothing of it changed."""

    raft: Raft
    role: Role
    term: int
    vote: PeerId
    members_index: int
    base_index: int
    applied: int
    commit: int
    last_index: int
    last_term: int

    @classmethod
    def of(cls, raft: Raft) -> Mark:
        """Where it stands now."""
        log = raft.log
        return cls._make(
            (
                raft,
                raft.role,
                raft.term,
                raft.vote,
                raft.membership.active_index,
                log.base_index,
                raft.applied,
                log.commit,
                log.last_index,
                log.last_term,
            )
        )


class Watch(Protocol):
    """Who checks what servers do."""

    def started(self, process: Process) -> None:
        """A process has read its disk."""

    def sends(self, process: Process, name: str, messages: Sequence[Message]) -> None:
        """Raft messages of a group leave."""

    def says(self, process: Process, items: Sequence[Item]) -> None:
        """A server publishes to clients."""

    def turned(self, process: Process) -> None:
        """A turn is over."""

    def leaves(self, process: Process, group: RaftGroup) -> None:
        """A server is about to let go of a group."""

    def durable(self, process: Process, batch: DiskBatch) -> None:
        """A batch ran."""

    def stopped(self, process: Process) -> None:
        """A process ended of itself, as it should."""


class CheckedTraffic(RouterTraffic):
    """Shows the watch what streams and consumers say, where they say it."""

    process: Process

    def deliver(self, account: str, said: Sequence[OutgoingMessage]) -> None:
        self.process.machine.watch.says(self.process, singly(said))
        super().deliver(account, said)

    def ask(self, account: str, item: Item) -> None:
        self.process.machine.watch.says(self.process, [item])
        super().ask(account, item)


def watch_traffic(process: Process) -> None:
    """Show the watch what streams and consumers say."""
    context = process.engine.context
    assert isinstance(context.traffic, RouterTraffic)
    shown = CheckedTraffic(context.traffic.router, context.traffic.enabled)
    shown.process = process
    context.traffic = shown


def watch_removals(process: Process) -> None:
    """Show the watch groups that go within a turn, while they can be looked at."""
    groups = process.engine.groups
    remove = groups.remove

    def watched(group: RaftGroup) -> None:
        groups.apply_rest()  # As it does first itself.
        process.machine.watch.leaves(process, group)
        remove(group)

    groups.remove = watched  # type: ignore[method-assign]  # only of this one


@dataclass
class CheckedOutbox:
    """Shows the watch what leaves to peers."""

    process: Process

    def raft(self, peer: PeerId, key: bytes, messages: Sequence[Message]) -> None:
        """Queue messages of one group for a peer."""
        self.process.machine.watch.sends(self.process, key.decode(), messages)
        self.process.engine.outbox.raft(peer, key, messages)
