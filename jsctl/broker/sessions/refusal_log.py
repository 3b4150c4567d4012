"""What clients were refused, for the operator's log: who tries passwords, and what is not allowed.

In nats-server's words, which tools look for. Anybody can be refused as often as he likes, so there
are so many lines a second at most, of all clients together; the rest is counted.
"""

from jsctl.broker.deadlines import NEVER_NS
from jsctl.broker.protocol.ops import LINE_TOO_LONG, PAYLOAD_TOO_LARGE
from jsctl.broker.sessions import standing
from jsctl.broker.sessions.labels import label, quoted
from jsctl.broker.sessions.refusals import AUTH_FAILURE, Refusal
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.turn import LogLevel, LogLine

LINES_MAX = 20
"""In `WINDOW_NS`, and one that says how many more there were."""
WINDOW_NS = 1_000_000_000
SHOWN_BYTES_MAX = 256
"""Of a subject, or of a name that was tried."""
SUBSCRIBED = b"Permissions Violation for Subscription"
PUBLISHED = b"Permissions Violation for Publish"
REPLIED = b"Permissions Violation for Publish with Reply"
"""Beginnings of what clients are told."""
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
        self.due_ns = NEVER_NS
        """When `tick` has something to tell. Only changed here."""

    def refused(self, session: ClientSession, refusal: Refusal) -> None:
        """A message or subscription was not allowed."""
        if not self._has_room(session):
            return
        told, subject, queue, sid = refusal
        if told.startswith(SUBSCRIBED):
            group = f', Queue: "{_shown(queue)}"' if queue else ""
            what = f'Subject "{_shown(subject)}"{group}, SID {_shown(sid)}'
            self._note(session, f"Subscription Violation - {what}")
        elif told.startswith(PUBLISHED):
            what = "Reply" if told.startswith(REPLIED) else "Subject"
            self._note(session, f'Publish Violation - {what} "{_shown(subject)}"')
        else:
            self._note(session, told.decode(errors="replace"))

    def passed_over(self, count: int) -> None:
        """So many more were not allowed."""
        self._count += count
        self._plan()

    def closed(self, session: ClientSession, reason: str) -> None:
        """A client is let go."""
        if reason == AUTH_FAILURE:
            if self._has_room(session):
                user = session.greeting.credentials.shown
                who = f' - User "{_shown(user.encode())}"' if user else ""
                why = standing.refused_for(session)
                because = f": {_shown(why.encode())}" if why else ""
                self._note(session, f"authentication error{who}{because}")
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

    def _has_room(self, session: ClientSession) -> bool:
        now_ns = session.context.router.now_ns
        if now_ns >= self._window_ns + WINDOW_NS:
            self.tick(now_ns)
            self._window_ns, self._count = now_ns, 0
        self._count += 1
        self._plan()
        return self._count <= LINES_MAX

    def _plan(self) -> None:
        if self._count > LINES_MAX:
            self.due_ns = self._window_ns + WINDOW_NS

    def tick(self, now_ns: int) -> None:
        """Tell how many were not listed, when that is due."""
        if now_ns >= self.due_ns:
            text = f"{self._count - LINES_MAX} more refusals of clients, which are not listed"
            self._lines.append(LogLine(LogLevel.ERROR, text))
            self._count, self.due_ns = 0, NEVER_NS

    def _note(self, session: ClientSession, text: str) -> None:
        self._lines.append(LogLine(LogLevel.ERROR, f"{label(session)} - {text}"))


def _shown(data: bytes) -> str:
    cut = "..." if len(data) > SHOWN_BYTES_MAX else ""
    return quoted(data[:SHOWN_BYTES_MAX]) + cut
