"""What the meta log holds: JSON objects with an `op`, made here and read here.

Keys of assets are (account, stream, consumer), the consumer empty for streams.
"""

import json
from collections.abc import Iterable
from dataclasses import replace

from jsctl.api.jsontext import parse_object
from jsctl.broker.errors import ProtocolError
from jsctl.broker.jetstream.config_texts import CONSUMERS, STREAMS
from jsctl.broker.jetstream.meta.assignments import (
    ConsumerAssignment,
    GroupAssignment,
    StreamAssignment,
    common_document,
    consumer_document,
    consumer_from,
    stream_document,
    stream_from,
)
from jsctl.dataclass import dataclass

Key = tuple[str, str, str]
Assignment = StreamAssignment | ConsumerAssignment
Document = dict[str, object]
_ENCODER = json.JSONEncoder(separators=(",", ":"))
"""Made once: the library makes one for each call that wants other separators than its own."""
OPS = frozenset(("stream", "consumer", "restored", "remove", "settle", "server", "remove_server"))
"""All that an entry may be."""


@dataclass(frozen=True, slots=True)
class MetaServer:
    """A server that is or was part of the JetStream cluster."""

    peer: str
    name: str
    incarnation: int
    cluster: str = ""
    removed: bool = False


def _entry(op: str, **values: object) -> bytes:
    return _ENCODER.encode({"op": op, **values}).encode()


class AssetEntry(bytes):
    """An entry together with the assignment in it, which who proposes it need not read from it."""

    made: Assignment

    @classmethod
    def of(cls, op: str, document: Document, config: bytes, made: Assignment) -> "AssetEntry":
        """The entry of an assignment, which `document` is but for its config."""
        entry = cls(b'%s,"config":%s}}' % (_entry(op, assignment=document)[:-2], config))
        entry.made = made
        return entry


def assign_stream(made: StreamAssignment) -> bytes:
    """Create a stream, or replace its assignment; its consumers stay."""
    return AssetEntry.of("stream", common_document(made), STREAMS.text(made.config), made)


def assign_restored(made: StreamAssignment, consumers: Iterable[ConsumerAssignment]) -> bytes:
    """Create a stream with its consumers, all or nothing. Ignored where there is such a stream."""
    told = list(map(consumer_document, consumers))
    return _entry("restored", stream=stream_document(made), consumers=told)


def remove_stream(account: str, name: str) -> bytes:
    """Delete a stream with all its consumers."""
    return _entry("remove", key=[account, name, ""])


def assign_consumer(made: ConsumerAssignment) -> bytes:
    """Create a consumer, or replace its assignment."""
    document = {**common_document(made), "stream": made.stream}
    return AssetEntry.of("consumer", document, CONSUMERS.text(made.config), made)


def remove_consumer(account: str, stream: str, name: str, group: str = "") -> bytes:
    """Delete a consumer; with a group only the one that has it, not a later one of the name."""
    named = {"group": group} if group else {}
    return _entry("remove", key=[account, stream, name], **named)


def is_meant(made: Assignment, document: Document) -> bool:
    """Whether a `remove` entry is about what has its key now."""
    return document.get("group", made.group.name) == made.group.name


def settle_group(made: Assignment, peers: Iterable[str] | None = None) -> bytes:
    """The group is where it was to be: former peers may drop it.

    Ignored if the group was sent elsewhere meanwhile. `peers` replaces the target, for a
    group whose leader chose whom to keep.
    """
    chosen = None if peers is None else list(peers)
    group, key = made.group, list(key_of(made))
    return _entry("settle", key=key, group=group.name, peers=chosen, since=group.since)


def add_server(server: MetaServer) -> bytes:
    """A server joined, or came back as another incarnation."""
    return _entry(
        "server",
        peer=server.peer,
        name=server.name,
        incarnation=server.incarnation,
        cluster=server.cluster,
    )


def remove_server(peer: str) -> bytes:
    """An operator removed a server; assets on it are reassigned by entries of their own."""
    return _entry("remove_server", peer=peer)


def check_entry(entry: bytes) -> None:
    """Whether `apply` can do something with an entry that a peer made. Raises ProtocolError."""
    try:
        document = parse_object(entry)
        op = str(document["op"])
        if op in ("stream", "consumer"):
            assignment_from(document)
        elif op == "restored":
            restored_from(document)
        elif op in ("remove", "settle"):
            key_from(document)
        elif op not in OPS or not isinstance(document["peer"], str):
            raise KeyError(op)
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"meta entry: {error!r}") from error


def key_of(made: Assignment) -> Key:
    """Where an assignment is filed."""
    if isinstance(made, StreamAssignment):
        return (made.account, made.name, "")
    return (made.account, made.stream, made.name)


def key_from(document: Document) -> Key:
    """The key that an entry names."""
    key = document["key"]
    assert isinstance(key, list)
    account, stream, consumer = key
    return (account, stream, consumer)


def restored_from(document: Document) -> list[Assignment]:
    """A stream and its consumers, as a `restored` entry holds them."""
    consumers = document["consumers"]
    assert isinstance(consumers, list)
    return [stream_from(document["stream"]), *map(consumer_from, consumers)]


def assignment_from(document: Document) -> Assignment:
    """The assignment that an entry holds."""
    decoder = stream_from if document["op"] == "stream" else consumer_from
    return decoder(document["assignment"])


def settled_by(group: GroupAssignment, document: Document) -> GroupAssignment | None:
    """What a `settle` entry makes of a group; None if it is not about it as it is."""
    peers = document["peers"]
    if group.name != document["group"] or group.since != document["since"]:
        return None
    kept = group.peers
    if peers is not None:
        assert isinstance(peers, list)
        kept = tuple(peers)
    excluded = group.excluded if len(kept) < len(group.peers) else ()
    settled = replace(
        group,
        peers=kept,
        former=(),
        moving=False,
        origin=None,
        excluded=excluded,
        founders=tuple(peer for peer in group.founders if peer in kept),
    )
    return None if settled == group else settled
