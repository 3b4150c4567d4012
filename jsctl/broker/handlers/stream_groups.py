"""Who holds and who leads a stream: step-down, peer removal, moves."""

from jsctl.api.cluster import Placement
from jsctl.api.errors import api_error
from jsctl.api.requests import (
    LeaderStepdownRequest,
    MetaServerStreamMoveRequest,
    StreamEvacuatePeerRequest,
    StreamRemovePeerRequest,
)
from jsctl.api.stream import StreamConfig
from jsctl.broker.handlers import placing
from jsctl.broker.handlers.answers import is_empty, parsed, parsed_maybe, success
from jsctl.broker.handlers.decisions import Decision, ProposeMeta, Reply, StepDown
from jsctl.broker.handlers.streams import check_change, existing
from jsctl.broker.handlers.view import View
from jsctl.broker.jetstream.meta.assignments import GroupAssignment, Origin, StreamAssignment
from jsctl.broker.jetstream.meta.entries import assign_stream
from jsctl.broker.jetstream.meta.loads import Loads
from jsctl.broker.jetstream.meta.placement import (
    Placed,
    ServerFacts,
    choose_peers,
    choose_replacement,
)
from jsctl.broker.jetstream.quotas import AccountQuota
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.dataclass import replace


def require_cluster(view: View) -> None:
    """Raises ApiError on a server that is not clustered."""
    if not view.clustered:
        raise api_error("JSClusterRequiredErr")


def candidates(
    view: View, request: ApiRequest, leader: str, members: list[ServerFacts]
) -> list[str]:
    """Peers that may take over, best first. Raises ApiError where the request rules all out."""
    body = parsed_maybe(LeaderStepdownRequest, request)
    asked = body.placement or Placement()
    online = [one for one in members if one.online and one.peer != leader]
    if asked.preferred:
        known = [one for one in members if asked.preferred in (one.name, one.peer)]
        if any(one.peer == leader for one in known):
            text = f'preferred server "{asked.preferred}" is already leader'
            raise api_error("JSClusterNoPeersErrF", err=text)
        if not known:
            text = f'preferred server "{asked.preferred}" not known'
            raise api_error("JSClusterNoPeersErrF", err=text)
        online = [one for one in known if one.online]
    tags = {tag.lower() for tag in asked.tags}
    fitting = [
        one.peer
        for one in online
        if asked.cluster in ("", one.cluster) and tags <= {tag.lower() for tag in one.tags}
    ]
    if not fitting and body.placement is not None:
        raise api_error("JSClusterNoPeersErrF", err="no replacement peer connected")
    return fitting


