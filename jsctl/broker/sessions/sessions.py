"""All client connections: the door between the turn's words and the sessions.

The node gives what the edge reported (`accept`, `feed`, `gone`, `pending`, `verified`) and, once
everything of a turn is done, has `emit` put what comes of it into the turn's outputs.
"""

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence

from jsctl.broker.accel.choice import Twin
from jsctl.broker.deadlines import NEVER_NS, Deadlines
from jsctl.broker.interest.outbound import Outbound
from jsctl.broker.interest.targets import Namespace
from jsctl.broker.routing.limits import RoutingLimits, ServerIdentity
from jsctl.broker.routing.router import SLOW_CONSUMER, Router
from jsctl.broker.sessions import review
from jsctl.broker.sessions.effort import Effort
from jsctl.broker.sessions.lane import Lane
from jsctl.broker.sessions.refusal_log import RefusalLog
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.sessions.session_context import SessionContext
from jsctl.broker.sessions.unfinished import TOO_MUCH, Unfinished
from jsctl.broker.turn import (
    WRITE_DEADLINE,
    Accepted,
    LogLevel,
    LogLine,
    PeerCertificate,
    TurnOutputs,
)

CLOSED_SESSIONS_MAX = 10000
"""Closed sessions remembered for monitoring; older ones are forgotten."""

NOBODY = -1
"""In place of a connection that a client waits for: it is not read any more."""
CHECK = -2
"""The same: its password is being checked, and what it sends meanwhile need not be kept."""
REST = -3
"""The same: what came before is not carried out yet."""


