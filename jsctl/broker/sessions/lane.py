"""The lane: a client's bytes in, routed messages out, with as little work per message as can be.

Theory of operation. Clients that publish fast send the same control line again and again, or
lines that differ only in subject and reply. So, for sessions that are `fast` (no +OK, no checks
that depend on time or chance):

* *Runs.* When the line at hand stands again one stride (line, payload, CR LF) further on, all
  strides that are in the chunk are compared column by column: byte j of every stride is one
  extended slice, and the length of its equal prefix bounds the run. The whole run is framed by
  as many slices as the line has bytes, whatever the payloads contain.
* *Rows.* When messages of one size follow each other with changing replies or subjects, one
  regular expression of that size cuts all of them. Its last alternative swallows the rest, so
  that a row can only begin where the one before ended.
* *Single messages.* Everything else: find the line's end, look the line up or parse it.

Control operations, and everything of sessions that are not fast, go to the session one by one.
The result is the same as that of `Parser` and `ClientSession.handle` on the same bytes.
"""

import re
from operator import itemgetter

from jsctl.broker.interest.targets import TARGETS_SHIFT, SublistResult
from jsctl.broker.protocol.client import Head, control, publish, unfinished
from jsctl.broker.protocol.ops import UNKNOWN, Bad, Publish
from jsctl.broker.routing.delivery import Row, Shape
from jsctl.broker.routing.limits import RoutingLimits
from jsctl.broker.routing.trace import DEST
from jsctl.broker.sessions.session import (
    AUTH_FAILURE,
    AUTH_VIOLATION,
    CACHED_BYTES_MAX,
    DENIED,
    RESERVED_REPLIES,
    WITH_REPLY,
    ClientSession,
)

COLUMNS_FROM = 12
"""Runs shorter than this are compared stride by stride."""

ROWS_AFTER = 8
"""Messages of one shape in a row before an expression is made for them."""

SHAPES_MAX = 512
"""Expressions kept, for all connections; at the limit all are dropped."""

CONNECT_STARTS = b"Cc"
HEADS_CACHED_MAX = 4096
WORD_MAX = 500
ROWS_LINE_MIN = 2 * WORD_MAX + 64
"""Rows are for words up to `WORD_MAX`, so that no row's line can exceed its maximum."""

WORDS_USUAL = 32
"""Bytes of subject and reply, as far as the work of many rows is foreseen by their size."""

_SUBJECT = itemgetter(0)
_REPLY = itemgetter(1)


