"""What operators ask of the cluster from the system account."""

from jsctl.api.codec import dumps
from jsctl.api.errors import api_error
from jsctl.api.requests import MetaServerEvacuateRequest, MetaServerRemoveRequest
from jsctl.api.responses import AccountPurgeResponse
from jsctl.broker.handlers import placing
from jsctl.broker.handlers.answers import head, is_empty, parsed, success
from jsctl.broker.handlers.decisions import (
    Decision,
    ProposeMeta,
    RemoveMetaPeer,
    StepDown,
)
from jsctl.broker.handlers.stream_groups import candidates, require_cluster, without_peer
from jsctl.broker.handlers.view import View
from jsctl.broker.jetstream.meta.assignments import StreamAssignment
from jsctl.broker.jetstream.meta.entries import (
    AssetEntry,
    assign_stream,
    remove_server,
    remove_stream,
)
from jsctl.broker.jetstream.meta.loads import Loads
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.dataclass import replace

META_GROUP = "_meta_"


def step_down(view: View, request: ApiRequest, _: tuple[str, ...]) -> Decision:
    """META.LEADER.STEPDOWN"""
    require_cluster(view)
    best = candidates(view, request, view.me, view.servers())
    return StepDown(META_GROUP, best, success("meta_leader_stepdown"))


def remove(view: View, request: ApiRequest, _: tuple[str, ...]) -> Decision:
    """SERVER.REMOVE: the server leaves the cluster, its replicas go elsewhere."""
    require_cluster(view)
    if is_empty(request):
        raise api_error("JSBadRequestErr")
    body = parsed(MetaServerRemoveRequest, request)
    peer = _server(view, body.peer, body.peer_id)
    _require_majority_without(view, peer)
    entries, planned = list[bytes](), view.meta.loads()
    for made in view.meta.assets():
        if isinstance(made, StreamAssignment) and peer in made.group.members:
            entries += _planned(view, planned, _reassigned(view, made, peer, planned))
    # Last of all: if only some of this is decided, as a leader dies, it may be asked for again.
    entries.append(remove_server(peer))
    return RemoveMetaPeer(peer, entries, success("meta_server_remove"))


def _require_majority_without(view: View, peer: str) -> None:
    """Raises ApiError when the servers that would remain could not decide anything: the one that
    goes would be gone, and the cluster could not even let it go."""
    group = view.group(META_GROUP)
    online = {one.peer for one in view.servers() if one.online}
    if group is None or peer not in online:
        return  # Nothing can be decided with it that cannot be without.
    rest = [one for one in group.replicas if one.peer not in (peer, view.me)]
    away = [one.name for one in rest if one.peer not in online]
    count = len(rest) + (peer != view.me)
    if count - len(away) <= count // 2:
        text = f"no majority would be left, start {', '.join(sorted(away))} first"
        raise api_error("JSClusterNoPeersErrF", err=text)


def evacuate(view: View, request: ApiRequest, _: tuple[str, ...]) -> Decision:
    """SERVER.EVACUATE: all replicas of a server go elsewhere, or none."""
    require_cluster(view)
    if is_empty(request):
        raise api_error("JSBadRequestErr")
    body = parsed(MetaServerEvacuateRequest, request)
    peer = _server(view, body.peer, body.peer_id)
    entries, planned = list[bytes](), view.meta.loads()
    for made in view.meta.assets():
        if not isinstance(made, StreamAssignment) or peer not in made.group.peers:
            continue
        elsewhere = without_peer(view, made, peer, planned)
        if elsewhere is None:
            raise api_error("JSPeerRemapErr")
        excluded = (*elsewhere.group.excluded, peer)
        elsewhere = replace(elsewhere, group=replace(elsewhere.group, excluded=excluded))
        some = [assign_stream(elsewhere), *placing.follow(view, elsewhere)]
        entries += _planned(view, planned, some)
    return ProposeMeta(entries, success("meta_server_evacuate"))


def _server(view: View, name: str, peer_id: str) -> str:
    known = {one.peer: one.name for one in view.meta.servers.values() if not one.removed}
    known.update({one.peer: one.name for one in view.servers()})
    for peer, server_name in known.items():
        if peer_id == peer or (not peer_id and name in (server_name, peer)):
            return peer
    raise api_error("JSClusterServerNotMemberErr")


def _planned(view: View, planned: Loads, entries: list[bytes]) -> list[bytes]:
    """These entries; what is placed next is placed beside what they assign."""
    for entry in entries:
        made = entry.made if isinstance(entry, AssetEntry) else None
        if isinstance(made, StreamAssignment):
            planned.change(view.meta.stream(made.account, made.name), made)
        elif made is not None:
            planned.change(view.meta.consumer(made.account, made.stream, made.name), made)
    return entries


def _reassigned(view: View, made: StreamAssignment, peer: str, planned: Loads) -> list[bytes]:
    """The stream without a server that is gone: elsewhere, or with fewer replicas for now.

    A stream whose only replica was there stays as it is, offline: nobody else has its data, and
    an empty stream of the same name would hide that.
    """
    rest = tuple(one for one in made.group.peers if one != peer)
    if not rest:
        return []
    replaced = without_peer(view, made, peer, planned)
    if replaced is None:
        group = placing.regrouped(view, made.group, rest)
        replaced = replace(made, group=group, request=None)
    return [assign_stream(replaced), *placing.follow(view, replaced, gone=peer)]


def purge_account(view: View, _: ApiRequest, names: tuple[str, ...]) -> Decision:
    """ACCOUNT.PURGE.<account>: all streams of an account are deleted, whatever the body says."""
    account = names[0]
    if "/" in account or "\\" in account:
        text = "account name can not contain path separators"
        raise api_error("JSStreamGeneralErrorF", err=text)
    entries = [remove_stream(account, name) for name in view.meta.streams(account)]
    response = AccountPurgeResponse(head=head("account_purge"), initiated=True)
    return ProposeMeta(entries, dumps(response))
