"""Clients that come and go, as events of the system account.

Sessions are not told of events; this looks at what came and what closed since the last look, and
asks for an event only where somebody listens.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from jsctl.broker.accounts.accounts import Accounts
from jsctl.broker.options import SECOND_NS
from jsctl.broker.sessions.session import AUTH_FAILURE, ClientSession
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.system.schedule import EventSchedule
from jsctl.broker.system.tallies import Tallies

if TYPE_CHECKING:
    from jsctl.broker.system.service import SystemService

SLOW_NS = SECOND_NS
STALE = "Stale Connection"
REFUSALS = frozenset({AUTH_FAILURE, "Authentication Timeout"})
REFUSED_IN_ACCOUNT = "$SYS.ACCOUNT.CLIENT.AUTH.ERR"


class Outlet(Protocol):
    """Where events go."""

    def wanted(self, subject: str, account: str = "") -> bool:
        """Whether anybody listens; in the system account unless another is named."""

    def service(self) -> "SystemService":
        """Who words events and publishes them; made with the first one."""


@dataclass(slots=True)
class ClientEvents:
    """Tells of clients that logged in, left, or were refused."""

    sessions: Sessions
    accounts: Accounts
    tallies: Tallies
    outlet: Outlet
    server_id: str
    system: str
    """Of its own clients nothing is told."""
    schedule: EventSchedule = field(default_factory=lambda: EventSchedule.starting(0))
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
        if self.outlet.wanted(f"$SYS.ACCOUNT.{account}.CONNECT"):
            self.outlet.service().connected(session)

    def _left(self, session: ClientSession, now_ns: int) -> None:
        if session.closing == STALE:
            self.tallies.stale += 1
        account = session.account.name
        if account == self.system:
            return
        if session.connected:
            self.schedule.account_changed(account, now_ns)
        if session.closing in REFUSALS and not session.connected:
            self._refused(session)
        if self.outlet.wanted(f"$SYS.ACCOUNT.{account}.DISCONNECT"):
            self.outlet.service().disconnected(session)

    def _refused(self, session: ClientSession) -> None:
        if self.outlet.wanted(f"$SYS.SERVER.{self.server_id}.CLIENT.AUTH.ERR"):
            self.outlet.service().refused(session)
        if self.outlet.wanted(REFUSED_IN_ACCOUNT, session.account.name):
            self.outlet.service().refused_in_account(session)

    def account_events(self, now_ns: int) -> None:
        """Numbers of connections by account, where they changed and now and then."""
        for name in self.schedule.take_accounts(now_ns):
            account = self.accounts.get(name)
            if account is None or not account.connections:
                self.schedule.account_idle(name)
            if account is not None and (
                self.outlet.wanted(f"$SYS.ACCOUNT.{name}.SERVER.CONNS")
                or self.outlet.wanted(f"$SYS.SERVER.ACCOUNT.{name}.CONNS")
            ):
                self.outlet.service().account_connections(name)
