"""Which raft groups are on this server."""

from collections.abc import Iterator
from dataclasses import field

from jsctl.broker.replication.group import RaftGroup
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class GroupRegistry:
    """Groups by their names, and by the keys that peers and the log know them by."""

    by_name: dict[str, RaftGroup] = field(default_factory=dict)
    """Read only for others."""
    _by_key: dict[bytes, RaftGroup] = field(default_factory=dict)

    def __iter__(self) -> Iterator[RaftGroup]:
        return iter(self.by_name.values())

    def add(self, group: RaftGroup) -> None:
        """Take a group in."""
        assert group.name not in self.by_name, group.name
        assert group.key not in self._by_key, group.name
        self.by_name[group.name] = group
        self._by_key[group.key] = group

    def remove(self, group: RaftGroup) -> None:
        """Forget a group."""
        self.by_name.pop(group.name, None)
        self._by_key.pop(group.key, None)

    def clear(self) -> None:
        """Forget all."""
        self.by_name.clear()
        self._by_key.clear()

    def of_key(self, key: bytes) -> RaftGroup | None:
        """The group that peers name by this key."""
        return self._by_key.get(key)
