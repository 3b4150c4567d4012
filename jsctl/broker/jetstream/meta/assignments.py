"""What the meta state says about streams and consumers, and its JSON.

Assignments are immutable; an update replaces one. `peers` of a group is where it is going,
`former` are peers that still hold it while it moves.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from operator import attrgetter

from jsctl.api.cluster import Placement
from jsctl.api.codec import decode, encode
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.stream import StreamConfig
from jsctl.broker.jetstream.requests import ApiRequest, AskerClaims, ClientInfo
from jsctl.dataclass import dataclass

UNDATED = -1
"""Stands for the index of an entry that is not applied yet."""

FIRST_REVISION = 1
"""Of what was never changed, nor asked for once more."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a moving group came from, so that the move can be cancelled."""

    peers: tuple[str, ...]
    replicas: int
    cluster: str = ""
    placement: Placement | None = None


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """A raft group: its name, where it is to be and where it still is."""

    name: str
    peers: tuple[str, ...]
    storage: str
    """`file` or `memory`."""
    cluster: str = ""
    preferred: str = ""
    former: tuple[str, ...] = ()
    incarnations: Mapping[str, int] = field(default_factory=dict)
    """Peer -> the life of that server which was given the replica: of its disk, or for what
    only memory holds, of its process."""
    founders: tuple[str, ...] = ()
    """Peers that the group was made with and that have not left it since: they may start with
    an empty log of their own."""
    moving: bool = False
    """A placement move, as opposed to scaling."""
    excluded: tuple[str, ...] = ()
    """Evacuated peers: not chosen again while this group is not whole."""
    origin: Origin | None = None
    since: int = UNDATED
    """Index of the meta log's entry that gave it its present `peers` and `former`."""

    @property
    def settled(self) -> bool:
        """Whether the group is where it is to be."""
        return not self.former and self.origin is None

    @property
    def members(self) -> tuple[str, ...]:
        """Everybody who holds a replica now or is to get one."""
        if not self.former:
            return self.peers
        return (*self.peers, *(peer for peer in self.former if peer not in self.peers))


@dataclass(frozen=True, slots=True)
class ConsumerAssignment:
    """A consumer of a stream and the group that runs it."""

    account: str
    stream: str
    name: str
    config: ConsumerConfig
    group: GroupAssignment
    created_ns: int
    client: ClientInfo
    request: ApiRequest | None
    """Whom the consumer's leader answers when it serves; None if nobody waits."""
    revision: int = FIRST_REVISION


@dataclass(frozen=True, slots=True)
class StreamAssignment:
    """A stream and the group that runs it."""

    account: str
    name: str
    config: StreamConfig
    group: GroupAssignment
    created_ns: int
    client: ClientInfo
    request: ApiRequest | None
    """Whom the stream's leader answers when it serves; None if nobody waits."""
    revision: int = FIRST_REVISION
    """Counts config changes; the stream's own log carries it with each."""


def ends_with_process(made: StreamAssignment | ConsumerAssignment) -> bool:
    """Whether it is gone when its server's process ends, and who made it makes another one."""
    is_ephemeral = isinstance(made, ConsumerAssignment) and not made.config.durable_name
    return is_ephemeral and made.group.storage == "memory" and len(made.group.members) == 1


Document = dict[str, object]
_FACTS: Callable[[ClientInfo], tuple[object, ...]] = attrgetter(*ClientInfo.__slots__)


def _request_document(request: ApiRequest) -> Document:
    return {
        "account": request.account,
        "subject": request.subject.decode("latin-1"),
        "reply": request.reply.decode("latin-1"),
        "headers": request.headers.decode("latin-1"),
        "payload": request.payload.decode("latin-1"),
        "client": _client_document(request.client),
        "entry": request.entry,
        "system": request.system,
    }


def _request_from(document: Mapping[str, object] | None) -> ApiRequest | None:
    if document is None:
        return None
    return ApiRequest(
        account=str(document["account"]),
        subject=str(document["subject"]).encode("latin-1"),
        reply=str(document["reply"]).encode("latin-1"),
        headers=str(document["headers"]).encode("latin-1"),
        payload=str(document["payload"]).encode("latin-1"),
        client=_client_from(document["client"]),
        entry=str(document["entry"]),
        system=bool(document["system"]),
    )


