"""The lane: a client's bytes in, routed messages out, with as little work per message as can be.

Theory of operation. Sessions that are `fast` (no +OK, no checks that depend on time or chance) give
their input to the loop of `accel`, compiled or not, which takes canonical publishes with a plain
fan (`routing.fans`) from it and stops in front of everything else. That is carried out here, one
operation at a time: control operations, odd syntax, denials, whatever is not plain. Then the loop
goes on. The result is the same as that of `Parser` and `ClientSession.handle` on the same bytes.
"""

from collections.abc import Mapping, Sequence
from itertools import islice

from jsctl.broker.accel.choice import Twin, chosen
from jsctl.broker.accel.contract import Chunk
from jsctl.broker.accounts.accounts import Account
from jsctl.broker.interest.kinds import CLIENT
from jsctl.broker.interest.outbound import TARGETS_SHIFT, Outbound
from jsctl.broker.login_options.permissions import PermissionRules
from jsctl.broker.protocol.client import Head, control, publish, unfinished
from jsctl.broker.protocol.ops import UNKNOWN, Bad
from jsctl.broker.routing.fans import Fans
from jsctl.broker.routing.limits import RoutingLimits
from jsctl.broker.routing.trace import DEST
from jsctl.broker.sessions.refusals import AUTH_FAILURE, AUTH_VIOLATION
from jsctl.broker.sessions.session import (
    CACHED_BYTES_MAX,
    DENIED,
    RESERVED_REPLIES,
    WITH_REPLY,
    ClientSession,
)

CONNECT_STARTS = b"Cc"
HEADS_CACHED_MAX = 4096
EACH_MAX = 256
"""Publishers whose messages are taken together."""
WORDS = (b"PUB ", b"HPUB ")
"""What canonical publishes begin with."""


