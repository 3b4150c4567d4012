"""Rows and documents as JSON, JSON lines, YAML, CSV, TSV, Markdown and bare names."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from jsctl.api.codec import encode
from jsctl.render.column import Column, documents
from jsctl.render.table import as_markdown

R = TypeVar("R")
_YAML_WORDS = frozenset(
    {"", "yes", "no", "on", "off", "true", "false", "null", "none", "=", "~", "y", "n", "<<"}
)
_YAML_MARKS = frozenset("-?:,[]{}#&*!|>'\"%@`")
_UNSEEN = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What JSON may hold as it is, and terminals obey: control characters of eight bits, line ends and
directions of text. Half characters are none of any encoding."""


def as_json(value: object) -> str:
    """Pretty, two spaces, characters as they are if they are seen; API objects and plain data."""
    return _seen(json.dumps(plain(value), indent=2, ensure_ascii=False))


def as_json_line(value: object) -> str:
    """One line."""
    return _seen(json.dumps(plain(value), ensure_ascii=False, separators=(",", ":")))


def _seen(text: str) -> str:
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def plain(value: object) -> object:
    """API objects as documents; everything else as it is."""
    if hasattr(value, "__dataclass_fields__"):
        return encode(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def as_yaml(value: object) -> str:
    """A YAML document that any loader reads back to the same data."""
    return "\n".join(_yaml_lines(plain(value), 0))


def _yaml_lines(value: object, depth: int) -> list[str]:
    pad = "  " * depth
    if isinstance(value, dict) and value:
        lines: list[str] = []
        for key, item in value.items():
            lines += _yaml_entry(f"{pad}{_yaml_scalar(key)}:", item, depth)
        return lines
    if isinstance(value, list) and value:
        return [line for item in value for line in _yaml_item(item, depth)]
    return [pad + _yaml_scalar(value)]


def _yaml_entry(head: str, item: object, depth: int) -> list[str]:
    if isinstance(item, dict | list) and item:
        return [head, *_yaml_lines(item, depth + 1)]
    return [f"{head} {_yaml_scalar(item)}"]


def _yaml_item(item: object, depth: int) -> list[str]:
    first, *rest = _yaml_lines(item, depth + 1)
    return ["  " * depth + "- " + first[2 * (depth + 1) :], *rest]


def _yaml_scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    text = str(value)
    plain_text = (
        text.lower() not in _YAML_WORDS
        and text.isprintable()
        and text.strip() == text
        and text[0] not in _YAML_MARKS
        and not text[0].isdigit()
        and text[0] not in "+."
        and ": " not in text
        and " #" not in text
        and not text.endswith(":")
    )
    return text if plain_text else _yaml_quoted(text)


def _yaml_quoted(text: str) -> str:
    """Double quotes, with everything unprintable escaped as YAML spells it."""
    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isprintable():
        return quoted
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in quoted)


def as_csv(rows: Sequence[R], columns: Sequence[Column[R]], *, delimiter: str = ",") -> str:
    """Headings and values, quoted where needed; lists joined by spaces."""
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    # Until Python 3.13 it left this line end alone, and readers began another row there.
    quoting = csv.writer(out, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow([column.key for column in columns])
    for row in rows:
        cells = [_flat(column.value(row)) for column in columns]
        ends = any(isinstance(cell, str) and "\r" in cell for cell in cells)
        (quoting if ends else writer).writerow(cells)
    return out.getvalue().rstrip("\n")


def _flat(value: object) -> object:
    if isinstance(value, list | tuple):
        return " ".join(str(_flat(item)) for item in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, dict) else value


def render_rows(
    rows: Sequence[R], columns: Sequence[Column[R]], form: str, *, title: str = ""
) -> str:
    """Rows in one of the formats other than `table`."""
    if form == "json":
        return as_json(documents(rows, columns))
    if form == "jsonl":
        return "\n".join(as_json_line(item) for item in documents(rows, columns))
    if form == "yaml":
        return as_yaml(documents(rows, columns))
    if form in ("csv", "tsv"):
        return as_csv(rows, columns, delimiter="," if form == "csv" else "\t")
    if form == "names":
        return "\n".join(str(columns[0].value(row)) for row in rows)
    assert form == "md", form
    cells = [[column.cell(row) for column in columns] for row in rows]
    return as_markdown([column.title for column in columns], cells, title)


REST = "rest"
"""The column of what has none."""


def document_rows(value: object, form: str) -> str:
    """A document in a format of rows.

    A list has a row for each item and a column for each key that one of them has; of anything else
    each value is a row, with the way to it as its name (`state.messages`).
    """
    document = plain(value)
    if isinstance(document, list):
        records = [dict(_leaves(one)) for one in document]
        keys = list(dict.fromkeys(key for record in records for key in record))
    else:
        records = [{"name": name, "value": item} for name, item in _leaves(document)]
        keys = ["name", "value"]
    return _rows_of(records, keys, form)


def document_row(
    value: object, form: str, keys: Sequence[str] | None, *, varied: bool
) -> tuple[str, Sequence[str]]:
    """The row of a document that comes after others with the columns `keys`, and its columns.

    The first one, of no keys, has headings above it, and its columns are those of all. What other
    documents say besides is JSON in a last column, if they may differ.
    """
    record = dict(_leaves(plain(value)))
    headed = keys is None
    keys = [*record, *([REST] if varied else [])] if keys is None else keys
    others = {key: item for key, item in record.items() if key not in keys}
    assert varied or not others, f"documents that differ: {sorted(others)}"
    if varied:
        record[REST] = as_json_line(others) if others else ""
    text = _rows_of([record], keys, form)
    above = {"csv": 1, "tsv": 1, "md": 2}.get(form, 0)
    return text if headed else "\n".join(text.split("\n")[above:]), keys


def _rows_of(records: Sequence[dict[str, object]], keys: Sequence[str], form: str) -> str:
    columns = [_of_key(key or "value") for key in keys]
    rows = [{key or "value": item for key, item in record.items()} for record in records]
    return render_rows(rows, columns, form) if columns else ""


def _of_key(key: str) -> "Column[dict[str, object]]":
    def shown(row: dict[str, object]) -> object:
        value = row.get(key)
        return "" if value is None else _flat(value)

    return Column(key, key, shown)


def _leaves(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """What a document says, by the way there; lists of plain values stay together."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        for at, item in enumerate(value):
            yield from _leaves(item, f"{name}.{at}" if name else str(at))
    else:
        yield name, value
