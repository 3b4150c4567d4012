"""Events of the system account. The node publishes what comes back.

Nothing is built here without being asked: the node asks when there is interest.
"""

from jsctl.api.codec import dumps, encode
from jsctl.api.events import AccountNumConns, ConnectEventMsg, DisconnectEventMsg, TypedEvent
from jsctl.api.monitoring.statsz import ServerStatsMsg
from jsctl.api.server import ClientInfo, DataStats
from jsctl.api.subjects import account_event, server_event
from jsctl.api.times import format_time
from jsctl.broker.system.monitoring.accounts import account_stat
from jsctl.broker.system.monitoring.general import statsz
from jsctl.broker.system.monitoring.view import AccountFacts, ConnFacts, ServerView
from jsctl.broker.system.monitoring.words import time_or_nothing
from jsctl.broker.system.requests import SysServices
from jsctl.dataclass import dataclass

PREFIX = "io.nats.server.advisory.v1."
GLOBAL_ACCOUNT = "$G"

Event = tuple[bytes, bytes]
"""(subject, payload), published in the system account."""


@dataclass(slots=True)
class SysEvents:
    """Builds events; ids and sequences are shared with the services."""

    services: SysServices

    def connected(self, view: ServerView, conn: ConnFacts) -> list[Event]:
        """A client logged in."""
        message = ConnectEventMsg(
            head=self._head("client_connect", view),
            server=self.services.server(view),
            client=_client(conn),
        )
        return [(account_event(conn.account, "CONNECT"), dumps(message))]

    def disconnected(self, view: ServerView, conn: ConnFacts) -> list[Event]:
        """A client that was logged in is gone."""
        return [(account_event(conn.account, "DISCONNECT"), self._disconnect(view, conn))]

    def refused(self, view: ServerView, conn: ConnFacts) -> list[Event]:
        """A client could not log in; `conn.reason` says why."""
        subject = server_event(view.settings.server_id, "CLIENT.AUTH.ERR")
        return [(subject, self._disconnect(view, conn))]

    def refused_in_account(self, view: ServerView, conn: ConnFacts) -> Event:
        """The same for the account that the client belongs to; published there."""
        return b"$SYS.ACCOUNT.CLIENT.AUTH.ERR", self._disconnect(view, conn)

    def account_connections(self, view: ServerView, account: AccountFacts) -> list[Event]:
        """Connections of an account: on change, and every 30 s while there are some."""
        if account.name == GLOBAL_ACCOUNT:
            return []
        payload = dumps(
            AccountNumConns(
                head=self._head("account_connections", view),
                server=self.services.server(view),
                stat=account_stat(account),
            )
        )
        old = f"$SYS.SERVER.ACCOUNT.{account.name}.CONNS".encode()
        return [(old, payload), (account_event(account.name, "SERVER.CONNS"), payload)]

    def stats(self, view: ServerView) -> list[Event]:
        """The statistics that all servers tell each other."""
        message = ServerStatsMsg(server=self.services.server(view), statsz=statsz(view))
        return [(server_event(view.settings.server_id, "STATSZ"), dumps(message))]

    def shutdown(self, view: ServerView) -> list[Event]:
        """The server stops now."""
        return self._leaving(view, "SHUTDOWN")

    def lame_duck(self, view: ServerView) -> list[Event]:
        """The server sends its clients away, then stops."""
        return self._leaving(view, "LAMEDUCK")

    def _leaving(self, view: ServerView, kind: str) -> list[Event]:
        subject = server_event(view.settings.server_id, kind)
        return [(subject, dumps(encode(self.services.server(view))))]

    def _disconnect(self, view: ServerView, conn: ConnFacts) -> bytes:
        # Sent and received are told from the client's side.
        return dumps(
            DisconnectEventMsg(
                head=self._head("client_disconnect", view),
                server=self.services.server(view),
                client=_client(conn),
                sent=DataStats(msgs=conn.in_msgs, bytes=conn.in_bytes),
                received=DataStats(msgs=conn.out_msgs, bytes=conn.out_bytes),
                reason=conn.reason,
            )
        )

    def _head(self, kind: str, view: ServerView) -> TypedEvent:
        return TypedEvent(
            type=PREFIX + kind, id=self.services.new_id(), timestamp=format_time(view.now_ns)
        )


def _client(conn: ConnFacts) -> ClientInfo:
    return ClientInfo(
        start=format_time(conn.start_ns),
        host=conn.host,
        id=conn.cid,
        acc=conn.account,
        user=conn.user,
        name=conn.name,
        lang=conn.lang,
        ver=conn.version,
        rtt=conn.rtt_ns if conn.stop_ns else 0,
        stop=time_or_nothing(conn.stop_ns),
        jwt=conn.jwt,
        issuer_key=conn.issuer_key,
        name_tag=conn.account_tag or conn.account,
        tags=conn.tags,
        kind=conn.kind,
        client_type=conn.type,
    )
