"""The last line behind the border: a bug met by one connection's operation costs that connection.

What is run here only reads what the server decides and promises by, or changes what belongs to the
connection alone: parsing, sessions, routing, the handlers of requests and pages. A bug there closes
the connection, is reported with its traceback and counted, and the turn goes on. What changes the
state of raft groups, of stores and of the log is never run here: a bug there ends the turn, and
with it the server, before anything of the turn is acknowledged. So do errors that have a name
(`BrokerError`: a disk that fails, damage): they are no bugs of an operation.
"""

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import ParamSpec

from jsctl.broker.errors import BrokerError
from jsctl.broker.interest.targets import ClientPeer
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.turn import Fault
from jsctl.dataclass import dataclass

P = ParamSpec("P")
REASON = "Internal Error"
TEXT = b"Internal Server Error"


@dataclass(slots=True)
class LastLine:
    """Runs operations, and keeps what went wrong until the turn ends."""

    sessions: Sessions
    close_links: tuple[Callable[[int], None], ...] = ()
    """Each ends a connection to another server, if it is of its kind."""
    count: int = 0
    """Bugs met since the start."""
    _faults: list[Fault] = field(default_factory=list)

    def run(self, conn: int, work: Callable[P, None], *args: P.args, **more: P.kwargs) -> bool:
        """Do what a connection (0: nobody's) asks for; False if that met a bug."""
        try:
            work(*args, **more)
        except BrokerError:
            raise
        except Exception as error:  # noqa: BLE001 (the last line: a bug ends one connection)
            self.met(f"connection {conn}" if conn else "an operation", error)
            self._close(conn)
            return False
        return True

    def feed(
        self,
        chunks: Sequence[tuple[int, bytes]],
        taker: Callable[[int], Callable[[int, bytes, int], None]] | None,
        now_ns: int,
    ) -> None:
        """Do the same with the input of many connections, without a call for each of them.
        `taker` gives who takes that of a connection; None: it is all of clients."""
        count, at = len(chunks), 0
        while at < count:
            begin, end = (
                self.sessions.feed_each(chunks, at, now_ns) if count - at > 1 else (at, count)
            )
            self._feed(chunks[begin:end], taker, now_ns)
            at = end

    def _feed(
        self,
        chunks: Sequence[tuple[int, bytes]],
        taker: Callable[[int], Callable[[int, bytes, int], None]] | None,
        now_ns: int,
    ) -> None:
        feed: Callable[[int, bytes, int], None] = self.sessions.feed
        for conn, chunk in chunks:
            try:
                if taker is not None:
                    feed = taker(conn)
                feed(conn, chunk, now_ns)
            except BrokerError:
                raise
            except Exception as error:  # noqa: BLE001 (the same)
                self.met(f"connection {conn}", error)
                self._close(conn)

    def met(self, place: str, error: Exception) -> None:
        """A bug in an operation that `place` names for the operator."""
        self.count += 1
        self._faults.append(Fault(place, error))

    def _close(self, conn: int) -> None:
        if self.sessions.get(conn) is not None:
            self.sessions.kick(conn, REASON, TEXT)
        else:
            for close in self.close_links:
                close(conn)

    def close_client(self, client_id: int) -> None:
        """A client of this server asked for what met a bug."""
        session = next((one for one in self.sessions if one.client_id == client_id), None)
        if session is not None:
            self.sessions.kick(session.conn, REASON, TEXT)

    def take(self) -> list[Fault]:
        """What is to be reported."""
        faults, self._faults = self._faults, []
        return faults


def client_of(origin: object) -> int:
    """The connection that a captured message came from; 0 unless it is a client's. A route is
    not closed for a request that it carried."""
    return origin.conn if isinstance(origin, ClientPeer) else 0
