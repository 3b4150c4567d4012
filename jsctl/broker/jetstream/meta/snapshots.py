"""The state of the meta group as it is written down: JSON."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from jsctl.api.jsontext import OWN_BYTES_MAX, parse_object
from jsctl.broker.jetstream.meta.applied import Applied
from jsctl.broker.jetstream.meta.assignments import (
    consumer_document,
    consumer_from,
    stream_document,
    stream_from,
)
from jsctl.broker.jetstream.meta.entries import MetaServer

_K = TypeVar("_K", str, tuple[str, str])
_V = TypeVar("_V")


def encode_state(state: Applied, applied: int) -> bytes:
    """What is there, and the index of the last entry that is in it."""
    document = {
        "applied": applied,
        "servers": [
            [one.peer, one.name, one.incarnation, one.cluster, one.removed]
            for one in state.servers.values()
        ],
        "streams": [stream_document(made) for made in _flat(state.streams)],
        "consumers": [consumer_document(made) for made in _flat(state.consumers)],
    }
    return json.dumps(document, separators=(",", ":")).encode()


def decode_state(snapshot: bytes) -> tuple[Applied, int]:
    """The state that was written, and the index of its last entry."""
    document: dict[str, Any] = parse_object(snapshot, bytes_max=OWN_BYTES_MAX)
    state = Applied([MetaServer(*item) for item in document["servers"]])
    for made in document["streams"]:
        state.put(stream_from(made))
    for made in document["consumers"]:
        state.put(consumer_from(made))
    return state, document["applied"]


def _flat(nested: Mapping[_K, Mapping[str, _V]]) -> list[_V]:
    return [made for _, inner in sorted(nested.items()) for _, made in sorted(inner.items())]
