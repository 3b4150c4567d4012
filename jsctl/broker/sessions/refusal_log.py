"""What clients were refused, for the operator's log: who tries passwords, and what is not allowed.

In nats-server's words, which tools look for. Anybody can be refused as often as he likes, so there
are so many lines a second at most, of all clients together; the rest is counted.
"""

from typing import TYPE_CHECKING

from jsctl.broker.protocol.ops import LINE_TOO_LONG, PAYLOAD_TOO_LARGE, Subscribe
from jsctl.broker.sessions.labels import label, quoted
from jsctl.broker.sessions.refusals import AUTH_FAILURE, NOT_PERMITTED
from jsctl.broker.turn import LogLevel, LogLine

if TYPE_CHECKING:
    from jsctl.broker.sessions.session import ClientSession

LINES_MAX = 20
"""In `WINDOW_NS`, and one that says how many more there were."""
WINDOW_NS = 1_000_000_000
SHOWN_BYTES_MAX = 256
"""Of a subject, or of a name that was tried."""
ENDS = {
    PAYLOAD_TOO_LARGE.reason: "maximum payload exceeded",
    LINE_TOO_LONG.reason: "maximum control line exceeded",
}
"""Reasons of closings that are no accident, and how they are told."""


class RefusalLog:
    """Times in ns."""

    def __init__(self) -> None:
        self._lines: list[LogLine] = []
        self._window_ns = 0
        self._count = 0
        """Refusals of this window."""

    def publish(self, session: "ClientSession", subject: bytes, *, is_reply: bool) -> None:
        """A message was dropped, for its subject or its reply."""
        if self._has_room(session):
            what = "Reply" if is_reply else "Subject"
            self._note(session, f'Publish Violation - {what} "{_shown(subject)}"')

    def subscription(self, session: "ClientSession", op: Subscribe, told: bytes) -> None:
        """A SUB was refused, and the client was told this."""
        if not self._has_room(session):
            return
        if not told.startswith(NOT_PERMITTED):
            self._note(session, told.decode(errors="replace"))
            return
        queue = f', Queue: "{_shown(op.queue)}"' if op.queue else ""
        what = f'Subject "{_shown(op.subject)}"{queue}, SID {_shown(op.sid)}'
        self._note(session, f"Subscription Violation - {what}")

    def closed(self, session: "ClientSession", reason: str) -> None:
        """A client is let go."""
        if reason == AUTH_FAILURE:
            if self._has_room(session):
                user = session.greeting.credentials.shown
                who = f' - User "{_shown(user.encode(errors="surrogateescape"))}"' if user else ""
                self._note(session, f"authentication error{who}")
        elif reason in ENDS and self._has_room(session):
            self._note(session, ENDS[reason])

    def take(self) -> list[LogLine]:
        """The lines since the last call."""
        lines, self._lines = self._lines, []
        return lines

    @property
    def waits(self) -> bool:
        """Whether `take` has something."""
        return bool(self._lines)

    def _has_room(self, session: "ClientSession") -> bool:
        now_ns = session.context.router.now_ns
        if now_ns >= self._window_ns + WINDOW_NS:
            if self._count > LINES_MAX:
                text = f"{self._count - LINES_MAX} more refusals of clients, which are not listed"
                self._lines.append(LogLine(LogLevel.ERROR, text))
            self._window_ns, self._count = now_ns, 0
        self._count += 1
        return self._count <= LINES_MAX

    def _note(self, session: "ClientSession", text: str) -> None:
        self._lines.append(LogLine(LogLevel.ERROR, f"{label(session)} - {text}"))


def _shown(data: bytes) -> str:
    cut = "..." if len(data) > SHOWN_BYTES_MAX else ""
    return quoted(data[:SHOWN_BYTES_MAX]) + cut
