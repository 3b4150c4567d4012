"""Who has something to do: groups whose Ready is to be taken, and groups that time concerns."""

from dataclasses import dataclass, field

from jsctl.broker.replication.group import RaftGroup


@dataclass(slots=True)
class Schedule:
    """A group is touched when its Ready may have something, and awake while it needs ticks."""

    _dirty: dict[str, RaftGroup] = field(default_factory=dict)
    _awake: dict[str, RaftGroup] = field(default_factory=dict)

    @property
    def busy(self) -> bool:
        """Whether some group has something to do."""
        return bool(self._dirty)

    @property
    def awake(self) -> bool:
        """Whether some group needs ticks."""
        return bool(self._awake)

    def touch(self, group: RaftGroup) -> None:
        """The group has something to do."""
        if not group.dirty:
            group.dirty = True
            self._dirty[group.name] = group

    def wake(self, group: RaftGroup) -> None:
        """Something reached the group from outside: it has something to do, and needs ticks."""
        self._awake[group.name] = group
        self.touch(group)

    def tick(self, ticks: int) -> None:
        """Time went on by `ticks`; who is quiet afterwards gets no more of them."""
        for group in list(self._awake.values()):
            raft = group.raft
            for _ in range(ticks):
                raft.tick()
            if raft.quiet:
                self._awake.pop(group.name, None)
            self.touch(group)

    def take(self) -> list[RaftGroup]:
        """The groups that have something to do; they count as done."""
        dirty, self._dirty = self._dirty, {}
        for group in dirty.values():
            group.dirty = False
        return list(dirty.values())

    def forget(self, group: RaftGroup) -> None:
        """A group is not ours any more."""
        self._awake.pop(group.name, None)
        self._dirty.pop(group.name, None)

    def clear(self) -> None:
        """All groups stop."""
        self._awake.clear()
        self._dirty.clear()
