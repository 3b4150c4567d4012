"""How much of what clients sent one turn carries out, so that all of them take turns.

A turn shares out a number of units among the connections that have something to do. A unit is
about the work of one operation: a message in a run or among rows counts for its part of one. Who
has used his share is not read until the next turns, which follow at once, have done the rest.
Units are counted, not measured, so that the same input makes the same turns.
"""

from jsctl.dataclass import dataclass

UNLIMITED = 1 << 40


@dataclass(slots=True)
class Effort:
    """What is `left` to the connection at work. Without `begin` there is no end of it."""

    turn_units_max: int
    share_units_min: int
    left: int = UNLIMITED
    _share: int = UNLIMITED

    def begin(self, connections: int) -> None:
        """A turn begins in which so many connections have something to do."""
        self._share = max(self.turn_units_max // max(connections, 1), self.share_units_min)

    def next(self) -> None:
        """Another connection has its share."""
        self.left = self._share
