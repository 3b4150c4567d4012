"""Requests of the API that wait for a leader to come, or to go."""

from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.replication.group import RaftGroup
from jsctl.dataclass import dataclass

LEADERLESS_NS = 2_000_000_000
"""How long a request waits for its group to have a leader, wherever it is meanwhile."""


@dataclass(slots=True)
class HeldRequest:
    """A request on its way to who decides on it, which came in somewhere at `asked_ns`."""

    request: ApiRequest
    asked_ns: int
    hops: int
    again: bool = False
    """It is on its way for another time, as who was to decide on it is silent."""

    @property
    def until_ns(self) -> int:
        """So long it may wait for a leader."""
        return self.asked_ns + LEADERLESS_NS


@dataclass(slots=True)
class Leaving:
    """A leader that was asked to step down, and is about to."""

    group: RaftGroup
    term: int
    request: ApiRequest
    reply: bytes
    until_ns: int

    def is_over(self, now_ns: int) -> bool:
        """Whether somebody else leads as far as known here, or that takes too long."""
        group = self.group
        moved = not group.leading and group.raft.term > self.term and bool(group.leader)
        return moved or group.gone or now_ns >= self.until_ns
