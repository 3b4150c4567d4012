"""One raft group on this server: its log, what it replicates, and who waits for its entries.

Knows no socket, no file and no JetStream meaning. `Groups` drives many of these and owns the
write-ahead log they share.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from enum import Enum
from typing import Protocol

from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import Entry, EntryKind, Index, Members, PeerId
from jsctl.dataclass import dataclass


class GroupKind(Enum):
    """What a group replicates; the first letter of its name says the same."""

    META = "_meta_"
    STREAM = "S"
    CONSUMER = "C"


class SyncJob(Protocol):
    """Work for the disk thread; afterwards everything up to `index` is safe without the log."""

    @property
    def index(self) -> int:
        """Up to here the log is not needed once this ran."""

    def run(self) -> None:
        """Write and sync. Raises DiskError."""


class ReplicaImporter(Protocol):
    """Builds a unit's state from pieces, beside the state in use."""

    def feed(self, chunk: bytes) -> None:
        """Take the next piece. Raises BrokerError when it does not fit."""

    def finish(self, index: int, term: int, members: bytes) -> SyncJob:
        """All pieces are there: the job that makes the new state durable."""

    def switch(self) -> None:
        """The job ran: use the new state from now on."""

    def abandon(self) -> None:
        """Throw away what was built."""


class Replica(Protocol):
    """What a group replicates, seen from its log."""

    def apply(self, index: int, data: bytes) -> int:
        """Take one committed entry; the result is what a waiting request is told."""

    def caught_up(self) -> None:
        """The last entry of this drain was applied; react once to all of them."""

    def founded(self) -> bool:
        """This server was elected, and nothing is in the log yet: what else begins a group may
        go along with the leader's first own entry, and share its sync.

        Whether all of that comes again just so, from the assignment, if a crash takes it away.
        """

    def lead(self, term: int) -> None:
        """This server leads and its first own entry is applied: admit, subscribe, deliver."""

    def unlead(self) -> None:
        """This server does not lead any more: stop all of that, promise nothing."""

    def checkpoint(self, index: int, term: int, members: bytes) -> SyncJob | None:
        """A job that makes the applied state durable; None when there is nothing new."""

    def checkpointed(self, job: SyncJob) -> None:
        """A job of `checkpoint` ran."""

    def state_overtaken(self) -> None:
        """The state file does not speak of this state: write one with the next checkpoint."""

    def export(self) -> Iterator[bytes]:
        """The applied state in pieces, for a replica that is too far behind."""

    def is_damaged(self) -> bool:
        """Whether part of the applied state is known to be lost on this server."""

    def importer(self) -> "ReplicaImporter":
        """Start to build a state from the pieces of another replica's `export`."""

    def close(self) -> None:
        """Release files; keep the data."""

    def delete(self) -> None:
        """Remove the data."""


class RemovedReplica:
    """What a group replicates that was removed from this server: nothing. Who still has the group
    changes nothing by it, and holds no data through it."""

    def apply(self, index: int, data: bytes) -> int:
        """See `Replica`."""
        return 0

    def caught_up(self) -> None:
        """See `Replica`."""

    def founded(self) -> bool:
        """See `Replica`."""
        return False

    def lead(self, term: int) -> None:
        """See `Replica`."""

    def unlead(self) -> None:
        """See `Replica`."""

    def checkpoint(self, index: int, term: int, members: bytes) -> SyncJob | None:
        """See `Replica`."""
        return None

    def checkpointed(self, job: SyncJob) -> None:
        """See `Replica`."""

    def state_overtaken(self) -> None:
        """See `Replica`."""

    def export(self) -> Iterator[bytes]:
        """See `Replica`."""
        return iter(())

    def is_damaged(self) -> bool:
        """See `Replica`."""
        return False

    def importer(self) -> ReplicaImporter:
        """See `Replica`."""
        raise AssertionError("a state for a group that was removed")

    def close(self) -> None:
        """See `Replica`."""

    def delete(self) -> None:
        """See `Replica`."""


_REMOVED = RemovedReplica()

Waiter = Callable[[int | None], None]
"""Called once with an entry's result, or with None when its fate is unknown."""


@dataclass(slots=True)
class RaftGroup:
    """A raft group with its unit. Times are in ns."""

    name: str
    key: bytes
    kind: GroupKind
    raft: Raft
    unit: Replica
    waiting: dict[Index, Waiter]
    dirty: bool = False
    gone: bool = False
    """The replica was removed from this server."""
    leading: bool = False
    """`unit.lead` was called, for `led_term`."""
    led_term: int = 0
    leader: PeerId = ""
    leader_since_ns: int = 0
    ticket: int = 0
    """The last disk batch that carries records of this group."""
    unsealed: bool = False
    """There may be records of this group that no disk batch carries yet."""
    passes: Callable[[Sequence[Entry]], bool] | None = None
    """Whether nobody misses entries, if a crash takes them from the only server that has them: what
    they make, change or end does not outlive the process. None: somebody always does."""
    foretell: Callable[[Sequence[Entry]], bool] | None = None
    """Say what follows from committed entries before they are applied; False, and nothing is said,
    where somebody waits for more than that. None: somebody always does."""
    patient: Callable[[], bool] | None = None
    """Whether nobody at other servers waits to hear that entries are committed. None: somebody
    always does."""
    passing: bool = False
    """All of it that is not durable yet may be lost, and nobody would miss it."""
    provisional: bool = False
    """What founds it is not durable yet, and would come again just so if it were lost."""
    applied_term: int = 0
    checkpointed: Index = 0
    """Entries up to here are not needed for recovery."""
    checkpoint_running: bool = False
    checkpoint_again: bool = False
    """Another one is wanted as soon as the running one is done."""
    states_sent: dict[PeerId, Index] = field(default_factory=dict)
    """Leader: of what entry a state is on its way to a follower."""
    replacing: int = 0
    """States from elsewhere that are on their way to the disk, to be used from then on."""
    after_checkpoint: list[Callable[[], None]] = field(default_factory=list)
    """Called when the next checkpoint is written that is begun from now on."""
    log_bytes: int = 0
    """Size of what was written for this group since the last checkpoint."""
    state_bytes: int = 0
    """Size of the state that the last checkpoint wrote beside the unit's own files."""
    members: Members | None = None
    """Members as of the last applied entry."""

    @property
    def applied_members(self) -> Members:
        """Those of the applied state: what follows in the log may yet be taken back."""
        return self.members or self.raft.membership.at(self.raft.applied)

    def unapplied(self) -> Iterator[bytes]:
        """What is in the log and not applied."""
        raft = self.raft
        for entry in raft.log.slice(raft.applied + 1, raft.log.last_index):
            if entry.kind is EntryKind.DATA:
                yield entry.data

    def part(self) -> None:
        """The group is removed: group and unit do not hold each other any more, so that both go
        with the last one who has them, and the collector has nothing to find."""
        self.gone = True
        self.unit = _REMOVED
        self.passes = self.foretell = self.patient = None

    def fail_waiting(self) -> None:
        """Tell everybody who waits that the outcome is not known here."""
        waiting, self.waiting = self.waiting, {}
        for waiter in waiting.values():
            waiter(None)


@dataclass(slots=True)
class LeaderChange:
    """A group's leader as seen here changed; `leader` empty when there is none."""

    group: RaftGroup
    leader: PeerId
    term: int
