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
from jsctl.broker.protocol.ops import RouteOp
from jsctl.broker.protocol.route import RouteParser
from jsctl.broker.routing.fans import Fans
from jsctl.broker.routing.shown import ACK_PREFIX

STOPS = (ACK_PREFIX, b"|", GATEWAY_REPLY)
"""Replies that may name another subject to be shown, the mark of messages for queue groups, and
replies that lead to another cluster."""
UNLIMITED = 1 << 40
"""Servers do not share the loop's turn out among each other."""

Take = Callable[[list[RouteOp]], bool]
"""Carries operations out; False when the link is gone after that."""
L = TypeVar("L", bound=ServerLink)


class LinkLane(Generic[L]):
    """The way in of messages from links of a kind, which begin with one of `words`."""

    words: tuple[bytes, bytes]

    def feed(
        self, link: L, parser: RouteParser, chunk: bytes, take: Take, steps: int = UNLIMITED
    ) -> bytes:
        """Take a chunk of a link's input. Operations are carried out in their order; what is behind
        so many that were not for the loop is returned."""
        data = parser.gather(chunk)
        position, ops = 0, list[RouteOp]()
        while data is not None and 0 <= position < len(data):
            if data.startswith(self.words, position):
                if ops and not take(ops):
                    return b""
                position, ops = self._pass(link, parser, data, position), []
                if position == len(data):
                    return b""
            if not steps:
                break
            steps -= 1
            op, position = parser.step(data, position)
            if op is not None:
                ops.append(op)
        if data is None or (ops and not take(ops)) or position < 0:
            return b""
        return data[position:]

    def _pass(self, link: L, parser: RouteParser, data: bytes, position: int) -> int:
        """Have the loop take what it can; the position behind it."""
        way = self._way(link, parser, data, position)
        if way is None:
            return position
        account, fans = way
        flags = HEARS if account.traced else HEARS | HEADERS
        position, count, size, _ = fans.route(data, position, link, flags, UNLIMITED)
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
