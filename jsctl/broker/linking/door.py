"""What the doors of gateways and leaf nodes have in common: operations of another server in their
order, and what becomes of one that is none."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from jsctl.broker.linking.fields import UNAUTHORIZED
from jsctl.broker.protocol.ops import Bad, Interest, NoInterest, Routed, RouteOp
from jsctl.broker.turn import LogLevel


class LinkedConnection(Protocol):
    """One connection of a kind."""

    closing: bool


C = TypeVar("C", bound=LinkedConnection)
K = TypeVar("K", bound=LinkedConnection, contravariant=True)


class Refusing(Protocol[K]):
    """All connections of a kind: how one of them ends."""

    def log(self, level: LogLevel, one: K, text: str, /) -> None:
        """Tell the operator something of a connection."""

    def refuse(self, one: K, text: str, reason: str, /) -> None:
        """Say what is wrong, and close."""


class LinkDoor(Generic[C]):
    """See the module."""

    __slots__ = ()

    def _take(self, one: C, ops: Sequence[RouteOp]) -> bool:
        """Carry operations out; False when the connection is over."""
        routed: list[RouteOp] = []
        for op in ops:
            if isinstance(op, Routed | Interest | NoInterest):
                routed.append(op)
                continue
            if routed and not self._route(one, routed):
                return False
            routed = []
            self._handshake(one, op)
            if one.closing:
                return False
        return not routed or self._route(one, routed)

    @abstractmethod
    def _route(self, one: C, ops: list[RouteOp]) -> bool:
        """Messages and interest; False when the connection is over."""

    @abstractmethod
    def _handshake(self, one: C, op: RouteOp) -> None:
        """Everything else."""


def refuse_bad(connections: Refusing[C], one: C, op: Bad, *, stranger: bool) -> None:
    """End a connection on which something came that is no operation; one that has not said who it
    is need not know what was wrong."""
    text = op.text.decode("utf-8", "replace") or op.reason
    if stranger:
        connections.log(LogLevel.ERROR, one, f"authentication error: {text}")
        connections.refuse(one, *UNAUTHORIZED)
    else:
        connections.refuse(one, text, op.reason)
