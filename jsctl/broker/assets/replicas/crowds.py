"""Publishers that are far ahead of their stream's log are not read until it has caught up.

What a leader has promised to the log is bounded, and a publish beyond that is refused, as by
nats-server. There a log that waits for no disk hardly ever gets so far behind; here an upload of a
few hundred megabytes would fail by its own speed. So whoever publishes to a stream with a good
part of the bound in flight waits, at his own socket. Those that come by other servers do not: their
connection is everybody's.
"""

from collections.abc import Sequence
from dataclasses import field

from jsctl.broker.interest.targets import Captured
from jsctl.broker.jetstream.streams.in_flight import InFlight
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class Crowds:
    """Of all streams that this server leads."""

    _open: dict[str, InFlight] = field(default_factory=dict)
    """Group of a stream -> what it has in flight: too much to take more at once."""
    _arrived: dict[str, dict[int, object]] = field(default_factory=dict)
    _over: list[str] = field(default_factory=list)

    def look(self, group: str, in_flight: InFlight, batch: Sequence[Captured]) -> None:
        """A leader has proposed these."""
        if in_flight.crowded:
            self._open[group] = in_flight
            origins = self._arrived.setdefault(group, {})
            origins.update((id(item[4]), item[4]) for item in batch)

    def leave(self, group: str) -> None:
        """Its log has caught up, or another server leads it."""
        if self._open.pop(group, None) is not None:
            self._over.append(group)

    def __bool__(self) -> bool:
        """Whether there is something to take, or will be."""
        return bool(self._open or self._over)

    def take_arrived(self) -> dict[str, dict[int, object]]:
        """Who published to which crowded stream since this was asked last; by identity."""
        arrived, self._arrived = self._arrived, {}
        return arrived

    def take_over(self) -> list[str]:
        """Which streams have room again."""
        for group in [group for group, one in self._open.items() if one.has_room]:
            self.leave(group)
        over, self._over = self._over, []
        return over
