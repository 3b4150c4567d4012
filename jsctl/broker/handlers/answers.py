"""Bodies of requests and answers: the few lines that all handlers share."""

import re
from collections.abc import Callable
from typing import TypeVar

from jsctl.api.cluster import (
    ClusterInfo,
    DesiredClusterInfo,
    DesiredOrigin,
    DesiredStatus,
    PeerInfo,
)
from jsctl.api.codec import DecodeError, dumps, loads
from jsctl.api.errors import ApiError, api_error
from jsctl.api.responses import ApiResponse, SuccessResponse
from jsctl.api.times import format_time
from jsctl.broker.handlers.decisions import Decision
from jsctl.broker.handlers.told.words import cluster_text, leader_text
from jsctl.broker.handlers.view import GroupView, PeerView, View
from jsctl.broker.jetstream.api_levels import level_exceeded
from jsctl.broker.jetstream.meta.assignments import GroupAssignment
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.options import COMPATIBLE_API_LEVEL, COMPATIBLE_VERSION
from jsctl.dataclass import replace

T = TypeVar("T")
_LEVEL_KEY = "_nats.level"
_VERSION_KEY = "_nats.ver"
SHOWN_KEYS = (_LEVEL_KEY, _VERSION_KEY)
"""Metadata that is only in answers."""
_EMPTY = re.compile(rb"[ \t\r\n]*\{[ \t\r\n]*\}[ \t\r\n]*")
Handler = Callable[[View, ApiRequest, tuple[str, ...]], Decision]
"""`handler(view, request, names)`; names are the parameters in the subject. Raises ApiError."""


def head(kind: str, error: ApiError | None = None) -> ApiResponse:
    """What every answer starts with; `kind` e.g. `stream_create`."""
    body = None if error is None else error.body()
    return ApiResponse(type=kind_type(kind), error=body)


def kind_type(kind: str) -> str:
    """The type that an answer of a kind names."""
    return f"io.nats.jetstream.api.v1.{kind}_response"


def success(kind: str) -> bytes:
    """An answer that says no more than that it worked."""
    return dumps(SuccessResponse(head=head(kind), success=True))


def parsed(cls: type[T], request: ApiRequest) -> T:
    """The request's body. Raises ApiError for what the real server refuses too."""
    try:
        return loads(cls, request.payload, strict=True)
    except DecodeError as error:
        raise api_error("JSInvalidJSONErr", err=error) from None


def parsed_maybe(cls: type[T], request: ApiRequest) -> T:
    """The same for requests that need no body: what is no object or array counts as none."""
    begins = request.payload.lstrip()[:1]
    return parsed(cls, request) if begins in (b"{", b"[") else cls()


def check_level(request: ApiRequest) -> None:
    """Raises ApiError if a request needs an API level that this server does not have."""
    if level_exceeded(request.headers):
        raise api_error("JSRequiredApiLevelErr")


def is_empty(request: ApiRequest) -> bool:
    """Whether a request has no body, or an empty object."""
    return not request.payload or _EMPTY.fullmatch(request.payload) is not None


def expect_empty(request: ApiRequest) -> None:
    """Raises ApiError if the request has a body other than an empty object."""
    if not is_empty(request):
        raise api_error("JSNotEmptyRequestErr")


def shown_metadata(metadata: dict[str, str]) -> dict[str, str]:
    """Metadata as answers show it: with version and API level of this server."""
    level = str(COMPATIBLE_API_LEVEL)
    return {**metadata, _LEVEL_KEY: level, _VERSION_KEY: COMPATIBLE_VERSION}


def peer_info(peer: PeerView) -> PeerInfo:
    """A replica as clients see it."""
    return PeerInfo(
        name=peer.name,
        current=peer.current,
        offline=peer.offline,
        active=peer.active_ns,
        lag=peer.lag,
        peer=peer.peer,
        pending=peer.pending,
    )


def cluster_info(view: View, assignment: GroupAssignment) -> ClusterInfo | None:
    """The group of a stream or consumer as this server sees it."""
    group = view.group(assignment.name)
    if group is None:
        return None
    if not view.clustered:
        return ClusterInfo(leader=group.leader)
    info = ClusterInfo(name=group.cluster, leader=group.leader)
    if len(assignment.members) > 1:
        info = replace(
            info,
            raft_group=group.name,
            leader_since=format_time(group.leader_since_ns) if group.leader else "",
            system_account=True,  # whatever its name is
            traffic_account=group.traffic_account,
            replicas=tuple(peer_info(peer) for peer in group.replicas),
        )
    if not assignment.settled:
        info = replace(info, desired=_desired(view, assignment, group))
    return info


def group_text(view: View, assignment: GroupAssignment) -> str:
    """The member of an info that tells the same."""
    info = cluster_info(view, assignment)
    if info is not None and not info.raft_group and info.desired is None:
        return leader_text(info.name, info.leader)
    return cluster_text(info)


def _desired(view: View, assignment: GroupAssignment, group: GroupView) -> DesiredClusterInfo:
    known = {peer.peer: peer for peer in group.replicas}
    names = {server.peer: server.name for server in view.servers()}
    peers = tuple(
        peer_info(known[peer])
        if peer in known
        else PeerInfo(name=names.get(peer, peer), peer=peer, current=peer == view.me)
        for peer in assignment.peers
    )
    origin = assignment.origin
    shown = None
    if origin is not None:
        shown = DesiredOrigin(replicas=origin.replicas, placement=origin.placement)
    missing = [names.get(peer, peer) for peer in assignment.peers if _absent(view, known, peer)]
    text = f"adding peer {missing[0]}" if missing else "waiting for membership change to commit"
    return DesiredClusterInfo(
        name=assignment.cluster,
        replicas=peers,
        origin=shown,
        status=DesiredStatus(type="membership", description=text),
    )


def _absent(view: View, known: dict[str, PeerView], peer: str) -> bool:
    if peer == view.me:
        return False
    return peer not in known or known[peer].pending
