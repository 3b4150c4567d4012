"""Reads that met damage: they wait until it is repaired, known to be lost for good, or too long."""

from collections.abc import Callable
from dataclasses import field

from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.errors import Damaged
from jsctl.dataclass import dataclass

WAIT_NS = 2_000_000_000
"""How long a read waits for a repair; clients wait for 5 s, as a rule."""
READS_MAX = 1_000
"""Reads that wait; what comes beyond them is refused at once."""

Again = Callable[[bool], None]
"""Reads once more; True: for the last time, so that what is damaged still is to be told."""


@dataclass(slots=True)
class WaitingRead:
    """A read that waits for a message."""

    replica: StreamReplica
    seq: int
    again: Again
    until_ns: int

    def is_over(self, now_ns: int) -> bool:
        """Whether waiting is of no use."""
        replica = self.replica
        return replica.group.gone or self.seq in replica.hopeless or now_ns >= self.until_ns


@dataclass(slots=True)
class DamagedReads:
    """Of one kind of requests."""

    context: ReplicaContext
    waiting: list[WaitingRead] = field(default_factory=list)
    """Reads that wait for a repair. Only changed here."""

    def wait(self, replica: StreamReplica, damage: Damaged, again: Again) -> None:
        """Have the damage repaired, and read once more then."""
        seq = damage.first_seq
        if len(self.waiting) >= READS_MAX or not replica.needs_message(seq):
            again(True)
        else:
            until_ns = self.context.now_ns + WAIT_NS
            self.waiting.append(WaitingRead(replica, seq, again, until_ns))

    def next_due_ns(self) -> int | None:
        """When the first of them has waited too long."""
        return self.waiting[0].until_ns if self.waiting else None

    def tick(self) -> None:
        """Take up reads whose waiting has an end."""
        if not self.waiting:
            return
        waiting, self.waiting = self.waiting, []
        for one in waiting:
            if one.is_over(self.context.now_ns):
                one.again(True)
            elif one.seq not in one.replica.store.lost:
                one.again(False)
            else:
                self.waiting.append(one)
