"""The state of the meta group as it is written down: JSON, asset by asset.

Whoever writes thousands of assets does it in another thread than the server's: what is written
does not change any more, and between two of them others go on.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from jsctl.api.jsontext import OWN_BYTES_MAX, parse_object
from jsctl.broker.jetstream.meta.applied import Applied
from jsctl.broker.jetstream.meta.assignments import (
    ConsumerAssignment,
    StreamAssignment,
    consumer_document,
    consumer_from,
    stream_document,
    stream_from,
)
from jsctl.broker.jetstream.meta.entries import Document, MetaServer
from jsctl.dataclass import dataclass

_K = TypeVar("_K", str, tuple[str, str])
_V = TypeVar("_V")
_ENCODER = json.JSONEncoder(separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class MetaSnapshot:
    """Of one moment, whatever is applied afterwards."""

    applied: int
    """Index of the last entry that is in it."""
    servers: list[MetaServer]
    streams: list[StreamAssignment]
    consumers: list[ConsumerAssignment]

    @staticmethod
    def of(state: Applied, applied: int) -> "MetaSnapshot":
        """What is there now."""
        servers = list(state.servers.values())
        return MetaSnapshot(applied, servers, _flat(state.streams), _flat(state.consumers))

    def encode(self) -> bytes:
        """As JSON. Takes its time, and may be called in any thread."""
        servers = [
            [one.peer, one.name, one.incarnation, one.cluster, one.removed] for one in self.servers
        ]
        parts = [
            f'{{"applied":{self.applied},"servers":{_ENCODER.encode(servers)},"streams":[',
            ",".join(_texts(map(stream_document, self.streams))),
            '],"consumers":[',
            ",".join(_texts(map(consumer_document, self.consumers))),
            "]}",
        ]
        return "".join(parts).encode()


def decode_state(snapshot: bytes) -> tuple[Applied, int]:
    """The state that was written, and the index of its last entry."""
    document: dict[str, Any] = parse_object(snapshot, bytes_max=OWN_BYTES_MAX)
    state = Applied([MetaServer(*item) for item in document["servers"]])
    for made in document["streams"]:
        state.put(stream_from(made))
    for made in document["consumers"]:
        state.put(consumer_from(made))
    return state, document["applied"]


def _texts(documents: Iterator[Document]) -> Iterator[str]:
    # One call for each: the interpreter lets other threads go on between two only.
    return map(_ENCODER.encode, documents)


def _flat(nested: Mapping[_K, Mapping[str, _V]]) -> list[_V]:
    return [made for _, inner in sorted(nested.items()) for _, made in sorted(inner.items())]
