"""The lane of the cluster's servers: which messages are plain, and of which account they are.

What stands in front of a message is its account, unless the connection is dedicated to one; each
has fans of its own.
"""

from jsctl.broker.accel.contract import TableType
from jsctl.broker.accounts.accounts import Account
from jsctl.broker.interest.kinds import ROUTE
from jsctl.broker.interest.outbound import Outbound
from jsctl.broker.interest.targets import RouteLink
from jsctl.broker.linking.lane import STOPS, LinkLane
from jsctl.broker.protocol.route import RouteParser
from jsctl.broker.routes.deliveries import take_deliveries
from jsctl.broker.routing.fans import Fans
from jsctl.broker.routing.router import Router

VERB, HEADER_VERB = b"RMSG ", b"HMSG "
ACCOUNT_BYTES_MAX = 512
"""Messages of accounts with longer names are carried out in steps."""


class RouteLane(LinkLane[RouteLink]):
    """The way in of messages from all links."""

    words = (VERB, HEADER_VERB)

    def __init__(self, router: Router, table: TableType) -> None:
        self._router = router
        self._table = table
        self._ways: dict[tuple[bytes, bool, int], tuple[Account, Fans]] = {}

    def _pass(self, link: RouteLink, parser: RouteParser, data: bytes, position: int) -> int:
        before = -1
        while self._left > 0 and position > before and data.startswith(self.words, position):
            before = position
            position = super()._pass(link, parser, data, position)
            way = None
            if data.startswith(self.words, position):
                way = self._way(link, parser, data, position)
            if way is not None:
                words = b"" if parser.account else way[0].wire_name + b" "
                verbs = VERB + words, HEADER_VERB + words
                position = take_deliveries(
                    self._router, way[0], link, parser, data, position, verbs
                )
        return position

    def forget(self) -> None:
        """Accounts or limits have changed."""
        self._ways.clear()

    def _way(
        self, link: RouteLink, parser: RouteParser, data: bytes, position: int
    ) -> tuple[Account, Fans] | None:
        name, dedicated = parser.account, bool(parser.account)
        if not dedicated:
            start = position + len(VERB)
            name = data[start : data.find(b" ", start, start + ACCOUNT_BYTES_MAX)]
        account = self._router.accounts.get(name.decode(errors="replace"))
        if account is None or account.wire_name != name:
            return None
        link.cluster = b""
        key = (name, dedicated, parser.line_max)
        way = self._ways.get(key)
        if way is None or way[0] is not account:
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
            way = self._ways[key] = account, fans
        return way


def anything(origin: Outbound, subject: bytes) -> int:
    """See `fans.May`: what other servers send on was allowed where it came in."""
    return 1
