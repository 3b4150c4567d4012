from collections.abc import Sequence

from jsctl.broker.accel.contract import Chunk, Leg, Member, Miss, Outputs, Passed

class Table:
    def __init__(
        self,
        verb: bytes,
        header_verb: bytes,
        stops: tuple[bytes, ...],
        line_max: int,
        payload_max: int,
        miss: Miss,
        /,
    ) -> None: ...
    @property
    def full(self) -> bool: ...
    def target(self, peer: object) -> int: ...
    def fan(
        self,
        legs: Sequence[Leg],
        counted: object,
        sinks: Sequence[int],
        groups: Sequence[Sequence[Member]],
    ) -> int: ...
    def clear(self) -> None: ...
    def route(
        self, data: bytes, position: int, origin: object, flags: int, budget: int, lot: int
    ) -> Passed: ...
    def route_each(
        self, rows: list[Chunk], lot: int, /
    ) -> tuple[list[int], int, Outputs | None]: ...
