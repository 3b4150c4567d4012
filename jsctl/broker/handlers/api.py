"""The table of `$JS.API`: who answers a request, with which handler, and how a refusal looks.

`$JS.API.CONSUMER.>` has a table of its own in `consumers`; both are reached through here.
`CONSUMER.MSG.NEXT` and `DIRECT.GET` are not in it: those subjects are ordinary interest of the
servers that serve them.
"""

from jsctl.api.codec import dumps
from jsctl.api.errors import ApiError, api_error
from jsctl.api.responses import (
    AccountInfoResponse,
    AccountPurgeResponse,
    ConsumerInfoResponse,
    ConsumerNamesResponse,
    ConsumerPauseResponse,
    MetaRescueResponse,
    MsgGetResponse,
    StreamCreateResponse,
    StreamInfoResponse,
    StreamListResponse,
    StreamNamesResponse,
    StreamPurgeResponse,
    StreamRescueResponse,
    StreamRestoreResponse,
    StreamSnapshotResponse,
    SuccessResponse,
)
from jsctl.api.subjects import ApiCall, parse_api
from jsctl.broker.handlers import (
    account,
    archives,
    consumers,
    lists,
    meta,
    reports,
    rescue,
    sourcing_consumers,
    stream_groups,
    stream_messages,
    streams,
)
from jsctl.broker.handlers.answers import Handler, check_level, head
from jsctl.broker.handlers.consumer_info import ConsumersView
from jsctl.broker.handlers.decisions import Decider, Decision, Reply, Silent
from jsctl.broker.handlers.view import View
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.dataclass import dataclass

_META, _STREAM = Decider.META_LEADER, Decider.STREAM_LEADER


@dataclass(frozen=True, slots=True)
class Route:
    """One operation: the type of its answer, who answers, and the handler."""

    kind: str
    target: Decider
    handler: Handler | None
    """None: `consumers` has it."""
    system: bool = False
    """Only the system account is answered."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A request's route and the parameters of its subject."""

    route: Route
    call: ApiCall


ROUTES: dict[str, Route] = {
    "account_info": Route("account_info", _META, account.info),
    "stream_create": Route("stream_create", _META, streams.create),
    "stream_update": Route("stream_update", _META, streams.update),
    "stream_delete": Route("stream_delete", _META, streams.delete),
    "stream_info": Route("stream_info", _STREAM, streams.info),
    "stream_names": Route("stream_names", _META, lists.names),
    "stream_list": Route("stream_list", _META, lists.infos),
    "stream_purge": Route("stream_purge", _STREAM, stream_messages.purge),
    "stream_check": Route("stream_check", _STREAM, reports.check),
    "stream_audit": Route("stream_audit", _STREAM, reports.audit),
    "stream_verify": Route("stream_verify", _STREAM, reports.verify),
    "stream_head": Route("stream_head", _STREAM, reports.head_of),
    "stream_schedules": Route("stream_schedules", _STREAM, reports.schedules),
    "stream_msg_get": Route("stream_msg_get", _STREAM, stream_messages.get),
    "stream_msg_delete": Route("stream_msg_delete", _STREAM, stream_messages.delete),
    "stream_snapshot": Route("stream_snapshot", _STREAM, archives.snapshot),
    "stream_restore": Route("stream_restore", _META, archives.restore),
    "stream_leader_stepdown": Route("stream_leader_stepdown", _STREAM, stream_groups.step_down),
    "stream_remove_peer": Route("stream_remove_peer", _META, stream_groups.remove_peer),
    "stream_evacuate_peer": Route("stream_evacuate_peer", _META, stream_groups.evacuate_peer),
    "stream_cancel_move": Route("stream_cancel_move", _META, stream_groups.cancel_move),
    "meta_leader_stepdown": Route("meta_leader_stepdown", _META, meta.step_down, system=True),
    "meta_rescue": Route("meta_rescue", Decider.EVERY_SERVER, rescue.meta, system=True),
    "stream_rescue": Route("stream_rescue", Decider.EVERY_SERVER, rescue.stream),
    "meta_server_remove": Route("meta_server_remove", _META, meta.remove, system=True),
    "meta_server_evacuate": Route("meta_server_evacuate", _META, meta.evacuate, system=True),
    "account_purge": Route("account_purge", _META, meta.purge_account, system=True),
    "account_stream_move": Route("stream_update", _META, stream_groups.move, system=True),
    "account_stream_cancel_move": Route(
        "stream_cancel_move", _META, stream_groups.cancel_account_move, system=True
    ),
    **{
        operation: Route(kind, target, None)
        for operation, (kind, target, _) in consumers.HANDLERS.items()
    },
}
"""Operation of `jsctl.api.subjects` -> route."""

