"""What a server refuses (`-ERR`), and whom it concerns.

A refusal comes when it comes, not as the answer to anything. Whoever waits for something opens a
`Scope`; the innermost one that a refusal concerns ends its task at once, as a timeout would, with
the refusal as its error. Nobody waits in vain, and nothing that was refused is reported done.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from jsctl.errors import JsctlError, NotAllowed

if TYPE_CHECKING:
    import asyncio

PERMISSIONS = "nats: permissions violation: "
_QUOTED = re.compile(r'"([^"]*)"')
_SENTENCES: Mapping[str, str] = {
    "authorization violation": "nats: Authorization Violation",
    "authentication timeout": "nats: authentication timeout",
    "user authentication expired": "nats: authentication expired",
    "user authentication revoked": "nats: authentication revoked",
    "account authentication expired": "nats: account authentication expired",
    "account authentication revoked": "nats: account authentication revoked",
    "maximum connections exceeded": "nats: server maximum connections exceeded",
    "maximum account active connections exceeded": (
        "nats: maximum account active connections exceeded"
    ),
    "maximum subscriptions exceeded": "nats: server maximum subscriptions exceeded",
    "maximum payload violation": "nats: maximum payload exceeded",
    "secure connection - tls required": "nats: secure connection required",
}
"""The server's words in lower case -> the sentence of other clients."""
_PASSING = ("permissions violation", "maximum subscriptions exceeded", "invalid subject")
_LOGIN = ("authorization", "authentication", "account active connections")


def bare(said: str) -> str:
    """The server's words without quotes."""
    return said.strip().removeprefix("nats: ").strip("'")


def sentence_of(said: str) -> str:
    """What people read of a line that the server sent."""
    text = bare(said)
    if "permissions violation" in text.lower():
        return PERMISSIONS + text.removeprefix("permissions violation: ")
    return _SENTENCES.get(text.lower(), f"nats: {text}")


def is_passing(said: str) -> bool:
    """Whether the connection goes on after it."""
    return any(word in said.lower() for word in _PASSING)


def is_login(text: str) -> bool:
    """Whether it is about who may connect: trying again is of no use."""
    return any(word in text.lower() for word in _LOGIN)


class Scope:
    """Within it a refusal that concerns it ends the task; leaving it raises the refusal.

    `subjects` names what is published or subscribed within; without them everything concerns it.
    """

    def __init__(self, refusals: "Refusals", subjects: Callable[[], Sequence[str]] | None) -> None:
        self.error: JsctlError | None = None
        self.subjects = subjects
        self._refusals = refusals
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0

    def concerns(self, text: str) -> bool:
        """Whether a refusal is about this; what is not about a subject is about everybody."""
        if self.subjects is None or not text.startswith(PERMISSIONS):
            return True
        return subject_of(text) in self.subjects()

    def end(self, error: JsctlError) -> None:
        """Stops the task inside; only the first time."""
        if self.error is None and self._task is not None:
            self.error = error
            self._task.cancel()

    async def __aenter__(self) -> "Scope":
        from asyncio import current_task  # help and completion do without a loop

        self._task = current_task()
        assert self._task is not None
        self._cancelling = self._task.cancelling()
        self._refusals.scopes.append(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        from asyncio import CancelledError

        self._refusals.scopes.remove(self)
        if self.error is None or self._task is None:
            return
        if self.subjects is not None:
            self._refusals.settled.update(self.subjects())
        by_others = self._task.uncancel() > self._cancelling
        if by_others and kind is not None and issubclass(kind, CancelledError):
            return
        raise self.error from None


class Refusals:
    """The scopes of one connection, outermost first."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.settled: set[str] = set()
        """Subjects whose refusal was raised already; one cause may be told twice."""
        self.no_inbox: JsctlError | None = None
        """Replies cannot come in: every further request would wait for nothing."""

    def scope(self, subjects: Callable[[], Sequence[str]] | None = None) -> Scope:
        """A new one, of these subjects or of everything."""
        return Scope(self, subjects)

    def hear(self, text: str) -> bool:
        """Ends whom it concerns; tells whether there was anybody."""
        if self.ended is not None or subject_of(text) in self.settled:
            inner = [scope for scope in self.scopes if scope.subjects is not None]
        else:
            inner = self.scopes
        for scope in reversed(inner):
            if scope.concerns(text):
                scope.end(NotAllowed(text))
                return True
        return inner is not self.scopes

    @property
    def ended(self) -> JsctlError | None:
        """Why everything on this connection is over, if it is."""
        found = (scope.error for scope in self.scopes if scope.subjects is None)
        return next((error for error in found if error is not None), None)

    def check(self) -> None:
        """Raises what has ended everything: the library may have swallowed the cancellation."""
        if (error := self.ended) is not None:
            raise error


def subject_of(text: str) -> str:
    """What a permissions violation is about; empty if it is none."""
    found = _QUOTED.search(text) if text.startswith(PERMISSIONS) else None
    return found.group(1) if found else ""
