"""The lane of servers of other clusters: which of their messages are plain.

What stands in front of a message is its account; each has fans of its own.
"""

from jsctl.broker.accel.contract import TableType
from jsctl.broker.accounts.accounts import Account
from jsctl.broker.interest.kinds import GATEWAY
from jsctl.broker.interest.links import GatewayLink
from jsctl.broker.interest.outbound import Outbound
from jsctl.broker.linking.lane import STOPS, LinkLane
from jsctl.broker.protocol.route import RouteParser
from jsctl.broker.routing.fans import Fans
from jsctl.broker.routing.router import Router

VERB, HEADER_VERB = b"RMSG ", b"HMSG "
ACCOUNT_BYTES_MAX = 512
"""Messages of accounts with longer names are carried out in steps."""


class GatewayLane(LinkLane[GatewayLink]):
    """The way in of messages from all of them."""

    words = (VERB, HEADER_VERB)

    def __init__(self, router: Router, table: TableType) -> None:
        self._router = router
        self._table = table
        self._ways: dict[tuple[bytes, int], tuple[Account, Fans]] = {}

    def forget(self) -> None:
        """Accounts or limits have changed."""
        self._ways.clear()

    def _way(
        self, link: GatewayLink, parser: RouteParser, data: bytes, position: int
    ) -> tuple[Account, Fans] | None:
        start = position + len(VERB)
        name = data[start : data.find(b" ", start, start + ACCOUNT_BYTES_MAX)]
        account = self._router.accounts.get(name.decode(errors="replace"))
        if link.outbound or account is None or account.wire_name != name:
            return None
        key = (name, parser.line_max)
        way = self._ways.get(key)
        if way is None or way[0] is not account:
            words = name + b" "
            fans = Fans(
                self._table,
                self._router.delivery,
                account,
                GATEWAY,
                anything,
                words=(VERB + words, HEADER_VERB + words),
                stops=STOPS,
                line_max=parser.line_max - len(words),
                payload_max=parser.payload_max,
            )
            way = self._ways[key] = account, fans
        return way

    def _passed(self, account: Account, count: int, size: int) -> None:
        account.in_messages += count
        account.in_bytes += size


def anything(origin: Outbound, subject: bytes) -> int:
    """See `fans.May`: what another cluster sends was allowed where it came in."""
    return 1
