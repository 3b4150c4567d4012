"""A router with a publisher, whose input is carried out in several ways that have to agree."""

from jsctl.broker.accel.choice import Twin, compiled, interpreted
from jsctl.broker.accounts.accounts import Accounts
from jsctl.broker.interest.targets import RouteLink, Sink
from jsctl.broker.login_options.permissions import PermissionRules, SubjectPermission
from jsctl.broker.options import AuthOptions, Options, UserOptions
from jsctl.broker.protocol.client import ClientParser
from jsctl.broker.protocol.route import RouteParser
from jsctl.broker.routing.limits import RoutingLimits, ServerIdentity
from jsctl.broker.routing.router import Router
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.turn import Accepted, ConnKind, TurnOutputs

LIMITS = RoutingLimits(payload_bytes_max=4096, control_line_bytes_max=2048)
USER = UserOptions(
    name="u",
    password="p",
    permissions=PermissionRules(publish=SubjectPermission(deny=("deny.>", "s.x.no"))),
)
FREE = UserOptions(name="free", password="p")
OPTIONS = Options(auth=AuthOptions(users=(USER, FREE)))


class Side:
    """A router with a publisher, a subscriber, a sink and a route."""

    def __init__(self, connect: bytes, twin: Twin | None = None) -> None:
        self.turns = 0
        accounts = Accounts(OPTIONS)
        self.router = Router(accounts, LIMITS, self.draw)
        self.sessions = Sessions(
            self.router, ServerIdentity("N", "n"), LIMITS, twin=twin or interpreted()
        )
        self.sink = Sink()
        self.link = link = RouteLink(9, "peer")
        self.router.add_route(link)
        account = accounts.default
        self.router.subscribe(account, b"s.>", self.sink)
        ops = b"RS+ $G r.* \r\nRS+ $G q.a grp 2\r\n"
        self.router.route_ops(link, RouteParser(65536, 1 << 20).feed(ops))
        for conn in (1, 2):
            self.sessions.accept(Accepted(conn, ConnKind.CLIENT, "h", 1), 0)
        who = b'"user":"u","pass":"p","verbose":false,"pedantic":false,"headers":true'
        lines = b"SUB c.* 1\r\nSUB q.a grp 2\r\nSUB c.b 3\r\nUNSUB 3 5\r\nSUB s.b 4\r\n"
        lines += b"SUB d.* 11\r\nSUB d.> 12\r\n"
        lines += b"SUB q.l grp 13\r\nSUB q.l grp 14\r\nSUB q.* other 15\r\nSUB q.l 16\r\n"
        self.sessions.feed(2, b"CONNECT {%s}\r\n" % who + lines, 0)
        self.sessions.feed(1, b"CONNECT {%s}\r\nSUB _I.> 7\r\n" % (who + connect), 0)
        self.sent: dict[int, bytes] = {}
        self.closes: list[tuple[int, str]] = []
        self.emit()

    def draw(self, below: int) -> int:
        self.turns += 1
        return self.turns % below

    def emit(self) -> None:
        outputs = TurnOutputs()
        self.sessions.emit(outputs)
        for conn, data in outputs.writes:
            self.sent[conn] = self.sent.get(conn, b"") + data
        self.closes += outputs.closes

    def outcome(self, own: ClientSession) -> dict[str, object]:
        """All that can be seen of a session's input, by its name."""
        found: dict[str, object] = {
            "captured": [row[:4] for row in self.sink.messages],
            "in": (own.in_messages, own.in_bytes),
            "out": (own.out_messages, own.payload_bytes_out, own.out_bytes),
            "lot": self.router.delivery.lot,
        }
        for session in self.listeners():
            counts = {sub.sid: sub.delivered for sub in session.subscriptions.values()}
            found[f"client {session.conn}"] = (
                session.out_messages,
                session.payload_bytes_out,
                counts,
            )
        account = own.account
        found["account"] = (
            account.in_messages,
            account.in_bytes,
            account.out_messages,
            account.out_bytes,
        )
        found["route"] = (self.link.out_messages, self.link.payload_bytes_out)
        self.emit()
        return found | {"sent": self.sent, "closes": self.closes}

    def publisher(self) -> ClientSession:
        """Whose input it is."""
        found = self.sessions.get(1)
        assert found is not None
        return found

    def listeners(self) -> list[ClientSession]:
        return [one for one in self.sessions if not one.closing]


def disagreements(pieces: list[bytes], connect: bytes = b"") -> list[str]:
    """What is not the same after a publisher's input, step by step and with each loop."""
    simple = Side(connect)
    parser = ClientParser(LIMITS.control_line_bytes_max, LIMITS.payload_bytes_max)
    session = simple.publisher()
    lanes = [Side(connect, twin) for twin in (interpreted(), compiled()) if twin is not None]
    owners = [lane.publisher() for lane in lanes]
    for piece in pieces:
        for lane in lanes:
            lane.sessions.feed(1, piece, 1)
        for op in parser.feed(piece):
            if not session.closing:
                session.take(op)
    expected = simple.outcome(session)
    found = []
    for lane, own in zip(lanes, owners, strict=True):
        name, outcome = lane.sessions.twin.name, lane.outcome(own)
        found += [
            f"{name}: {key}: {outcome[key]!r} is not {value!r}"
            for key, value in expected.items()
            if outcome[key] != value
        ]
    return found