QUESTIONS = frozenset(
    {
        "account_info",
        "consumer_info",
        "consumer_list",
        "consumer_names",
        "stream_head",
        "stream_info",
        "stream_list",
        "stream_msg_get",
        "stream_names",
        "stream_schedules",
    }
)
"""Operations that change nothing."""
INTERNAL = {
    archives.INSTALL: Resolved(
        Route("stream_restore", _META, archives.install), ApiCall("stream_install")
    )
}
"""What servers ask of each other, by subject; no client can."""
_RESPONSES: dict[str, type] = {
    "account_info": AccountInfoResponse,
    "account_purge": AccountPurgeResponse,
    "consumer_create": ConsumerInfoResponse,
    "consumer_info": ConsumerInfoResponse,
    "consumer_list": ConsumerNamesResponse,
    "consumer_names": ConsumerNamesResponse,
    "consumer_pause": ConsumerPauseResponse,
    "consumer_reset": ConsumerInfoResponse,
    "stream_cancel_move": StreamCreateResponse,
    "meta_rescue": MetaRescueResponse,
    "stream_rescue": StreamRescueResponse,
    "stream_create": StreamCreateResponse,
    "stream_info": StreamInfoResponse,
    "stream_msg_get": MsgGetResponse,
    "stream_names": StreamNamesResponse,
    "stream_purge": StreamPurgeResponse,
    "stream_restore": StreamRestoreResponse,
    "stream_snapshot": StreamSnapshotResponse,
    "stream_update": StreamCreateResponse,
}
"""Types of answers that have more than `success`."""


def resolve(subject: bytes) -> Resolved | None:
    """The route of a `$JS.API` subject; None: nobody answers it."""
    call = parse_api(subject)
    if call is None:
        return INTERNAL.get(subject)
    route = ROUTES.get(call.operation)
    return None if route is None else Resolved(route, call)


def decider(view: View, request: ApiRequest, resolved: Resolved) -> Decider:
    """Who decides on a request: mostly its route says so."""
    call = resolved.call
    if call.operation == "consumer_create" and sourcing_consumers.asks_leader(
        view, request, call.stream
    ):
        return Decider.STREAM_LEADER
    return resolved.route.target


def refusal(route: Route, error: ApiError) -> bytes:
    """An error as the route's answer; fields that are never left out have their zero values."""
    if route.kind == "stream_list":
        return dumps(StreamListResponse(head=head(route.kind, error), streams=()))
    response = _RESPONSES.get(route.kind, SuccessResponse)
    return dumps(response(head=head(route.kind, error)))


def unavailable(view: View, request: ApiRequest, resolved: Resolved) -> bytes:
    """The answer to a request that nobody decides on: all who could are offline, or will come."""
    route, call, word = resolved.route, resolved.call, "JSClusterNotAvailErr"
    stream = view.meta.stream(request.account, call.stream)
    consumer = view.meta.consumers(request.account, call.stream).get(call.consumer)
    online = {view.me, *(one.peer for one in view.servers() if one.online)}
    if route.target is Decider.CONSUMER_LEADER and consumer is not None:
        if online.isdisjoint(consumer.group.peers):
            word = "JSConsumerOfflineErr"
    elif route.target is _STREAM and stream is not None and online.isdisjoint(stream.group.peers):
        word = "JSStreamOfflineErr"
    return refusal(route, api_error(word))


def answer(view: ConsumersView, request: ApiRequest, resolved: Resolved) -> Decision:
    """Decide on a request that this server has to answer."""
    route, call = resolved.route, resolved.call
    if route.system and not request.system:
        return Silent()
    try:
        _check_common(view, request, route)
        if route.handler is None:
            return consumers.handle(view, request, call)
        names = tuple(name for name in (call.stream, call.consumer) if name)
        return route.handler(view, request, names)
    except ApiError as error:
        return Reply(refusal(route, error))


def _check_common(view: View, request: ApiRequest, route: Route) -> None:
    # Requests about consumers look at it by themselves.
    if route.handler is not None:
        check_level(request)
    if route.system:
        return
    account = view.account(request.account)
    if account is None or not account.enabled:
        raise api_error("JSNotEnabledForAccountErr")
