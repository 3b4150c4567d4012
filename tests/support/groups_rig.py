"""Groups of one server over a simulated disk that runs batches when it is told to."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import (
    Entry,
    EntryKind,
    Members,
    Message,
)
from jsctl.broker.replication.checkpoints import GroupLimits
from jsctl.broker.replication.group import GroupKind, RaftGroup, SyncJob
from jsctl.broker.replication.groups import Groups
from jsctl.broker.replication.state_import import StateImporter
from jsctl.broker.store.wal.log import Wal, WalOptions
from jsctl.broker.turn import DiskBatch
from tests.support.sim_disk import SimDisk

OPTIONS = WalOptions(b"1" * 16, 1 << 18)
ABC = Members(("a", "b", "c"))
ALONE = Members(("a",))


@dataclass
class Checkpoint:
    """A job; `ran` on the disk thread."""

    index: int
    ran: bool = False

    def run(self) -> None:
        self.ran = True


@dataclass
class Unit:
    """Notes what a group asks of it."""

    applied: list[tuple[int, bytes]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    checkpoints: list[SyncJob] = field(default_factory=list)
    regained: bool = False

    def apply(self, index: int, data: bytes) -> int:
        self.applied.append((index, data))
        return index * 100

    def caught_up(self) -> None:
        self.told.append("caught up")

    def founded(self) -> bool:
        self.told.append("founded")
        return self.regained

    def lead(self, term: int) -> None:
        self.told.append(f"lead {term}")

    def unlead(self) -> None:
        self.told.append("unlead")

    def checkpoint(self, index: int, term: int, members: bytes) -> SyncJob | None:
        return Checkpoint(index)

    def checkpointed(self, job: SyncJob) -> None:
        self.checkpoints.append(job)

    def is_damaged(self) -> bool:
        return False

    def export(self) -> Iterator[bytes]:
        yield b""

    def importer(self) -> StateImporter:
        raise NotImplementedError

    def state_overtaken(self) -> None:
        self.told.append("overtaken")

    def close(self) -> None:
        self.told.append("close")

    def delete(self) -> None:
        self.told.append("delete")


def lone_group(name: str, members: Members = ALONE, *, volatile: bool = False) -> RaftGroup:
    """A fresh group of server `a` that nobody drives."""
    raft = Raft("a", members=members, volatile=volatile, jitter=lambda n: 0)
    return RaftGroup(name, name.encode(), GroupKind.STREAM, raft, Unit(), {})


class Rig:
    """Groups of server `a` over a disk that runs batches when told."""

    def __init__(self, limits: GroupLimits | None = None) -> None:
        self.disk = SimDisk(random.Random(1))
        wal, _ = Wal.open(self.disk, "log", OPTIONS)
        self.sent: list[tuple[bytes, Message]] = []
        self.groups = Groups(wal, self, limits or GroupLimits())
        self.batches: list[DiskBatch] = []
        self.units: dict[str, Unit] = {}

    def raft(self, peer: str, key: bytes, messages: Sequence[Message]) -> None:
        """The outbox."""
        for message in messages:
            assert message.to == peer
            self.sent.append((key, message))

    def add(self, name: str, members: Members = ALONE, *, volatile: bool = False) -> RaftGroup:
        """A fresh group; a lone one leads at once."""
        group = lone_group(name, members, volatile=volatile)
        assert isinstance(group.unit, Unit)
        self.units[name] = group.unit
        self.groups.add(group)
        if members == ALONE:
            group.raft.campaign()
            self.groups.touch(group)
            self.settle()
        return group

    def turn(self) -> None:
        """A turn without the disk."""
        self.groups.drain()
        self.batches += self.groups.seal()

    def run_disk(self) -> None:
        """The oldest batch runs, and a turn hears of it."""
        if self.batches:
            batch = self.batches.pop(0)
            batch.run()
            self.groups.synced(batch.ticket)
        self.turn()

    def settle(self) -> None:
        """Until nothing is left to do."""
        self.turn()
        while self.batches:
            self.run_disk()

    def take_sent(self) -> list[Message]:
        """What left since the last call."""
        sent, self.sent = self.sent, []
        return [message for _, message in sent]

    def step(self, *messages: Message, key: bytes = b"S") -> None:
        """Messages of peers, and a turn."""
        assert self.groups.step(key, messages)
        self.turn()


def entries(first: int, *items: bytes, term: int = 1) -> list[Entry]:
    """Entries with data."""
    return [Entry(i, term, EntryKind.DATA, data) for i, data in enumerate(items, first)]
