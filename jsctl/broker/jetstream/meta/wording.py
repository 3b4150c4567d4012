"""The applied meta state as JSON, a portion at a time."""

import json
from collections.abc import Iterator, Mapping, Sequence

from jsctl.broker.jetstream.meta.assignments import (
    StreamAssignment,
    consumer_document,
    stream_document,
)
from jsctl.broker.jetstream.meta.entries import Assignment, Document

WORDED_AT_ONCE = 128
"""Assets in a portion, about 2 ms of work."""


def worded(facts: Document, assets: Mapping[str, Sequence[Assignment]]) -> Iterator[bytes]:
    """A document with some facts, and with lists of assets behind them."""
    text = _json(facts).removesuffix("}")
    for name, made in assets.items():
        text += f',"{name}":['
        for at in range(0, len(made), WORDED_AT_ONCE):
            some = [_document(one) for one in made[at : at + WORDED_AT_ONCE]]
            comma = "," if at else ""
            yield (text + comma + _json(some)[1:-1]).encode()
            text = ""
        text += "]"
    yield (text + "}").encode()


def _document(made: Assignment) -> Document:
    return stream_document(made) if isinstance(made, StreamAssignment) else consumer_document(made)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