def _client_document(client: ClientInfo) -> Document:
    # What `asdict` makes, without its copies: all values are words and numbers.
    found: Document = dict(zip(ClientInfo.__slots__, _FACTS(client), strict=True))
    if client.claims is None:
        del found["claims"]  # So that others read this which know of none.
    else:
        claims = client.claims
        found["claims"] = {"issuer": claims.issuer, "name": claims.name, "tags": claims.tags}
    return found


def _client_from(document: object) -> ClientInfo:
    assert isinstance(document, dict)
    claims = document.get("claims")
    if claims is None:
        return ClientInfo(**document)
    known = AskerClaims(claims["issuer"], claims["name"], tuple(claims["tags"]))
    return ClientInfo(**{**document, "claims": known})


def _group_document(group: GroupAssignment) -> Document:
    made: Document = {"name": group.name, "peers": list(group.peers), "storage": group.storage}
    made["cluster"] = group.cluster
    made["preferred"] = group.preferred
    made["incarnations"] = dict(sorted(group.incarnations.items()))
    made["founders"] = list(group.founders)
    made["since"] = group.since
    if group.former:
        made["former"] = list(group.former)
    if group.excluded:
        made["excluded"] = list(group.excluded)
    if group.moving:
        made["moving"] = True
    if group.origin is not None:
        origin = group.origin
        placement = None if origin.placement is None else encode(origin.placement)
        made["origin"] = {
            "peers": list(origin.peers),
            "replicas": origin.replicas,
            "cluster": origin.cluster,
            "placement": placement,
        }
    return made


def _origin_from(document: Mapping[str, object] | None) -> Origin | None:
    if document is None:
        return None
    placement = document["placement"]
    replicas = document["replicas"]
    assert isinstance(replicas, int)
    return Origin(
        peers=_strings(document["peers"]),
        replicas=replicas,
        cluster=str(document["cluster"]),
        placement=None if placement is None else decode(Placement, placement),
    )


def _strings(value: object) -> tuple[str, ...]:
    assert isinstance(value, list)
    return tuple(value)


def _group_from(value: object) -> GroupAssignment:
    assert isinstance(value, dict)
    return GroupAssignment(
        name=value["name"],
        peers=tuple(value["peers"]),
        storage=value["storage"],
        cluster=value["cluster"],
        preferred=value["preferred"],
        former=tuple(value.get("former", ())),
        incarnations=value["incarnations"],
        founders=tuple(value["founders"]),
        moving=value.get("moving", False),
        excluded=tuple(value.get("excluded", ())),
        origin=_origin_from(value.get("origin")),
        since=value["since"],
    )


def common_document(made: StreamAssignment | ConsumerAssignment) -> Document:
    """What both kinds have, but for the config."""
    return {
        "account": made.account,
        "name": made.name,
        "group": _group_document(made.group),
        "created": made.created_ns,
        "client": _client_document(made.client),
        "request": None if made.request is None else _request_document(made.request),
        "revision": made.revision,
    }


def stream_document(made: StreamAssignment) -> Document:
    """A stream assignment as JSON values."""
    return {**common_document(made), "config": encode(made.config)}


def consumer_document(made: ConsumerAssignment) -> Document:
    """A consumer assignment as JSON values."""
    return {**common_document(made), "stream": made.stream, "config": encode(made.config)}


def stream_from(value: object) -> StreamAssignment:
    """Inverse of `stream_document`."""
    assert isinstance(value, dict)
    return StreamAssignment(
        account=value["account"],
        name=value["name"],
        config=decode(StreamConfig, value["config"]),
        group=_group_from(value["group"]),
        created_ns=value["created"],
        client=_client_from(value["client"]),
        request=_request_from(value["request"]),
        revision=value["revision"],
    )


def consumer_from(value: object) -> ConsumerAssignment:
    """Inverse of `consumer_document`."""
    assert isinstance(value, dict)
    return ConsumerAssignment(
        account=value["account"],
        stream=value["stream"],
        name=value["name"],
        config=decode(ConsumerConfig, value["config"]),
        group=_group_from(value["group"]),
        created_ns=value["created"],
        client=_client_from(value["client"]),
        request=_request_from(value["request"]),
        revision=value["revision"],
    )
