"""Schemas of the API: which there are, what they say, and whether a document keeps to one."""

import re
import sys
from pathlib import Path

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError
from jsctl.api.schema import schema_names, schema_of, violations
from jsctl.commands.toolkit.assets.picking import near_names
from jsctl.commands.toolkit.grammar.regexps import compiled
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.reading import interruptible
from jsctl.errors import Conflict, JsctlError, NotFound, UsageError
from jsctl.render import formats


def search(call: Call) -> None:
    """The names that a regular expression finds."""
    pattern = call.text("pattern")
    try:
        wanted = compiled(pattern)
    except re.error as error:
        raise UsageError(f"search failed: error parsing regexp: {error}") from None
    found = [name for name in schema_names() if wanted.search(name)]
    if call.as_data:
        call.output.json(found)
    elif found:
        names = "\n  ".join(found)
        call.output.print(f"Matched Schemas:\n\n  {names}")
    else:
        call.output.print(f'No schemas matched "{pattern}"')


def info(call: Call) -> None:
    """A whole schema."""
    schema = _schema(call.text("schema"))
    if call.flag("yaml") and not call.output.asked:
        call.output.print(formats.as_yaml(schema))
    else:
        call.output.json(schema)


def validate(call: Call) -> int:
    """Whether a document keeps to a schema; 0 either way, unless JSCTL_EXIT is detailed."""
    name, place = call.text("schema"), call.text("file")
    text = _read(place)
    schema = _schema(name)
    wrong = violations(_document(text, place), schema)
    if call.as_data:
        call.output.json(wrong)
    elif wrong:
        lines = "\n  ".join(wrong)
        call.output.print(f"Validation errors in {place}:\n\n  {lines}")
    else:
        call.output.print(f"{place} validates against {name}")
    return Conflict.exit_code if wrong and call.environ.get("JSCTL_EXIT") == "detailed" else 0


async def request(call: Call) -> None:
    """Whether an answer keeps to the schema that it names."""
    async with call.client() as client:
        timeout_s = call.settings.timeout
        reply = await client.request(
            call.text("subject"), call.text("body").encode(), timeout=timeout_s
        )
    try:
        document = jsontext.parse(reply.data)
    except DecodeError as error:
        raise JsctlError(str(error)) from None
    if call.flag("show") and not call.output.asked:
        call.output.json(document)
        call.output.print()
    told = document if isinstance(document, dict) else {}
    name = told.get("type") or told.get("schema")
    if not isinstance(name, str):
        raise JsctlError("could not determine the message type")
    if call.text("schema") not in ("", name):
        raise Conflict(f"invalid message type {name}")
    wrong = violations(document, _schema(name))
    shown = {"response": document} if call.flag("show") else {}
    judged = {"schema": name, "valid": not wrong, "errors": wrong, **shown}
    if wrong:
        lines = "\n   ".join(wrong)
        text = f"Message did not pass validation against {name}\n\n   {lines}"
        call.output.tell(text, judged)
    else:
        call.output.tell(f"Response is a valid {name} message", judged)


def _schema(name: str) -> dict[str, object]:
    schema = schema_of(name)
    if schema is None:
        names = {one.rpartition(".")[2]: one for one in schema_names()}
        hints = near_names(name, [*schema_names()]) if "." in name else ()
        if name in names:
            hints = (f"did you mean {names[name]}?",)
        text = f'could not load schema "{name}": unsupported schema type "{name}"'
        raise NotFound(text, hints=hints)
    return schema


def _read(place: str) -> bytes:
    if place == "-":
        return interruptible(lambda: sys.stdin.buffer.read())
    try:
        return Path(place).read_bytes()
    except OSError as error:
        doing = "read" if isinstance(error, IsADirectoryError) else "open"
        raise NotFound(f"{doing} {place}: {(error.strerror or '').lower()}") from None


def _document(text: bytes, place: str) -> object:
    try:
        return jsontext.parse(text)
    except DecodeError as error:
        raise UsageError(f'could not parse JSON data in "{place}": {error}') from None
