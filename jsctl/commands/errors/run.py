"""`errors ls` and `lookup`."""

import re
from dataclasses import asdict

from jsctl.commands.errors.documents import ErrorDescription, load
from jsctl.commands.toolkit.grammar.values import is_count
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
    if text:
        try:
            pattern = re.compile(text)
        except re.error as error:
            raise UsageError(f"{text} is not a regular expression: {error}") from None
        found = [one for one in found if _matches(one, pattern)]
        if not found:
            raise NotFound(f"no errors found matching regular expression {text}")
    key = _KEYS.get(call.text("sort"), "description")
    rows = sort_rows(found, COLUMNS, key, reverse=call.flag("reverse"))
    call.output.table(rows, COLUMNS, "NATS Errors")


def _matches(one: ErrorDescription, pattern: re.Pattern[str]) -> bool:
    texts = (one.description, one.help, one.constant, one.comment)
    numbers = (str(one.code), str(one.error_code))
    return any(pattern.search(text) for text in (*(text.lower() for text in texts), *numbers))


def lookup(call: Call) -> None:
    """All about one error."""
    text = call.text("code")
    if not is_count(text) or int(text) > 65_535:
        problem = "value out of range" if text.isdecimal() else "invalid syntax"
        raise UsageError(f'strconv.ParseUint: parsing "{text}": {problem}')
    code = int(text)
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
