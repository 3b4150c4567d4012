"""Clients that come and go, as events of the system account.

Sessions are not told of events; this looks at what came and what closed since the last look, and
notes an event only where somebody listens.
"""

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

from jsctl.broker.options import SECOND_NS
from jsctl.broker.sessions.refusals import AUTH_FAILURE
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.system.outlet import EventOutlet
from jsctl.broker.system.schedule import EventSchedule
from jsctl.broker.system.tallies import Tallies
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.broker.leafnodes.types import LeafEvent

SLOW_NS = SECOND_NS
STALE = "Stale Connection"
REFUSALS = frozenset({AUTH_FAILURE, "Authentication Timeout"})
REFUSED_IN_ACCOUNT = "$SYS.ACCOUNT.CLIENT.AUTH.ERR"


class ClientEventKind(Enum):
    """What became of a client."""

    CONNECTED = "logged in"
    DISCONNECTED = "is gone"
    REFUSED = "could not log in"
    REFUSED_IN_ACCOUNT = "the same, told to the account that the client belongs to"


@dataclass(frozen=True, slots=True)
class ClientEvent:
    """Somebody listens for this."""

    kind: ClientEventKind
    session: ClientSession


@dataclass(slots=True)
class ClientEvents:
    """Notes clients that logged in, left, or were refused."""

    sessions: Sessions
    tallies: Tallies
    outlet: EventOutlet
    schedule: EventSchedule
    _new: list[ClientSession] = field(default_factory=list)
    _slow: list[ClientSession] = field(default_factory=list)
    """Those that take their time to say who they are; looked at now and then."""
    _slow_due_ns: int = 0
    _closed: int = 0
    _events: list[ClientEvent] = field(default_factory=list)

    def accepted(self, session: ClientSession) -> None:
        """A client connected; it has yet to say who it is."""
        self._new.append(session)

    @property
    def expecting(self) -> bool:
        """Whether somebody new has yet to say who it is; not those that take long."""
        return bool(self._new)

    def look(self, now_ns: int) -> list[ClientEvent]:
        """What happened since the last look, and is to be told."""
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
        events, self._events = self._events, []
        return events

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
        self.schedule.account_changed(account, now_ns)
        if self.outlet.wanted(f"$SYS.ACCOUNT.{account}.CONNECT"):
            self._note(ClientEventKind.CONNECTED, session)

    def _left(self, session: ClientSession, now_ns: int) -> None:
        if session.closing == STALE:
            self.tallies.stale += 1
        account = session.account.name
        if session.connected:
            self.schedule.account_changed(account, now_ns)
        if session.closing in REFUSALS and not session.connected:
            self._refused(session)
        if self.outlet.wanted(f"$SYS.ACCOUNT.{account}.DISCONNECT"):
            self._note(ClientEventKind.DISCONNECTED, session)

    def _refused(self, session: ClientSession) -> None:
        if self.outlet.wanted(f"$SYS.SERVER.{self.outlet.server_id}.CLIENT.AUTH.ERR"):
            self._note(ClientEventKind.REFUSED, session)
        if self.outlet.wanted(REFUSED_IN_ACCOUNT, session.account.name):
            self._note(ClientEventKind.REFUSED_IN_ACCOUNT, session)

    def _note(self, kind: ClientEventKind, session: ClientSession) -> None:
        self._events.append(ClientEvent(kind, session))

    def leaf(self, event: "LeafEvent", now_ns: int) -> bool:
        """Whether somebody listens to a leaf node, or a hub, that came or went."""
        account = event.facts.account
        self.schedule.account_changed(account, now_ns)
        kind = "CONNECT" if event.connected else "DISCONNECT"
        return self.outlet.wanted(f"$SYS.ACCOUNT.{account}.{kind}")

    def accounts_to_tell(self, now_ns: int) -> list[str]:
        """Accounts whose number of connections is to be told: where it changed, and now and
        then."""
        found: list[str] = []
        for name in self.schedule.take_accounts(now_ns):
            account = self.outlet.router.accounts.get(name)
            if account is None or not account.connections + account.leafs:
                self.schedule.account_idle(name)
            if account is not None and (
                self.outlet.wanted(f"$SYS.ACCOUNT.{name}.SERVER.CONNS")
                or self.outlet.wanted(f"$SYS.SERVER.ACCOUNT.{name}.CONNS")
            ):
                found.append(name)
        return found
