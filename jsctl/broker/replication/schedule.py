"""Who has something to do: groups whose Ready is to be taken, and groups that time concerns."""

from dataclasses import field

from jsctl.broker.replication.group import RaftGroup
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class Schedule:
    """A group is touched when its Ready may have something, and awake while it needs ticks."""

    busy: dict[str, RaftGroup] = field(default_factory=dict)
    """Groups that have something to do. Only changed here, as the other."""
    awake: dict[str, RaftGroup] = field(default_factory=dict)
    """Groups that need ticks."""

    def touch(self, group: RaftGroup) -> None:
        """The group has something to do, unless it is not ours any more."""
        if not (group.dirty or group.gone):
            group.dirty = True
            self.busy[group.name] = group

    def wake(self, group: RaftGroup) -> None:
        """Something reached the group from outside: it has something to do, and needs ticks."""
        self.awake[group.name] = group
        self.touch(group)

    def tick(self, ticks: int) -> None:
        """Time went on by `ticks`; who is quiet afterwards gets no more of them."""
        for group in list(self.awake.values()):
            self._tick(group, ticks)

    def fell_behind(self, ticks: int) -> None:
        """So many more ticks went by, and come later."""
        for group in self.awake.values():
            group.raft.fell_behind(ticks)

    def catch_up(self) -> None:
        """What went by more comes now, for those that were awake meanwhile. Who was woken since
        begins with what it heard: nothing of that is so long ago."""
        for group in list(self.awake.values()):
            if group.raft.behind:
                self._tick(group, group.raft.behind)

    def _tick(self, group: RaftGroup, ticks: int) -> None:
        raft = group.raft
        for _ in range(ticks):
            raft.tick()
        if raft.quiet:
            self.awake.pop(group.name, None)
        self.touch(group)

    def take(self) -> list[RaftGroup]:
        """The groups that have something to do; they count as done."""
        dirty, self.busy = self.busy, {}
        for group in dirty.values():
            group.dirty = False
            if not group.raft.quiet:
                # What was done to a sleeping group, as a change of its members, has woken it: what
                # it says now and nobody hears is said again with the next ticks.
                self.awake[group.name] = group
        return list(dirty.values())

    def forget(self, group: RaftGroup) -> None:
        """A group is not ours any more."""
        self.awake.pop(group.name, None)
        self.busy.pop(group.name, None)

    def clear(self) -> None:
        """All groups stop."""
        self.awake.clear()
        self.busy.clear()