def step_down(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.LEADER.STEPDOWN.<stream>"""
    require_cluster(view)
    found = existing(view, request.account, names[0])
    servers = [one for one in view.servers() if one.peer in found.group.members]
    leader = view.leader_of(found.group.name)
    if len(found.group.members) == 1:
        return Reply(success("stream_leader_stepdown"))
    best = candidates(view, request, leader, servers)
    return StepDown(found.group.name, best, success("stream_leader_stepdown"))


def member(view: View, group: GroupAssignment, name: str) -> str:
    """The peer of a group that is named, or whose server is. Raises ApiError."""
    for server in view.servers():
        if name in (server.name, server.peer) and server.peer in group.peers:
            return server.peer
    if name in group.peers:
        return name
    raise api_error("JSClusterPeerNotMemberErr")


def remove_peer(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.PEER.REMOVE.<stream>"""
    return _replace_peer(view, request, names, evacuate=False)


def evacuate_peer(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.PEER.EVACUATE.<stream>"""
    return _replace_peer(view, request, names, evacuate=True)


def _replace_peer(
    view: View, request: ApiRequest, names: tuple[str, ...], evacuate: bool
) -> Decision:
    require_cluster(view)
    if is_empty(request):
        raise api_error("JSBadRequestErr")
    asked: type[StreamEvacuatePeerRequest | StreamRemovePeerRequest]
    asked = StreamEvacuatePeerRequest if evacuate else StreamRemovePeerRequest
    body = parsed(asked, request)
    if not body.peer:
        raise api_error("JSBadRequestErr")
    found = existing(view, request.account, names[0])
    peer = member(view, found.group, body.peer)
    made = without_peer(view, found, peer)
    if made is None:
        raise api_error("JSPeerRemapErr")
    if evacuate:
        excluded = (*made.group.excluded, peer)
        made = replace(made, group=replace(made.group, excluded=excluded))
    entries = [assign_stream(made), *placing.follow(view, made)]
    kind = "stream_evacuate_peer" if evacuate else "stream_remove_peer"
    return ProposeMeta(entries, success(kind))


def without_peer(
    view: View, found: StreamAssignment, peer: str, planned: Loads | None = None
) -> StreamAssignment | None:
    """The stream with another server in place of a peer; None if there is no other. `planned`:
    what servers will have by then."""
    outcome = choose_replacement(
        placing.loaded_servers(view, found, planned),
        placing.wanted(view, found.config, found.group.cluster),
        view.jitter,
        peers=found.group.peers,
        removed=peer,
    )
    if not isinstance(outcome, Placed):
        return None
    group = placing.regrouped(view, found.group, outcome.peers)
    return replace(found, group=group, request=None)


def move(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """ACCOUNT.STREAM.MOVE.<account>.<stream>, from the system account."""
    require_cluster(view)
    body = parsed(MetaServerStreamMoveRequest, request)
    quota = _require_account(view, names[0])
    found = existing(view, names[0], names[1])
    if not quota.enabled:
        raise api_error("JSNotEnabledForAccountErr")
    excluded: tuple[str, ...] = ()
    if body.server:
        if not any(body.server in (one.name, one.peer) for one in view.servers()):
            raise api_error("JSClusterServerNotMemberErr")
        excluded = (member(view, found.group, body.server),)
    old = found.config.placement or Placement()
    placement = replace(old, cluster=body.cluster or old.cluster, tags=body.tags or old.tags)
    config = replace(found.config, placement=placement if placement != Placement() else None)
    check_change(view, names[0], config, found)
    group = placing.moved(view, found, config, excluded)
    made = replace(found, config=config, group=group, request=request, revision=found.revision + 1)
    return ProposeMeta([assign_stream(made), *placing.follow(view, made)], None)


def cancel_account_move(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """ACCOUNT.STREAM.CANCEL_MOVE.<account>.<stream>, from the system account."""
    require_cluster(view)
    _require_account(view, names[0])
    return _cancel(view, request, names[0], names[1])


def _require_account(view: View, name: str) -> AccountQuota:
    quota = view.account(name)
    if quota is None:
        raise api_error("JSNoAccountErr")
    return quota


def cancel_move(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.CANCEL_MOVE.<stream>"""
    return _cancel(view, request, request.account, names[0])


def _cancel(view: View, request: ApiRequest, account: str, name: str) -> Decision:
    require_cluster(view)
    found = existing(view, account, name)
    origin = found.group.origin
    if origin is None:
        raise api_error("JSStreamReconfigureNotInProgressErr")
    config = replace(found.config, num_replicas=origin.replicas, placement=origin.placement)
    group = placing.regrouped(view, found.group, _back(view, found, config, origin))
    group = replace(group, cluster=origin.cluster, moving=False)
    made = replace(found, config=config, group=group, request=request, revision=found.revision + 1)
    return ProposeMeta([assign_stream(made), *placing.follow(view, made)], None)


def _back(
    view: View, found: StreamAssignment, config: StreamConfig, origin: Origin
) -> tuple[str, ...]:
    """The peers that a stream has once a move is cancelled: servers that were removed meanwhile are
    replaced, if there are others. Raises ApiError."""
    removed = {one.peer for one in view.meta.servers.values() if one.removed}
    kept = tuple([peer for peer in origin.peers if peer not in removed])
    if kept == origin.peers:
        return kept
    asked = placing.wanted(view, config, origin.cluster)
    servers = placing.loaded_servers(view, found)
    outcome = choose_peers(servers, asked, view.jitter, existing=kept)
    peers = outcome.peers if isinstance(outcome, Placed) else kept
    if not peers:
        raise api_error("JSPeerRemapErr")
    return peers
