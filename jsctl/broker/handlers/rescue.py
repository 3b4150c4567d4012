"""META.RESCUE and STREAM.RESCUE: operators say that less than a majority is enough for a while.

Every server hears these requests, and each answers for what it has itself.
"""

from jsctl.api.codec import dumps
from jsctl.api.errors import ApiError, api_error
from jsctl.api.requests import MetaRescueRequest, StreamRescueRequest
from jsctl.api.responses import MetaRescueResponse, StreamRescueResponse
from jsctl.broker.handlers.answers import head, is_empty, parsed
from jsctl.broker.handlers.decisions import Decision, Reply, Rescue, Silent
from jsctl.broker.handlers.streams import existing
from jsctl.broker.handlers.view import View
from jsctl.broker.jetstream.requests import ApiRequest

META_GROUP = "_meta_"


def meta(view: View, request: ApiRequest, _: tuple[str, ...]) -> Decision:
    """META.RESCUE: so many servers are to be enough for the meta group."""
    if view.group(META_GROUP) is None:
        return Silent()
    try:
        if is_empty(request):
            raise api_error("JSBadRequestErr")
        body = parsed(MetaRescueRequest, request)
    except ApiError as error:
        refused = head("meta_rescue", error)
        return Reply(dumps(MetaRescueResponse(head=refused, server=view.server_name)))
    return Rescue("meta_rescue", META_GROUP, (), body.quorum_needed)


def stream(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.RESCUE.<stream>: so many of its replicas are to be enough, for its consumers as well.

    Without a quorum: what this server's replica has, and what it knows of the others.
    """
    body = parsed(StreamRescueRequest, request)
    found = existing(view, request.account, names[0])
    replica, group = view.stream(request.account, found.name), view.group(found.group.name)
    if replica is None or group is None or body.server not in ("", view.server_name, view.me):
        return Silent()
    if body.quorum_needed:
        consumers = view.meta.consumers(request.account, found.name).values()
        groups = tuple(one.group.name for one in consumers)
        return Rescue("stream_rescue", found.group.name, groups, body.quorum_needed)
    state = replica.store.state()
    response = StreamRescueResponse(
        head=head("stream_rescue"),
        server=view.server_name,
        leader=group.leader if group.is_leader or group.leader != view.server_name else "",
        whole=group.is_whole,
        log_index=group.log_index,
        messages=state.messages,
        last_seq=state.last_seq,
        lost=sum(last + 1 - first for first, last in state.lost),
        peers=tuple(
            view.server_name if peer == view.me else name
            for peer, name in ((one.peer, one.name) for one in group.replicas)
        ),
        offline=tuple(one.name for one in group.replicas if one.offline),
    )
    return Reply(dumps(response))
