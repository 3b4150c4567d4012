"""What a server does when its disk is full, or does not answer: others lead what it cannot.

Only streams are handed over because of a full disk: what is left of it is kept for all that goes on
there, consumers and the meta group among it. They go to servers that have room alone, so that a
cluster whose disks are all full does not have them wander from one to the next.
"""

from jsctl.broker.assets.assets import Assets
from jsctl.broker.assets.cluster_view import ClusterView
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.turn import LogLevel
from jsctl.dataclass import dataclass

DISK_SILENT_NS = 2_000_000_000
"""How long one sync may take before others are to lead."""
DISK_LOOK_NS = 100_000_000
DISK_RESERVE_BYTES = 64 * 1024 * 1024
"""Room that is kept for the log itself."""
SHORT_NS = 5_000_000_000
"""How long a disk counts as full after something found no room although there seemed to be some.

A quota, and a limit of the size of files, leave room that this process may not use. What comes
behind that time finds out whether it may.
"""
FULL_NS = 1_500_000_000
"""By then all have told whether their disks are full, too."""


@dataclass(slots=True)
class DiskWatch:
    """Times in ns."""

    context: ReplicaContext
    assets: Assets
    cluster: ClusterView
    due_ns: int = 0
    """When to look at the room on the disk again."""
    _silent: bool = False
    _full_since_ns: int = 0
    _low: bool = False
    """The last look found little room."""
    _short_until_ns: int = 0

    def look(self) -> None:
        """Stop to take messages before the disk is full, and go on when there is room again."""
        context = self.context
        if context.now_ns < self.due_ns:
            return
        self.due_ns = context.now_ns + DISK_LOOK_NS
        shortage = context.disk.take_shortage()
        before, self._low = self._low, context.disk.free_bytes() < DISK_RESERVE_BYTES
        if shortage and not (before or self._low):
            self._short_until_ns = context.now_ns + SHORT_NS
        full = self._low or context.now_ns < self._short_until_ns
        if full != context.disk_full:
            context.disk_full = full
            self._full_since_ns = context.now_ns
            text = "Disk is full: publishes are refused, reads go on" if full else "Disk has room"
            text += f" ({shortage})" if shortage else ""
            context.log(LogLevel.ERROR if full else LogLevel.INFO, text)

    def hand_over(self) -> None:
        """Now and then: others are to lead what they can take messages for, and this one cannot."""
        self._leave_silent()
        context = self.context
        if context.disk_full and context.now_ns >= self._full_since_ns + FULL_NS:
            self._leave_full()

    def _leave_silent(self) -> None:
        """A leader can acknowledge nothing while its disk does not answer; others may."""
        groups = self.context.groups
        silent = groups.disk_silent_ns >= DISK_SILENT_NS
        if silent:
            groups.hand_over_all()
        if silent != self._silent:
            self._silent = silent
            text = "The disk does not answer: leadership goes to other servers"
            if not silent:
                text = "The disk answers again"
            self.context.log(LogLevel.ERROR if silent else LogLevel.INFO, text)

    def _leave_full(self) -> None:
        for replica in self.assets.streams.values():
            group = replica.group
            if (
                group.leading
                and not replica.volatile
                and any(group.raft.transfer(peer) for peer in self._heirs(replica))
            ):
                self.context.groups.touch(group)

    def _heirs(self, replica: StreamReplica) -> list[str]:
        """Who has all that is committed of a stream, sound as far as is known, and room."""
        raft, name = replica.group.raft, replica.group.name
        return [
            one.peer
            for one in raft.progress()
            if one.active and not one.learner and not one.snapshot and one.match >= raft.commit
            if self.cluster.has_room(one.peer) and not self.cluster.is_damaged(name, one.peer)
        ]
