"""The lane of leaf nodes and hubs: which of their messages are plain.

A connection has fans of its own, as messages do not go back to where they come from, and as its
permissions are its own. Where accounts map subjects, steps do the work, and so they do for messages
that may not pass, or only as answers.
"""

from jsctl.broker.accel.contract import TableType
from jsctl.broker.accounts.accounts import Account
from jsctl.broker.interest.links import BROKERS
from jsctl.broker.interest.outbound import Outbound
from jsctl.broker.interest.targets import LeafLink
from jsctl.broker.linking.lane import STOPS, LinkLane
from jsctl.broker.protocol.route import RouteParser
from jsctl.broker.routing.fans import Fans
from jsctl.broker.routing.router import Router

WORDS = (b"LMSG ", b"HMSG ")


class LeafLane(LinkLane[LeafLink]):
    """The way in of messages from all links."""

    words = WORDS

    def __init__(self, router: Router, table: TableType) -> None:
        self._router = router
        self._table = table
        self._ways: dict[LeafLink, tuple[Account, Fans] | None] = {}

    def forget(self, link: LeafLink | None = None) -> None:
        """A link is gone or has other permissions; or accounts or limits have changed."""
        if link is None:
            self._ways.clear()
        else:
            self._ways.pop(link, None)

    def _way(
        self, link: LeafLink, parser: RouteParser, data: bytes, position: int
    ) -> tuple[Account, Fans] | None:
        if link not in self._ways:
            self._ways[link] = self._made(link, parser)
        return self._ways[link]

    def _made(self, link: LeafLink, parser: RouteParser) -> tuple[Account, Fans] | None:
        account = link.account
        assert isinstance(account, Account)
        if account.mappings:
            return None
        guard = link.guard
        free = guard is None or guard.takes_all
        fans = Fans(
            self._table,
            self._router.delivery,
            account,
            link.kind,
            anything if free else may_take,
            words=WORDS,
            stops=STOPS,
            line_max=parser.line_max,
            payload_max=parser.payload_max,
        )
        return account, fans

    def _passed(self, account: Account, count: int, size: int) -> None:
        account.in_messages += count
        account.in_bytes += size


def may_take(origin: Outbound, subject: bytes) -> int:
    """See `fans.May`; asked for connections alone that have a guard."""
    assert isinstance(origin, LeafLink) and origin.guard is not None
    return 0 if subject.startswith(BROKERS) else origin.guard.taking(subject)


def anything(origin: Outbound, subject: bytes) -> int:
    """See `fans.May`: what it says is not refused, but for what brokers alone say."""
    return 0 if subject.startswith(BROKERS) else 1
