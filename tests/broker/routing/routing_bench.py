"""A server's routing without sockets: type lines as a client or a route, read what comes."""

import itertools
import re

from jsctl.broker.accounts.accounts import Account, Accounts
from jsctl.broker.interest.targets import RouteLink
from jsctl.broker.options import Options
from jsctl.broker.protocol.route import RouteParser
from jsctl.broker.routing.limits import RoutingLimits, ServerIdentity
from jsctl.broker.routing.router import Router
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.turn import Accepted, ConnKind, TurnOutputs, Verify

_INFO = re.compile(rb"INFO \{.*?\} \r\n")
QUIET = b'CONNECT {"verbose":false,"pedantic":false,"headers":true%s}\r\n'


class Server:
    """Accounts, router and sessions of one server, with a clock that tests move."""

    def __init__(self, options: Options | None = None, limits: RoutingLimits | None = None) -> None:
        options = options or Options()
        limits = limits or RoutingLimits()
        self.accounts = Accounts(options)
        self.counter = itertools.count()
        self.router = Router(self.accounts, limits, lambda below: next(self.counter) % below)
        self.identity = ServerIdentity("NID", "one", auth_required=self.accounts.logins.required)
        self.sessions = Sessions(self.router, self.identity, limits)
        self.now_ns = 1_000
        self.inbox: dict[int, bytes] = {}
        self.closes: dict[int, str] = {}
        self.verifies: list[Verify] = []
        self.last = TurnOutputs()
        self._parsers: dict[int, RouteParser] = {}

    def reload(self, options: Options) -> None:
        """Have other accounts and users."""
        self.router.follow(self.accounts.configure(options))
        self.sessions.review()
        self.emit()

    def emit(self) -> None:
        outputs = self.last = TurnOutputs()
        self.sessions.emit(outputs)
        for conn, data in outputs.writes:
            self.inbox[conn] = self.inbox.get(conn, b"") + data
        self.closes.update(outputs.closes)
        self.verifies += outputs.verifies

    def open(self, conn: int, lines: bytes = b"", host: str = "1.2.3.4") -> None:
        self.router.now_ns = self.now_ns
        self.sessions.accept(Accepted(conn, ConnKind.CLIENT, host, 99), self.now_ns)
        self.say(conn, lines)

    def client(self, conn: int, extra: bytes = b"") -> None:
        self.open(conn, QUIET % extra)
        self.inbox.clear()

    def say(self, conn: int, lines: bytes) -> None:
        self.router.now_ns = self.now_ns
        if lines:
            self.sessions.feed(conn, lines, self.now_ns)
        self.emit()

    def heard(self, conn: int, *, info: bool = False) -> bytes:
        data = self.inbox.pop(conn, b"")
        return data if info else _INFO.sub(b"", data)

    def tick(self, step_ns: int) -> None:
        self.now_ns += step_ns
        self.router.now_ns = self.now_ns
        self.sessions.tick(self.now_ns)
        self.emit()

    def route(self, link: RouteLink, lines: bytes) -> None:
        parser = self._parsers.setdefault(
            link.conn, RouteParser(65536, 1 << 20, (link.account or "").encode())
        )
        self.router.route_ops(link, parser.feed(lines))
        self.emit()


def interest_count(account: Account, subject: bytes) -> int:
    """Subscriptions that match; remote queue members count by their weight."""
    plan = account.sublist.match(subject)
    groups = sum(
        len(group.local) + sum(weight for _, weight in group.remote) for group in plan.groups
    )
    return len(plan.clients) + len(plan.sinks) + len(plan.links) + len(plan.shadows) + groups
