"""Bytes of a route connection, shared out between the mesh and routing.

Lines on a dedicated account's link leave the account's name out, and the peer says in its INFO
which account that is; its interest may follow in the same chunk. So during the handshake the
parser gets one line at a time, and learns the account before the next one.
"""

from jsctl.broker.cluster.mesh import Mesh
from jsctl.broker.protocol.ops import (
    Bad,
    Connect,
    Info,
    Interest,
    NoInterest,
    Ok,
    PeerError,
    Ping,
    Pong,
    Routed,
    RouteOp,
)
from jsctl.broker.protocol.route import Parser

_FOR_ROUTING = frozenset({Routed, Interest, NoInterest})


class RouteIntake:
    """The input side of one route connection."""

    __slots__ = ("_conn", "_mesh", "_open", "_parser")

    def __init__(self, mesh: Mesh, conn: int, parser: Parser) -> None:
        self._mesh = mesh
        self._conn = conn
        self._parser = parser
        self._open = False

    def feed(self, chunk: bytes, now_ns: int) -> list[RouteOp]:
        """What a chunk has for routing; the mesh has taken the rest."""
        start = 0
        while not self._open and start < len(chunk):
            end = chunk.find(b"\n", start) + 1 or len(chunk)
            for op in self._parser.feed(chunk[start:end]):
                self._control(op, now_ns)
            start = end
            if self._mesh.registered(self._conn):
                self._open = True
                self._parser.account = self._mesh.account_of(self._conn).encode()
        if start:
            chunk = chunk[start:]
        if not chunk:
            return []
        ops = self._parser.feed(chunk)
        for_routing = [op for op in ops if type(op) in _FOR_ROUTING]
        if len(for_routing) < len(ops):
            for op in ops:
                if type(op) not in _FOR_ROUTING:
                    self._control(op, now_ns)
        return for_routing

    def _control(self, op: RouteOp, now_ns: int) -> None:
        mesh, conn = self._mesh, self._conn
        match op:
            case Ping():
                mesh.ping(conn)
            case Pong():
                mesh.pong(conn, now_ns)
            case Info(body):
                mesh.info(conn, body, now_ns)
            case Connect(body):
                mesh.connect(conn, body, now_ns)
            case PeerError(text):
                mesh.error(conn, text.decode("utf-8", "replace"))
            case Bad(reason, text):
                mesh.bad(conn, text.decode(), reason, now_ns)
            case Ok():
                pass
            case _:
                # Routed traffic before the handshake is done.
                mesh.bad(conn, "Authorization Violation", "Protocol Violation", now_ns)
