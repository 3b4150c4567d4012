"""Events as rows: the same columns for every kind, and the whole event behind them."""

import json
from collections.abc import Mapping

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError

WHERE = (
    ("server", (("server", "name"), ("server",))),
    ("account", (("client", "acc"), ("account",), ("acc",))),
    ("stream", (("stream",), ("name",))),
    ("consumer", (("consumer",),)),
)
"""Columns, and the ways to what stands in them, in the order in which they are tried."""


def event_row(subject: str, text: str) -> dict[str, object]:
    """The row of an event as it came; what is no JSON has its text alone."""
    try:
        found = jsontext.parse(text)
    except DecodeError:
        found = None
    event: Mapping[str, object] = found if isinstance(found, dict) else {}
    row: dict[str, object] = {
        "time": _text(event.get("timestamp")),
        "type": _text(event.get("type")),
        "id": _text(event.get("id")),
        "subject": subject,
    }
    for column, ways in WHERE:
        texts = (_text(_value(event, way)) for way in ways)
        row[column] = next((one for one in texts if one), "")
    row["event"] = text if found is None else json.dumps(found, ensure_ascii=False)
    return row


def _value(event: Mapping[str, object], way: tuple[str, ...]) -> object:
    found: object = event
    for key in way:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
