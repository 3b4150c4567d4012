"""What is written before the process ends, so that the next start has less to read again."""

from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.replication.groups import Groups
from jsctl.dataclass import dataclass

AT_ONCE = 4
"""States that are with the disk at a time: those are waited for in the end."""


@dataclass(slots=True)
class LastWrites:
    """Makes applied states durable, those with the longest log behind them first.

    The log has all of it. So this takes as long as it may, however many groups there are.
    """

    groups: Groups
    _waiting: list[RaftGroup] | None = None

    def step(self, more: bool) -> bool:
        """Go on while there is time for `more`; whether the disk has nothing left to do."""
        groups = self.groups
        if self._waiting is None:
            every = groups.by_name.values()
            self._waiting = sorted(every, key=lambda one: one.raft.applied - one.checkpointed)
        if not more:
            self._waiting.clear()
        while self._waiting and groups.checkpoints.running < AT_ONCE:
            group = self._waiting.pop()
            if not group.gone:
                groups.checkpoints.soon(group)
        if groups.removals.waiting:
            groups.durability.flush()
        return not self._waiting and groups.idle
