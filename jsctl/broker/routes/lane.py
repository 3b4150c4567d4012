"""The lane of another server's messages: plain ones through the loop of `accel`, the rest in steps.

As with clients (`sessions.lane`), the loop takes canonical messages, here those that name no queue
groups, and stops in front of everything else. What stands in front of a message is its account,
unless the connection is dedicated to one; each has fans of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

from jsctl.broker.accel.contract import HEADERS, HEARS, TableType
from jsctl.broker.accounts.accounts import Account
from jsctl.broker.interest.kinds import ROUTE
from jsctl.broker.interest.outbound import Outbound
from jsctl.broker.interest.targets import RouteLink
from jsctl.broker.protocol.ops import RouteOp
from jsctl.broker.protocol.route import RouteParser
from jsctl.broker.routing.delivery import ACK_PREFIX
from jsctl.broker.routing.fans import Fans
from jsctl.broker.routing.router import Router

VERB, HEADER_VERB = b"RMSG ", b"HMSG "
STOPS = (ACK_PREFIX, b"|")
"""Replies that may name another subject to be shown, and the mark of messages for queue groups."""

ACCOUNT_BYTES_MAX = 512
"""Messages of accounts with longer names are carried out in steps."""

UNLIMITED = 1 << 40
"""Servers do not share a turn out among each other."""

Take = Callable[[list[RouteOp]], bool]
"""Carries operations out; False when the link is gone after that."""


@dataclass(frozen=True, slots=True)
class _Inlet:
    """Messages of one account on connections of one kind."""

    account: Account
    fans: Fans


class RouteLane:
    """The way in of messages from all links."""

    def __init__(self, router: Router, table: TableType) -> None:
        self._router = router
        self._table = table
        self._ways: dict[tuple[bytes, bool, int], _Inlet] = {}

    def forget(self) -> None:
        """Accounts or limits have changed."""
        self._ways.clear()

    def feed(self, link: RouteLink, parser: RouteParser, chunk: bytes, take: Take) -> None:
        """Take a chunk of a link's input. Operations are carried out in their order."""
        data = parser.gather(chunk)
        position, ops = 0, list[RouteOp]()
        while data is not None and 0 <= position < len(data):
            if data.startswith((VERB, HEADER_VERB), position):
                if ops and not take(ops):
                    return
                position, ops = self._pass(link, parser, data, position), []
                if position == len(data):
                    return
            op, position = parser.step(data, position)
            if op is not None:
                ops.append(op)
        if ops:
            take(ops)

    def _pass(self, link: RouteLink, parser: RouteParser, data: bytes, position: int) -> int:
        """Have the loop take what it can; the position behind it."""
        name, dedicated = parser.account, bool(parser.account)
        if not dedicated:
            start = position + len(VERB)
            name = data[start : data.find(b" ", start, start + ACCOUNT_BYTES_MAX)]
        way = self._way(name, dedicated, parser)
        if way is None:
            return position
        flags = HEARS if way.account.traced else HEARS | HEADERS
        position, count, size, _ = way.fans.route(data, position, link, flags, UNLIMITED)
        link.in_messages += count
        link.in_bytes += size
        return position

    def _way(self, name: bytes, dedicated: bool, parser: RouteParser) -> _Inlet | None:
        account = self._router.accounts.get(name.decode(errors="replace"))
        if account is None or account.wire_name != name:
            return None
        key = (name, dedicated, parser.line_max)
        way = self._ways.get(key)
        if way is None or way.account is not account:
            words = b"" if dedicated else name + b" "
            fans = Fans(
                self._table,
                self._router.delivery,
                account,
                ROUTE,
                anything,
                words=(VERB + words, HEADER_VERB + words),
                stops=STOPS,
                line_max=parser.line_max - len(words),
                payload_max=parser.payload_max,
            )
            way = self._ways[key] = _Inlet(account, fans)
        return way


def anything(origin: Outbound, subject: bytes) -> int:
    """See `fans.May`: what other servers send on was allowed where it came in."""
    return 1
