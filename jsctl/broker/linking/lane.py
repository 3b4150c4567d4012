"""The lane of another server's messages: plain ones through the loop of `accel`, the rest in steps.

As with clients (`sessions.lane`), the loop takes canonical messages, here those that name no queue
groups, and stops in front of everything else.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from jsctl.broker.accel.contract import HEADERS, HEARS
from jsctl.broker.accounts.accounts import Account
from jsctl.broker.interest.links import GATEWAY_REPLY, ServerLink
from jsctl.broker.interest.outbound import TARGETS_SHIFT
from jsctl.broker.protocol.ops import RouteOp
from jsctl.broker.protocol.route import RouteParser
from jsctl.broker.routing.fans import Fans
from jsctl.broker.routing.router import Router
from jsctl.broker.routing.shown import ACK_PREFIX

STOPS = (ACK_PREFIX, b"|", GATEWAY_REPLY)
"""Replies that may name another subject to be shown, the mark of messages for queue groups, and
replies that lead to another cluster."""
UNITS = 1024
"""What a turn does for one connection, in units of `sessions.effort`: all of a chunk, unless many
listen to its messages, or it is no messages."""

Take = Callable[[list[RouteOp]], bool]
"""Carries operations out; False when the link is gone after that."""
L = TypeVar("L", bound=ServerLink)


class LinkLane(Generic[L]):
    """The way in of messages from links of a kind, which begin with one of `words`."""

    words: tuple[bytes, bytes]
    _router: Router
    _left: int
    """Of the units of the call at hand."""

    def feed(self, link: L, parser: RouteParser, chunk: bytes, take: Take) -> bytes:
        """Take a chunk of a link's input. Operations are carried out in their order; what is behind
        those that a turn is for is returned."""
        self._left = UNITS
        data = parser.gather(chunk)
        position, ops = 0, list[RouteOp]()
        while data is not None and 0 <= position < len(data):
            if data.startswith(self.words, position):
                if ops and not self._carry_out(ops, take):
                    return b""
                position, ops = self._pass(link, parser, data, position), []
                if position == len(data):
                    return b""
            if self._left <= 0:
                break
            self._left -= 1
            op, position = parser.step(data, position)
            if op is not None:
                ops.append(op)
        if data is None or (ops and not self._carry_out(ops, take)) or position < 0:
            return b""
        return data[position:]

    def _carry_out(self, ops: list[RouteOp], take: Take) -> bool:
        delivery = self._router.delivery
        before = delivery.spread
        is_there = take(ops)
        self._left -= delivery.spread - before
        return is_there

    def _pass(self, link: L, parser: RouteParser, data: bytes, position: int) -> int:
        """Have the loop take what it can; the position behind it."""
        way = self._way(link, parser, data, position)
        if way is None:
            return position
        account, fans = way
        flags = HEARS if account.traced else HEARS | HEADERS
        budget = self._left << TARGETS_SHIFT
        position, count, size, cost = fans.route(data, position, link, flags, budget)
        if cost:
            self._left -= (cost >> TARGETS_SHIFT) + 1
        link.in_messages += count
        link.in_bytes += size
        self._passed(account, count, size)
        return position

    @abstractmethod
    def _way(
        self, link: L, parser: RouteParser, data: bytes, position: int
    ) -> tuple[Account, Fans] | None:
        """The account of the message at a position, and where its messages go; None if the loop is
        not for it."""

    def _passed(self, account: Account, count: int, size: int) -> None:
        """The loop has taken so many messages."""
