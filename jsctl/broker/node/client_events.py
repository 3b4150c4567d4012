"""Clients that come and go, as events of the system account.

Sessions are not told of events; this looks at what came and what closed since the last look.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from jsctl.broker.handlers.monitoring.view import ConnFacts
from jsctl.broker.handlers.sys_events import Event, EventSchedule, SysEvents
from jsctl.broker.node.monitor_connections import conn_facts
from jsctl.broker.node.monitor_view import STALE, MonitorView
from jsctl.broker.options import SECOND_NS
from jsctl.broker.routing.session import AUTH_FAILURE, ClientSession
from jsctl.broker.routing.sessions import Sessions

Publish = Callable[[list[Event]], None]
SLOW_NS = SECOND_NS
REFUSALS = frozenset({AUTH_FAILURE, "Authentication Timeout"})


@dataclass(slots=True)
class ClientEvents:
    """Tells of clients that logged in, left, or were refused."""

    view: MonitorView
    sessions: Sessions
    events: SysEvents
    schedule: EventSchedule
    system: str
    """Of its own clients nothing is told."""
    tell: Publish
    """Publishes events in the system account."""
    tell_account: Callable[[str, Event], None]
    """Publishes an event in another account."""
    wanted: Callable[[str], bool]
    """Whether anybody listens to a subject of the system account."""
    _new: list[ClientSession] = field(default_factory=list)
    _slow: list[ClientSession] = field(default_factory=list)
    """Those that take their time to say who they are; looked at now and then."""
    _slow_due_ns: int = 0
    _closed: int = 0

    def accepted(self, session: ClientSession) -> None:
        """A client connected; it has yet to say who it is."""
        self._new.append(session)

    def look(self, now_ns: int) -> None:
        """Tell what happened since the last look."""
        if self._new:
            self._look_at_new(now_ns)
        if self._slow and now_ns >= self._slow_due_ns:
            self._slow_due_ns = now_ns + SLOW_NS
            self._new, self._slow = self._new + self._slow, []
            self._look_at_new(now_ns)
        closed = self.sessions.total - len(self.sessions)
        if closed > self._closed:
            count, self._closed = closed - self._closed, closed
            kept = self.sessions.closed
            for index in range(max(len(kept) - count, 0), len(kept)):
                self._left(kept[index], now_ns)

    def _look_at_new(self, now_ns: int) -> None:
        waiting: list[ClientSession] = []
        for session in self._new:
            if session.connected:
                self._came(session, now_ns)
            elif not session.closing:
                young = now_ns - session.started_ns < SLOW_NS
                (waiting if young else self._slow).append(session)
        self._new = waiting

    def _came(self, session: ClientSession, now_ns: int) -> None:
        account = session.account.name
        if account == self.system:
            return
        self.schedule.account_changed(account, now_ns)
        if self.wanted(f"$SYS.ACCOUNT.{account}.CONNECT"):
            self.tell(self.events.connected(self.view.look(now_ns), conn_facts(session)))

    def _left(self, session: ClientSession, now_ns: int) -> None:
        if session.closing == STALE:
            self.view.stale += 1
        account = session.account.name
        if account == self.system:
            return
        if session.connected:
            self.schedule.account_changed(account, now_ns)
        conn = conn_facts(session, closed=True)
        if session.closing in REFUSALS and not session.connected:
            self._refused(conn, now_ns)
        if self.wanted(f"$SYS.ACCOUNT.{account}.DISCONNECT"):
            self.tell(self.events.disconnected(self.view.look(now_ns), conn))

    def _refused(self, conn: ConnFacts, now_ns: int) -> None:
        view = self.view.look(now_ns)
        if self.wanted(f"$SYS.SERVER.{view.settings.server_id}.CLIENT.AUTH.ERR"):
            self.tell(self.events.refused(view, conn))
        self.tell_account(conn.account, self.events.refused_in_account(view, conn))

    def account_events(self, now_ns: int) -> None:
        """Numbers of connections by account, where they changed and now and then."""
        for name in self.schedule.take_accounts(now_ns):
            account = self.view.look(now_ns).account(name)
            if account is None or not account.clients:
                self.schedule.account_idle(name)
            if account is not None and (
                self.wanted(f"$SYS.ACCOUNT.{name}.SERVER.CONNS")
                or self.wanted(f"$SYS.SERVER.ACCOUNT.{name}.CONNS")
            ):
                self.tell(self.events.account_connections(self.view, account))
