"""What can go wrong in the front end that is not a bug, each with its exit code.

    JsctlError               1
    ├── UsageError           2   a flag or argument is wrong or missing
    ├── NotFound             3   a stream, consumer, server, context or key does not exist
    ├── NotAllowed           4   credentials are missing, wrong or too weak
    ├── Unreachable          5   no server, no responder, no answer in time
    ├── Conflict             6   the server's state forbids it
    ├── NeedsConfirmation    7   a question could not be asked, and --force was not given
    └── Aborted              1   the person at the keyboard said stop

Scripts written for `nats` expect 1 for every error; the finer codes are given only when the
environment has JSCTL_EXIT=detailed.
"""

from collections.abc import Mapping
from errno import EDQUOT, EFBIG, ENOSPC
from typing import Protocol

FULL = (ENOSPC, EDQUOT, EFBIG)
"""A file was there, and had no room."""


class JsctlError(Exception):
    """Base of all expected failures. `hints` are shown below the message."""

    kind = "error"
    exit_code = 1
    code = 0
    """That of the JetStream API, if it says so."""

    def __init__(self, message: str, *, hints: tuple[str, ...] = ()) -> None:
        self.hints = hints
        super().__init__(message)


def prefixed(error: "JsctlError", text: str) -> "JsctlError":
    """The same error, told as that of what was tried."""
    error.args = (f"{text}: {error}",)
    return error


def sentence_of(error: OSError, path: object = None) -> str:
    """`open FILE: no such file or directory`; without a file only what is wrong."""
    what = (error.strerror or str(error)).lower()
    name = error.filename if path is None else path
    doing = "write" if error.errno in FULL else "open"
    return what if name is None else f"{doing} {name}: {what}"


class UsageError(JsctlError):
    """The command line is wrong. With `show_help` the command's help is printed too."""

    kind = "usage"
    exit_code = 2

    def __init__(
        self, message: str, *, hints: tuple[str, ...] = (), show_help: bool = False
    ) -> None:
        self.show_help = show_help
        super().__init__(message, hints=hints)


class NotFound(JsctlError):
    """Something named does not exist."""

    kind = "not_found"
    exit_code = 3


class NotAllowed(JsctlError):
    """The server or the account's rights refuse."""

    kind = "permission"
    exit_code = 4


class Unreachable(JsctlError):
    """Nobody answered."""

    kind = "unreachable"
    exit_code = 5


class Conflict(JsctlError):
    """The server's state forbids it."""

    kind = "conflict"
    exit_code = 6


class NeedsConfirmation(JsctlError):
    """A question without a terminal to ask it on."""

    kind = "confirmation"
    exit_code = 7


class Aborted(JsctlError):
    """Stopped by hand."""

    kind = "aborted"


class Refusal(Protocol):
    """What is needed of an API error; `code` is like an HTTP status."""

    code: int
    err_code: int


class RequestFailed(JsctlError):
    """A JetStream API error; the kind follows the server's code."""

    def __init__(self, error: Refusal, *, prefix: str = "", hints: tuple[str, ...] = ()) -> None:
        self.error = error
        self.code = error.err_code
        conflict = error.err_code in CONFLICTS
        self.kind, self.exit_code = _KINDS.get(409 if conflict else error.code, ("error", 1))
        super().__init__(f"{prefix}: {error}" if prefix else str(error), hints=hints)


CONFLICTS = frozenset({10013, 10058, 10065, 10070, 10071, 10109, 10148, 10164})
"""Names and subjects that others have, expectations that do not hold: what servers call a bad
request (400) is good, and would be taken in another state."""
_KINDS: Mapping[int, tuple[str, int]] = {
    400: ("error", 1),
    401: (NotAllowed.kind, NotAllowed.exit_code),
    403: (NotAllowed.kind, NotAllowed.exit_code),
    404: (NotFound.kind, NotFound.exit_code),
    408: (Unreachable.kind, Unreachable.exit_code),
    409: (Conflict.kind, Conflict.exit_code),
    412: (Conflict.kind, Conflict.exit_code),
    503: (Unreachable.kind, Unreachable.exit_code),
}


def exit_code_of(error: JsctlError, environ: Mapping[str, str]) -> int:
    """1 as `nats`, or the finer code when JSCTL_EXIT=detailed."""
    return error.exit_code if environ.get("JSCTL_EXIT") == "detailed" else 1
