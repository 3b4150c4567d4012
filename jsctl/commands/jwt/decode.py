"""`jwt decode`: what a JWT says, and what is odd about it.

That its signature fits says only that it was not changed, not that its issuer is to be trusted.
"""

import os
import time
from pathlib import Path

from jsctl.auth.check import issues_of
from jsctl.auth.token import read, undecorated
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import NotFound, UsageError
from jsctl.files import read_text
from jsctl.render.reports.auth.decoded import claims_screen

SECOND_NS = 1_000_000_000
SHOWN_MAX = 1024


def decode(call: Call) -> None:
    """A JWT from the command line, a `.jwt` or a `.creds` file; seeds are never read."""
    claims = read(_token(call.text("jwt").strip()))
    if call.as_json:
        call.output.json(claims.document())
        return
    now_s = time.time_ns() // SECOND_NS
    call.output.details(claims_screen(claims, issues_of(claims, now_s)))
    call.output.print()


def _token(text: str) -> str:
    """The JWT that a word is or that it names. Raises NotFound and UsageError."""
    path = Path(text)
    if not text or not os.path.exists(text):  # noqa: PTH110 (says no to names that are too long)
        if _is_jwt(text):
            return text
        raise NotFound(f'"{text[:SHOWN_MAX]}" is neither a file nor a JWT')
    token = undecorated(read_text(path)).strip()
    if not _is_jwt(token):
        raise UsageError(f"{text} does not contain a JWT")
    return token


def _is_jwt(text: str) -> bool:
    """Whether it looks like one: base64 of an object, and three parts."""
    return text.startswith("eyJ") and text.count(".") == 2