class Lane:
    """The publish path of all client connections."""

    def __init__(self, limits: RoutingLimits, twin: Twin | None = None) -> None:
        self.twin = twin or chosen()
        """Which loop runs."""
        self.change_limits(limits)
        self.resting: dict[ClientSession, None] = {}
        """Who has input left that the next turns carry out."""
        self._data = b""
        self._clue: bool | None = None
        """Whether a trace header may be somewhere in the input at hand; None: not looked yet.

        One look at all of it costs a twentieth of one at each message, and input without headers
        is never looked at.
        """

    def change_limits(self, limits: RoutingLimits) -> None:
        """What counts from the next line on; sessions forget the lines that they know, and their
        fans."""
        self._fans: dict[tuple[Account, PermissionRules | None], Fans] = {}
        self._line_max = limits.control_line_bytes_max
        self._payload_max = limits.payload_bytes_max
        self._waiting_max = limits.waiting_bytes_max

    def feed(self, session: ClientSession, chunk: bytes, now_ns: int) -> None:
        """Take a chunk of a connection's input, and carry out what this turn can."""
        session.last_in_ns = now_ns
        if self.resting and session in self.resting:
            session.intake.keep((session.intake.gather(chunk) or b""), 0)
        elif session.waiting:
            self._hold(session, chunk)
        elif not session.intake.size:
            self._work(session, chunk)
        elif (data := session.intake.gather(chunk)) is not None:
            self._work(session, data)

    def feed_each(
        self,
        sessions: Mapping[int, ClientSession],
        chunks: Sequence[tuple[int, bytes]],
        first: int,
        now_ns: int,
    ) -> tuple[int, int]:
        """Have the loop take messages of several publishers at once, a chunk each, from the `first`
        on: many publishers that wait send such. The place of the first chunk that it did not take,
        and up to which they need not be tried again. Nobody is congested."""
        each = self.twin.each
        if each is None or self.resting:
            return first, len(chunks)
        rows: list[Chunk] = []
        fans, tried = None, first
        for conn, chunk in islice(chunks, first, first + EACH_MAX):
            tried += 1
            session = sessions.get(conn)
            if session is None or session.fans is None or not session.fast:
                break
            if session.closing or session.waiting or session.intake.size:
                break
            if session.fans is not fans:
                if rows:
                    tried -= 1
                    break
                fans = session.fans
            rows.append((session, session.flags, chunk))
        if fans is None or len(rows) < 2:
            return first, tried
        sizes = fans.route_each(each, rows)
        for (session, _, _), size in zip(rows, sizes, strict=False):
            session.last_in_ns = now_ns
            session.in_messages += 1
            session.in_bytes += size
        account = rows[0][0].account
        account.in_messages += len(sizes)
        account.in_bytes += sum(sizes)
        return first + len(sizes), tried

    def resume(self, session: ClientSession) -> None:
        """Go on with what came in while the session waited, for a turn or a password check."""
        self.resting.pop(session, None)
        data = session.intake.gather(b"")
        if data:
            self._work(session, data)

    def _hold(self, session: ClientSession, chunk: bytes) -> None:
        held = session.intake.gather(chunk) or b""
        if len(held) > self._waiting_max:
            session.close("Protocol Violation")
        else:
            session.intake.keep(held, 0)

    def _work(self, session: ClientSession, data: bytes) -> None:
        size = len(data)
        position = 0
        effort = session.context.effort
        effort.next()
        passed = session.fast and data.startswith(WORDS)
        if passed:
            position = self._pass(session, data, 0)
            if position == size:
                return  # As nearly all input does.
        self._data, self._clue = data, None
        while 0 <= position < size and not session.closing:
            if session.waiting or effort.left <= 0:
                session.intake.keep(data[position:], 0)
                if not session.waiting:
                    self.resting[session] = None
                break
            if not passed and session.fast and data.startswith(WORDS, position):
                position = self._pass(session, data, position)
                if position == size or effort.left <= 0:
                    continue
            passed = False
            effort.left -= 1
            position = self._step(session, data, position)
        self._data = b""

    def _pass(self, session: ClientSession, data: bytes, position: int) -> int:
        """Have the loop take what it can; the position behind it."""
        fans, effort = session.fans or self._fans_of(session), session.context.effort
        budget = effort.left << TARGETS_SHIFT
        position, count, size, cost = fans.route(data, position, session, session.flags, budget)
        if count:
            account = session.account
            session.in_messages += count
            session.in_bytes += size
            account.in_messages += count
            account.in_bytes += size
        if cost:
            effort.left -= (cost >> TARGETS_SHIFT) + 1
        return position

    def _fans_of(self, session: ClientSession) -> Fans:
        """The fans of all sessions of its account that may publish the same."""
        permissions = session.permissions
        key = (session.account, None if permissions is None else permissions.rules)
        fans = self._fans.get(key)
        if fans is None:
            fans = self._fans[key] = Fans(
                self.twin.table,
                session.context.router.delivery,
                session.account,
                CLIENT,
                may_publish,
                words=WORDS,
                stops=RESERVED_REPLIES,
                line_max=self._line_max,
                payload_max=self._payload_max,
            )
        session.fans = fans
        return fans

    def _step(self, session: ClientSession, data: bytes, position: int) -> int:
        """Carry out what begins at `position`; the position behind it, -1 at the end."""
        start = data.find(b"\n", position) + 1
        line = data[position:start]
        head = session.heads.get(line)
        if head is None:
            return self._other(session, data, position, start)
        after = start + head.size + 2
        if data[after - 2 : after] != b"\r\n":
            return self._incomplete(session, data, position, after)
        if not session.fast or (head.header_size >= 0 and not session.headers):
            session.take(publish(head, data[start : after - 2]))
            return after
        self._single(session, data[start : after - 2], head)
        return after

    def _other(self, session: ClientSession, data: bytes, position: int, start: int) -> int:
        """A line that is not in the session's cache, or not complete (`start` 0)."""
        if not session.authorized and data[position] not in CONNECT_STARTS:
            # Before anything of it is kept: a stranger has no payload to give.
            session.close(AUTH_FAILURE, AUTH_VIOLATION)
            return -1
        if not start:
            rest = data[position:]
            bad = unfinished(rest, self._line_max)
            if bad is not None:
                session.take(bad)
            else:
                session.intake.keep(rest, 0)
            return -1
        line = data[position:start]
        head = control(line, self._line_max, self._payload_max)
        if not isinstance(head, Head):
            session.take(head)
            return -1 if isinstance(head, Bad) else start
        after = start + head.size + 2
        if data[after - 2 : after] != b"\r\n":
            return self._incomplete(session, data, position, after)
        if not session.fast or (head.header_size >= 0 and not session.headers):
            session.take(publish(head, data[start : after - 2]))
            return after
        if not head.reply and start - position <= CACHED_BYTES_MAX:
            if len(session.heads) >= HEADS_CACHED_MAX:
                session.heads.clear()
            session.heads[line] = head
        self._single(session, data[start : after - 2], head)
        return after

    def _incomplete(self, session: ClientSession, data: bytes, position: int, after: int) -> int:
        """The payload's end is not there, or is wrong."""
        trailer = data[after - 2 : after]
        if b"\r\n".startswith(trailer):
            session.intake.keep(data[position:], after - position - (not trailer))
        else:
            session.take(UNKNOWN)
        return -1

    def _single(self, session: ClientSession, body: bytes, head: Head) -> None:
        """One message of a fast session."""
        subject, reply, at, size = head
        if at > 0 and self._may_be_traced(session):
            session.publish(publish(head, body))
            return
        self._count(session, 1, size)
        plan = session.plan_for(subject)
        if plan is DENIED:
            session.deny_publish(subject)
        elif reply and reply.startswith(RESERVED_REPLIES):
            session.deny_publish(reply, None, WITH_REPLY)
        else:
            headers, payload = (body[:at], body[at:]) if at >= 0 else (None, body)
            reached = not plan.empty and session.context.router.delivery.one(
                session, session.account, plan, subject, reply, headers, payload, subject
            )
            if reply and not reached:
                session.nobody(subject, reply)

    def _may_be_traced(self, session: ClientSession) -> bool:
        """Whether a message with headers has to be looked at more closely."""
        clue = self._clue
        if clue is None:
            clue = self._clue = self._data.find(DEST) >= 0
        return clue or session.account.traced

    def _count(self, session: ClientSession, count: int, size: int) -> None:
        session.in_messages += count
        session.in_bytes += size
        session.account.in_messages += count
        session.account.in_bytes += size


def may_publish(origin: Outbound, subject: bytes) -> int:
    """See `fans.May`; asked for sessions alone."""
    assert isinstance(origin, ClientSession)
    if not origin.may_publish(subject):
        return 0
    # The first token always has a say: what servers say to each other is not for all.
    permissions = origin.permissions
    return 1 if permissions is None else max(1, permissions.deciding(subject))
