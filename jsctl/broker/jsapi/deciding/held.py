"""Requests of the API that wait for a leader to come."""

from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.dataclass import dataclass

LEADERLESS_NS = 2_000_000_000
"""How long a request waits for its group to have a leader, wherever it is meanwhile."""

HELD_MAX = 10_000
"""Requests that wait for a leader, a read or a turn, each; more are dropped."""


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