class Sessions:
    """The client connections of a server, by the edge's number of the connection."""

    def __init__(
        self,
        router: Router,
        identity: ServerIdentity,
        limits: RoutingLimits,
        closed_max: int = CLOSED_SESSIONS_MAX,
        twin: Twin | None = None,
    ) -> None:
        self._effort = Effort(limits.turn_units_max, limits.share_units_min)
        self._context = SessionContext(router, limits, identity, self._effort)
        self._lane = Lane(limits, twin)
        self._sessions: dict[int, ClientSession] = {}
        self._next_id = 5
        self._stalled: dict[int, set[int | str]] = {}
        self._congested: dict[int, Outbound] = {}
        self._unfinished = Unfinished(limits.unfinished_bytes_max)
        self._due: Deadlines[int] = Deadlines()
        self._due_ns = NEVER_NS
        """When the first of them is due, at the earliest."""
        self._pauses: dict[int, None] = {}
        self._resumes: dict[int, None] = {}
        """What the edge is to be told; it is told one thing of a connection in a turn."""
        self.closed: deque[ClientSession] = deque(maxlen=closed_max)
        self.slow_links: list[Outbound] = []
        """Links that did not keep up: whoever has them is to close them."""
        self.total = 0
        self._leaving: dict[ClientSession, str] = {}
        self._logs: list[LogLine] = []
        self._refusals = RefusalLog()

    @property
    def twin(self) -> Twin:
        """Which of its loops the lane uses."""
        return self._lane.twin

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[ClientSession]:
        return iter(self._sessions.values())

    def get(self, conn: int) -> ClientSession | None:
        """The open session of a connection."""
        return self._sessions.get(conn)

    def new_id(self) -> int:
        """The number of another connection: clients and leaf nodes count together."""
        number, self._next_id = self._next_id, self._next_id + 1
        return number

    def accept(self, accepted: Accepted, now_ns: int) -> ClientSession:
        """A client connected: it is greeted, or turned away when there are too many."""
        session = ClientSession(self._context, accepted, self.new_id(), now_ns)
        self.total += 1
        full = len(self._sessions) >= self._context.limits.connections_max
        self._sessions[accepted.conn] = session
        session.start(now_ns)
        self._note(session)
        if full:
            reason = "Maximum Connections Exceeded"
            session.close(reason, b"maximum connections exceeded")
        return session

    def change_limits(self, limits: RoutingLimits) -> None:
        """Limits and times count from now on, also for clients that are here already."""
        self._context.limits = limits
        self._lane.change_limits(limits)
        self._unfinished.bytes_max = limits.unfinished_bytes_max
        for session in self._sessions.values():
            review.renew(session)
            session.alive.change_limits(limits, self._context.router.now_ns)
            self._note(session)

    def review(self, accounts: Container[Namespace] | None = None) -> None:
        """Accounts or users have changed: see who may still be here, and as what. `accounts` are
        those that changed where nothing else did, by their JWTs."""
        self._logs += review.review(self._sessions.values(), accounts)

    def shed(self) -> None:
        """The maximum of connections was lowered: close those beyond it."""
        maximum = self._context.limits.connections_max
        count = review.shed(list(self._sessions.values()), maximum)
        if count:
            text = f"Closed {count} connections to fall within max_connections"
            self._logs.append(LogLine(LogLevel.INFO, text))

    def begin(self, chunks: int) -> list[int]:
        """A turn begins, with so many chunks of input: whose input of before goes on."""
        lane = self._lane
        resting = [session.conn for session in lane.resting] if lane.resting else []
        self._effort.begin(chunks + len(resting))
        return resting

    def go_on(self, conn: int) -> None:
        """Carry out more of what a client sent before."""
        session = self._sessions.get(conn)
        if session is None or session not in self._lane.resting:
            return
        if session.closing:
            del self._lane.resting[session]
        else:
            self._lane.resume(session)
            self._unfinished.note(session)
        if session in self._lane.resting:
            return
        self._unpause(conn, REST)
        reason = self._leaving.pop(session, None)
        if reason is not None:
            self.gone(conn, reason)

    def feed(self, conn: int, chunk: bytes, now_ns: int) -> None:
        """Bytes came from a client."""
        session = self._sessions.get(conn)
        if session is not None and not session.closing:
            self._lane.feed(session, chunk, now_ns)
            if session.intake.size != session.held and self._unfinished.note(session):
                self._relieve()
            if session.alive.deadline_ns != session.alive.noted_ns:
                self._note(session)

    def feed_each(
        self, chunks: Sequence[tuple[int, bytes]], first: int, now_ns: int
    ) -> tuple[int, int]:
        """See `Lane.feed_each`; who publishes to a congested target is noted one by one."""
        if self._congested:
            return first, len(chunks)
        return self._lane.feed_each(self._sessions, chunks, first, now_ns)

    def secured(self, shown: Sequence[tuple[int, PeerCertificate]]) -> None:
        """Clients have shown who they are."""
        for conn, certificate in shown:
            session = self._sessions.get(conn)
            if session is not None:
                session.remote.certificate = certificate

    def verified(self, conn: int, ok: bool) -> None:
        """The answer to a `Verify`, whose token is the connection's number."""
        session = self._sessions.get(conn)
        if session is not None and session.check is not None:
            if session.waiting:
                session.verified(ok)
            else:
                self._logs += review.verified(session, ok)
            if not session.closing:
                self._lane.resume(session)
                self._unfinished.note(session)
                self._unpause(session.conn, CHECK)
            self._note(session)

    def gone(self, conn: int, reason: str) -> None:
        """The edge lost a connection, or has closed it as told."""
        session = self._sessions.get(conn)
        if session is None:
            return
        if session in self._lane.resting and not session.closing:
            self._leaving[session] = reason
            return
        if reason == WRITE_DEADLINE:
            session.account.slow_consumers += 1
        session.close(reason or "Client Closed")
        session.out.clear()
        self._forget(session)

    def kick(self, conn: int, reason: str, text: bytes = b"") -> None:
        """Close a client for a reason of the server's."""
        session = self._sessions.get(conn)
        if session is not None:
            session.close(reason, text)

    def _relieve(self) -> None:
        for session in self._unfinished.excess(self._sessions.values()):
            session.close(TOO_MUCH, TOO_MUCH.encode())
            self._unfinished.forget(session)

    def _forget(self, session: ClientSession) -> None:
        if self._sessions.pop(session.conn, None) is not None:
            self._due.cancel(session.conn)
            self._unfinished.forget(session)
            self._lane.resting.pop(session, None)
            self._leaving.pop(session, None)
            self._stalled.pop(session.conn, None)
            self.closed.append(session)
            self._release(session)

    def tick(self, now_ns: int) -> None:
        """Pings, stale connections, authentication that took too long."""
        if now_ns < self._due_ns:
            return
        self._due_ns = NEVER_NS
        for conn in self._due.due(now_ns):
            session = self._sessions[conn]
            session.tick(now_ns)
            if not session.closing:
                self._note(session)
        self._due_ns = min(self._due_ns, self._due.next() or NEVER_NS)

    def _note(self, session: ClientSession) -> None:
        """It has another deadline. One that is closing has none."""
        alive = session.alive
        alive.noted_ns = alive.deadline_ns
        if session.closing:
            self._due.cancel(session.conn)
        else:
            self._due.set(session.conn, alive.deadline_ns)
            self._due_ns = min(self._due_ns, alive.deadline_ns)

    @property
    def unfinished(self) -> bool:
        """Whether input waits that the turn had no room for."""
        return bool(self._lane.resting)

    def deadline_ns(self) -> int | None:
        """When `tick` may have something to do next."""
        if self._lane.resting:
            return self._context.router.now_ns
        due_ns = min(self._due_ns if self._sessions else NEVER_NS, self._refusals.due_ns)
        return None if due_ns == NEVER_NS else due_ns

    def send_info(self) -> None:
        """INFO changed (cluster members, lame duck): tell the clients that can take it."""
        for session in self._sessions.values():
            session.send_info()

    # -- slow consumers ------------------------------------------------------------------

    def pending(self, target: Outbound, unsent_bytes: int) -> None:
        """What the edge still has to send to a client or route crossed a watermark."""
        limits = self._context.limits
        target.kernel_pending = unsent_bytes
        if target.kind.expendable and unsent_bytes > limits.pending_bytes_max:
            target.out.clear()
            self._slow(target)
        elif unsent_bytes > limits.pending_bytes_high:
            target.congested = True
            self._congested[target.conn] = target
        elif target.congested and unsent_bytes <= limits.pending_bytes_high // 2:
            self._release(target)

    def client_pending(self, conn: int, unsent_bytes: int) -> None:
        """`pending` for a client, by its connection."""
        session = self._sessions.get(conn)
        if session is not None:
            self.pending(session, unsent_bytes)

    def _slow(self, target: Outbound) -> None:
        session = self._sessions.get(target.conn)
        if session is target:
            session.account.slow_consumers += 1
            session.close(SLOW_CONSUMER)
        elif session is None:
            self.slow_links.append(target)

    def _release(self, target: Outbound) -> None:
        """A target takes data again, or is gone: its producers may be read again."""
        target.congested = False
        self._congested.pop(target.conn, None)
        target.producers.clear()
        for conn in [conn for conn, why in self._stalled.items() if target.conn in why]:
            self._unpause(conn, target.conn)

    def _stall(self) -> None:
        """Pause the clients that published to a congested target in this turn."""
        for target in self._congested.values():
            for conn in target.producers:
                self._pause(conn, target.conn)
            target.producers.clear()

    def hush(self) -> None:
        """Read no client any more, as the server goes; what they wait for is still sent."""
        for conn in self._sessions:
            self._pause(conn, NOBODY)

    def hold(self, why: str, origins: Iterable[object]) -> None:
        """Read those of these that are clients no more until this reason is gone."""
        for origin in origins:
            if isinstance(origin, ClientSession) and self._sessions.get(origin.conn) is origin:
                self._pause(origin.conn, why)

    def relieve(self, why: str) -> None:
        """It is gone."""
        for conn in [conn for conn, reasons in self._stalled.items() if why in reasons]:
            self._unpause(conn, why)

    def _pause(self, conn: int, why: int | str) -> None:
        if conn not in self._stalled:
            self._stalled[conn] = set()
            if conn in self._resumes:
                del self._resumes[conn]  # The edge does not read it yet.
            else:
                self._pauses[conn] = None
        self._stalled[conn].add(why)

    def _unpause(self, conn: int, why: int | str) -> None:
        reasons = self._stalled.get(conn)
        if reasons is None:
            return
        reasons.discard(why)
        if not reasons:
            del self._stalled[conn]
            if conn in self._pauses:
                del self._pauses[conn]  # The edge has not been told yet.
            elif conn in self._sessions:
                self._resumes[conn] = None

    def release_route(self, target: Outbound) -> None:
        """A route is gone: whoever waited for it need not wait any longer."""
        self._release(target)

    # -- the end of a turn ---------------------------------------------------------------

    def emit(self, outputs: TurnOutputs) -> None:
        """Put writes, closes, pauses and password checks of this turn into the outputs."""
        context = self._context
        outputs.writes += context.router.flush()
        if context.router.slow:
            self._end_slow(outputs)
        if context.closes:
            self._let_go(outputs)
        if self._congested:
            self._stall()
        outputs.relieved = self._unfinished.take_relief()
        if context.verifies:
            self._have_checked(outputs)
        for session in self._lane.resting:
            self._pause(session.conn, REST)
        if context.refusals:
            self._tell_refusals()
        self._refusals.tick(context.router.now_ns)
        if self._logs or self._refusals.waits:
            outputs.logs += self._logs + self._refusals.take()
            self._logs = []
        if self._pauses or self._resumes:
            outputs.pauses += self._pauses
            outputs.resumes += self._resumes
            self._pauses, self._resumes = {}, {}

    def _let_go(self, outputs: TurnOutputs) -> None:
        closes = self._context.closes
        for ended, reason in closes:
            session = self._sessions.get(ended.conn)
            if session is ended:
                self._refusals.closed(session, reason)
                outputs.closes.append((session.conn, reason))
                self._forget(session)
        closes.clear()

    def _tell_refusals(self) -> None:
        context = self._context
        for client, refusal in context.refused:
            assert isinstance(client, ClientSession), "clients of other kinds have no session"
            self._refusals.refused(client, refusal)
        self._refusals.passed_over(context.refusals - len(context.refused))
        context.refused.clear()
        context.refusals = 0

    def _end_slow(self, outputs: TurnOutputs) -> None:
        router = self._context.router
        for target, _ in router.slow:
            self._slow(target)
        router.slow.clear()
        outputs.writes += router.flush()

    def _have_checked(self, outputs: TurnOutputs) -> None:
        verifies = self._context.verifies
        for wanted in verifies:
            if wanted.token in self._sessions:
                self._pause(wanted.token, CHECK)
                outputs.verifies.append(wanted)
        verifies.clear()