class Lane:
    """The publish path of all client connections."""

    def __init__(self, limits: RoutingLimits) -> None:
        self.change_limits(limits)
        self._shapes: dict[Shape, re.Pattern[bytes]] = {}
        self.resting: dict[ClientSession, None] = {}
        """Who has input left that the next turns carry out."""
        self._data = b""
        self._clue: bool | None = None
        """Whether a trace header may be somewhere in the input at hand; None: not looked yet.

        One look at all of it costs a twentieth of one at each message, and input without headers
        is never looked at.
        """

    def change_limits(self, limits: RoutingLimits) -> None:
        """What counts from the next line on; sessions forget the lines that they know."""
        self._line_max = limits.control_line_bytes_max
        self._payload_max = limits.payload_bytes_max
        self._waiting_max = limits.waiting_bytes_max
        self._rows_allowed = limits.control_line_bytes_max >= ROWS_LINE_MIN

    def feed(self, session: ClientSession, chunk: bytes, now_ns: int) -> None:
        """Take a chunk of a connection's input, and carry out what this turn can."""
        session.last_in_ns = now_ns
        if session in self.resting:
            session.intake.keep((session.intake.gather(chunk) or b""), 0)
        elif session.waiting:
            self._hold(session, chunk)
        else:
            data = session.intake.gather(chunk)
            if data is not None:
                self._work(session, data)

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
        self._data, self._clue = data, None
        while 0 <= position < size and not session.closing:
            if session.waiting or effort.left <= 0:
                session.intake.keep(data[position:], 0)
                if not session.waiting:
                    self.resting[session] = None
                break
            effort.left -= 1
            position = self._step(session, data, position)
        self._data = b""

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
        if head.header_size < 0 and data.startswith(line, after):
            return self._run(session, data, position, line, head)
        return self._single(session, data, start, after, head)

    def _single(
        self, session: ClientSession, data: bytes, start: int, after: int, head: Head
    ) -> int:
        """One message of a fast session; tries rows when shapes repeat."""
        at = max(head.header_size, 0)
        shape = Shape(head.header_size, head.size, bool(head.reply))
        if session.shape != shape:
            session.shape = shape
            session.repeats = 0
        session.repeats += 1
        row = (head.subject, head.reply, data[start : start + at], data[start + at : after - 2])
        self._one(session, shape, row)
        if session.repeats > ROWS_AFTER and self._rows_allowed and session.fast:
            return self._rows(session, data, after, shape)
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
        if head.header_size < 0 and data.startswith(line, after):
            return self._run(session, data, position, line, head)
        return self._single(session, data, start, after, head)

    def _incomplete(self, session: ClientSession, data: bytes, position: int, after: int) -> int:
        """The payload's end is not there, or is wrong."""
        trailer = data[after - 2 : after]
        if b"\r\n".startswith(trailer):
            session.intake.keep(data[position:], after - position - (not trailer))
        else:
            session.take(UNKNOWN)
        return -1

    def _run(
        self, session: ClientSession, data: bytes, position: int, line: bytes, head: Head
    ) -> int:
        """The same control line at every stride from `position` on; it stands twice at least."""
        stride = len(line) + head.size + 2
        session.repeats = 0
        subject, reply = head.subject, head.reply
        plan = session.plan_for(subject)
        refused = plan is DENIED or reply.startswith(RESERVED_REPLIES)
        single = refused or not plan.simple or (plan.empty and reply and session.no_responders)
        effort = session.context.effort
        most = _affordable(effort.left, None if single else plan)
        count = min(_run_length(data, position, line, stride), most)
        end = position + count * stride
        if single:
            effort.left -= count
            shape = Shape(-1, head.size, bool(reply))
            for at in range(position + len(line), end, stride):
                self._one(session, shape, (subject, reply, b"", data[at : at + head.size]))
            return end
        effort.left -= count * plan.weight >> TARGETS_SHIFT
        self._count(session, count, head.size)
        if plan.empty:
            return end
        size = head.size
        payloads = [data[at : at + size] for at in range(position + len(line), end, stride)]
        router = session.context.router
        reached = router.delivery.run(session, session.account, plan, subject, reply, payloads)
        if not reached and reply:
            for _ in payloads:
                session.nobody(subject, reply)
        return end

    def _rows(self, session: ClientSession, data: bytes, position: int, shape: Shape) -> int:
        """As many messages of one shape as follow; perhaps none."""
        expression = self._shapes.get(shape)
        if expression is None:
            if len(self._shapes) >= SHAPES_MAX:
                self._shapes.clear()
            expression = self._shapes[shape] = _row_expression(shape)
        effort = session.context.effort
        left = effort.left
        most = _affordable(left, None)
        bound = position + most * (_fixed_size(shape) + WORDS_USUAL)
        rows: list[Row] = expression.findall(data, position, bound)
        if rows and not rows[-1][0]:
            rows.pop()
        del rows[most:]
        if not rows:
            session.repeats = 0
            return position
        traced = shape.header_size > 0 and self._may_be_traced(session)
        plan = None if traced else self._common_plan(session, shape, rows)
        del rows[_affordable(left, plan) :]
        end = position + _fixed_size(shape) * len(rows) + sum(map(len, map(_SUBJECT, rows)))
        if shape.with_reply:
            end += sum(map(len, map(_REPLY, rows)))
        if plan is None:
            effort.left -= len(rows)
            for row in rows:
                self._one(session, shape, row)
            return end
        effort.left -= len(rows) * plan.weight >> TARGETS_SHIFT
        self._count(session, len(rows), shape.size)
        delivery = session.context.router.delivery
        reached = not plan.empty and delivery.rows(session, session.account, plan, shape, rows)
        if not reached and shape.with_reply and session.no_responders:
            for subject, reply, _, _ in rows:
                session.nobody(subject, reply)
        return end

    def _common_plan(
        self, session: ClientSession, shape: Shape, rows: list[Row]
    ) -> SublistResult | None:
        """The plan that serves all rows alike; None when they must be looked at one by one."""
        subjects = set(map(_SUBJECT, rows))
        plans = [session.plan_for(subject) for subject in subjects]
        first = plans[0]
        for plan in plans:
            if plan is DENIED or not plan.simple or not plan.same_targets(first):
                return None
        if shape.with_reply and any(
            [reply.startswith(RESERVED_REPLIES) for _, reply, _, _ in rows]
        ):
            return None
        return first

    def _one(self, session: ClientSession, shape: Shape, row: Row) -> None:
        """One message of a fast session."""
        subject, reply, headers, payload = row
        if headers and self._may_be_traced(session):
            session.publish(Publish(subject, reply, headers, payload))
            return
        self._count(session, 1, shape.size)
        plan = session.plan_for(subject)
        if plan is DENIED:
            session.deny_publish(subject)
        elif reply and reply.startswith(RESERVED_REPLIES):
            session.deny_publish(reply, None, WITH_REPLY)
        else:
            given = headers if shape.header_size >= 0 else None
            reached = not plan.empty and session.context.router.delivery.one(
                session, session.account, plan, subject, reply, given, payload, subject
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
        session.in_bytes += count * size
        session.account.in_messages += count
        session.account.in_bytes += count * size


def _affordable(left: int, plan: SublistResult | None) -> int:
    """How many messages of a plan so many units are enough for; None: one for each."""
    weight = 1 << TARGETS_SHIFT if plan is None else plan.weight or 1
    return max((left << TARGETS_SHIFT) // weight, 1)


def _run_length(data: bytes, position: int, line: bytes, stride: int) -> int:
    """How many complete strides from `position` on begin with `line` and end in CR LF."""
    most = (len(data) - position) // stride
    known = position + (COLUMNS_FROM - 1) * stride
    if most < COLUMNS_FROM or not data.startswith(line, known):
        count = 0
        while (
            count < most
            and data.startswith(line, position)
            and data.startswith(b"\r\n", position + stride - 2)
        ):
            position += stride
            count += 1
        return count
    end = position + most * stride
    for offset in range(len(line)):
        column = data[position + offset : end : stride]
        most = len(column) - len(column.lstrip(line[offset : offset + 1]))
        end = position + most * stride
    for offset, byte in ((stride - 2, b"\r"), (stride - 1, b"\n")):
        column = data[position + offset : end : stride]
        most = len(column) - len(column.lstrip(byte))
        end = position + most * stride
    return most


def _fixed_size(shape: Shape) -> int:
    """Bytes of a row besides its subject and reply."""
    size = len(b"PUB  %d\r\n\r\n" % shape.size) + shape.size + shape.with_reply
    return size if shape.header_size < 0 else size + len(b"H%d " % shape.header_size)


def _row_expression(shape: Shape) -> re.Pattern[bytes]:
    word = rb"([^ \t\r\n]{1,%d})" % WORD_MAX
    middle = word + b" " if shape.with_reply else b"()"
    if shape.header_size < 0:
        pattern = rb"PUB %s %s%d\r\n()(.{%d})\r\n|.+"
        text = pattern % (word, middle, shape.size, shape.size)
    else:
        pattern = rb"HPUB %s %s%d %d\r\n(.{%d})(.{%d})\r\n|.+"
        at, size = shape.header_size, shape.size
        text = pattern % (word, middle, at, size, at, size - at)
    return re.compile(text, re.DOTALL)
