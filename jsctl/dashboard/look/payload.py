"""A message as text: JSON with colours, plain text, or a hex dump. All of it made safe."""

import json
import re

from rich.text import Text

from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, clock
from jsctl.dashboard.model.message import StoredMessage
from jsctl.render.humanize import number

FORMS = ("auto", "json", "text", "hex")
SHOWN_MAX = 64 * 1024
"""Bytes of a payload that are shown."""
DEPTH_MAX = 40
"""Deeper lines are not indented further."""
_PART = re.compile(r'"(?:\\.|[^"\\])*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_OPENING, _CLOSING = ("[", "{"), ("]", "}")
_TOKEN = re.compile(
    r'(?P<key>"(?:\\.|[^"\\])*")(?=\s*:)|(?P<text>"(?:\\.|[^"\\])*")'
    r"|(?P<number>-?\d[\d.eE+-]*)|(?P<word>true|false|null)"
)


def one_line(data: bytes, width: int) -> str:
    """The start of a payload for a table."""
    head = data[: 4 * width + 8]
    try:
        return clean(head.decode("utf-8"))
    except UnicodeDecodeError as error:
        if error.start > len(head) - 4 and error.start:
            return clean(head[: error.start].decode("utf-8"))
    return " ".join(f"{byte:02x}" for byte in head[:width])


def form_of(data: bytes, form: str) -> str:
    """What `auto` means for a payload."""
    if form != "auto":
        return form
    try:
        found = data[:SHOWN_MAX].decode("utf-8")
    except UnicodeDecodeError:
        return "hex"
    return "json" if found.lstrip()[:1] in ("{", "[") and _document(data) is not None else "text"


def whole(message: StoredMessage, form: str, ink: Ink) -> Text:
    """Subject, time, size, headers, payload."""
    text = Text()
    text.append(clean(message.subject), f"bold {ink.colour('flow')}")
    part = message.time_ns // 1_000_000 % 1000
    text.append(f"   {clock(message.time_ns)}.{part:03}", ink.muted)
    text.append(f"   {number(len(message.data))} B\n", ink.muted)
    for name, value in message.headers:
        text.append(f"{clean(name)}: ", ink.colour("accent"))
        text.append(f"{clean(value)}\n", ink.text)
    text.append("\n")
    data = message.data[:SHOWN_MAX]
    text.append_text(_DRAW[form_of(message.data, form)](data, ink))
    if len(message.data) > SHOWN_MAX:
        text.append(f"\n… {number(len(message.data) - SHOWN_MAX)} bytes more", ink.muted)
    return text


def laid_out(document: str) -> str:
    """Valid JSON on lines of its own, all of it as it is: no number is rounded."""
    made: list[str] = []
    depth, before = 0, ""
    for part in _PART.findall(document):
        closing = part in _CLOSING
        depth -= closing
        if (before not in _OPENING) if closing else (before == "," or before in _OPENING):
            made.append("\n" + "  " * min(depth, DEPTH_MAX))
        depth += part in _OPENING
        before = part
        if "\\u" in part:
            part = json.dumps(json.loads(part), ensure_ascii=False)
        made.append(": " if part == ":" else part)
    return "".join(made)


def _document(data: bytes) -> object | None:
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found


def _json(data: bytes, ink: Ink) -> Text:
    if _document(data) is None:
        return _text(data, ink)
    document = data.decode(json.detect_encoding(data), "surrogatepass")
    lines = "\n".join(map(clean, laid_out(document).split("\n")))
    text = Text(lines, ink.muted)
    roles = {"key": "accent", "text": "flow", "number": "star", "word": "star"}
    for match in _TOKEN.finditer(lines):
        role = match.lastgroup or "text"
        text.stylize(ink.colour(roles[role]), match.start(), match.end())
    return text


def _text(data: bytes, ink: Ink) -> Text:
    lines = data.decode("utf-8", "replace").split("\n")
    return Text("\n".join(clean(line.rstrip("\r").expandtabs(4)) for line in lines), ink.text)


def _hex(data: bytes, ink: Ink) -> Text:
    text = Text()
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        text.append(f"{start:08x}  ", ink.muted)
        text.append(f"{row.hex(' '):<47}  ", ink.text)
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        text.append(f"{shown}\n", ink.colour("flow"))
    text.rstrip()
    return text


_DRAW = {"json": _json, "text": _text, "hex": _hex}
