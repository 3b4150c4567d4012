"""The applied meta state as JSON, a portion at a time."""

import json
from collections.abc import Iterator, Mapping, Sequence

from jsctl.broker.jetstream.meta.assignments import (
    StreamAssignment,
    consumer_document,
    stream_document,
)
from jsctl.broker.jetstream.meta.entries import Assignment, Document

WORDED_AT_ONCE = 64
"""Assets in a portion, one to four milliseconds of work."""


def worded(facts: Document, assets: Mapping[str, Sequence[Assignment]]) -> Iterator[bytes]:
    """A document with some facts, and with lists of assets behind them."""
    words, count = [_json(facts).removesuffix("}")], 0
    for name, made in assets.items():
        words.append(f',"{name}":[')
        for at, one in enumerate(made):
            if count == WORDED_AT_ONCE:
                yield "".join(words).encode()
                words, count = [], 0
            words += ("," if at else "", _json(_document(one)))
            count += 1
        words.append("]")
    yield "".join([*words, "}"]).encode()


def _document(made: Assignment) -> Document:
    return stream_document(made) if isinstance(made, StreamAssignment) else consumer_document(made)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
