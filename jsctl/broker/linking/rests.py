"""What is left of the input of servers: a turn carries out so much of it, and the next ones go on.

Meanwhile a connection is not read, so that it has no more left than came in one go. What it sent is
carried out in its order.
"""

from dataclasses import field
from typing import Protocol

from jsctl.dataclass import dataclass


class Valves(Protocol):
    """Connections that are not to be read for a while, and those that are again."""

    pauses: list[int]
    resumes: list[int]


def turn_valve(conn: int, valves: Valves, *, opens: bool) -> None:
    """A connection is read again, or no more for now."""
    here, there = (valves.resumes, valves.pauses) if opens else (valves.pauses, valves.resumes)
    if conn in there:
        there.remove(conn)  # The edge has not been told yet.
    else:
        here.append(conn)


@dataclass(slots=True)
class Rests:
    """Of all connections of a kind."""

    left: dict[int, bytes] = field(default_factory=dict)

    def take(self, conn: int, chunk: bytes) -> bytes:
        """What is to be carried out now: what was left, and what came behind it."""
        return self.left.pop(conn) + chunk if conn in self.left else chunk

    def keep(self, conn: int, data: bytes) -> None:
        """Leave what a turn did not carry out, if there is any."""
        if data:
            self.left[conn] = data
