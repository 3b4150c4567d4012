"""`errors ls` and `lookup`."""

import re
from dataclasses import asdict

from jsctl.commands.errors.documents import CODE_MAX, ErrorDescription, load
from jsctl.commands.toolkit.grammar.regexps import compiled
from jsctl.commands.toolkit.grammar.values import parse_whole
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import NotFound, UsageError
from jsctl.render.column import Column, sort_rows
from jsctl.render.details import Details

COLUMNS: tuple[Column[ErrorDescription], ...] = (
    Column("error_code", "NATS Code", lambda one: one.error_code),
    Column("code", "HTTP Error Code", lambda one: one.code),
    Column("description", "Description", lambda one: one.description),
    Column("comment", "Comment", lambda one: one.comment),
    Column("constant", "Go Constant", lambda one: one.constant),
)
_KEYS = {"code": "error_code", "http": "code"}


def ls(call: Call) -> None:
    """All errors, or those that match."""
    found = load(call.text("errors"))
    text = call.text("match").lower()
    try:
        pattern = compiled(text)
    except re.error as error:
        raise UsageError(f"{text} is not a regular expression: {error}") from None
    found = [one for one in found if _matches(one, pattern)]
    if not found:
        raise NotFound(f"no errors found matching regular expression {text or '.'}")
    key = _KEYS.get(call.text("sort"), "description")
    rows = sort_rows(found, COLUMNS, key, reverse=call.flag("reverse"))
    call.output.table(rows, COLUMNS, "NATS Errors")


def _matches(one: ErrorDescription, pattern: re.Pattern[str]) -> bool:
    texts = (one.description, one.help, one.constant, one.comment)
    numbers = (str(one.code), str(one.error_code))
    return any(pattern.search(text) for text in (*(text.lower() for text in texts), *numbers))


def lookup(call: Call) -> None:
    """All about one error."""
    code = code_of(call.text("code"))
    one = next((one for one in load(call.text("errors")) if one.error_code == code), None)
    if one is None:
        raise NotFound(f"no error matches code {code}")
    if call.as_json:
        call.output.json(asdict(one))
        return
    screen = Details(f"NATS Error Code: {code}")
    screen.row("Description", one.description)
    screen.row_if("Comment", one.comment)
    screen.row("HTTP Code", one.code)
    screen.row("Go Index Constant", one.constant)
    screen.row_if("Help URL", one.url)
    screen.text()
    screen.text(one.help or "No further information available")
    call.output.details(screen)


def code_of(text: str) -> int:
    """A code, also as `0x2727` or `10_059`. Raises UsageError in the words of Go."""
    try:
        code = parse_whole(text) if text[:1].isdigit() else -1
    except ValueError:
        code = CODE_MAX + 1 if text.isdigit() and text.isascii() else -1
    if not 0 <= code <= CODE_MAX:
        problem = "invalid syntax" if code < 0 else "value out of range"
        raise UsageError(f'strconv.ParseUint: parsing "{text}": {problem}')
    return code
