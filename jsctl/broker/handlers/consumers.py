"""`$JS.API.CONSUMER.>`: requests in, decisions out. MSG.NEXT is not here: it is ordinary
interest of the consumer's leader.

Requests for the consumer's leader are answered with Silent where it is not led, and with an
error anywhere when the stream or consumer does not exist; the node sends such requests to the
meta leader, so that only one server says so.
"""

from collections.abc import Callable

from jsctl.api.codec import dumps
from jsctl.api.errors import ApiError, api_error
from jsctl.api.requests import (
    ConsumerEvacuatePeerRequest,
    ConsumerPauseRequest,
    ConsumerRemovePeerRequest,
    ConsumerResetRequest,
    ConsumersRequest,
    ConsumerUnpinRequest,
)
from jsctl.api.responses import (
    ApiPaged,
    ConsumerInfoResponse,
    ConsumerNamesResponse,
    ConsumerPauseResponse,
    ConsumerResetResponse,
    SuccessResponse,
)
from jsctl.api.subjects import ApiCall
from jsctl.api.times import format_time, parse_time
from jsctl.api.words import DeliverPolicy
from jsctl.broker.handlers import placing, reports
from jsctl.broker.handlers.answers import (
    check_level,
    expect_empty,
    is_empty,
    parsed,
    parsed_maybe,
    success,
)
from jsctl.broker.handlers.consumer_create import create
from jsctl.broker.handlers.consumer_info import (
    ConsumersView,
    head,
    info_response,
    reset_response,
)
from jsctl.broker.handlers.decisions import (
    Decider,
    Decision,
    Gather,
    ProposeGroup,
    ProposeMeta,
    Reply,
    Silent,
    StepDown,
)
from jsctl.broker.handlers.stream_groups import candidates, member, require_cluster
from jsctl.broker.jetstream.consumers.config import GROUP_NAME, with_level
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.entries import encode_reset
from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment
from jsctl.broker.jetstream.meta.entries import assign_consumer, remove_consumer
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.dataclass import replace

NAMES_PER_PAGE = 1024
INFOS_PER_PAGE = 256

Handler = Callable[[ConsumersView, ApiRequest, ApiCall], Decision]


def handle(view: ConsumersView, request: ApiRequest, call: ApiCall) -> Decision:
    """Answer one request of `HANDLERS`."""
    kind, _, handler = HANDLERS[call.operation]
    try:
        if handler not in (create, _info):  # Which look at their bodies before.
            check_level(request)
        return handler(view, request, call)
    except ApiError as error:
        return Reply(_refusal(kind, error))


def _refusal(kind: str, error: ApiError) -> bytes:
    start = head(kind, error)
    if kind in ("consumer_names", "consumer_list"):
        return dumps(ConsumerNamesResponse(head=start, consumers=()))
    if kind == "consumer_pause":
        return dumps(ConsumerPauseResponse(head=start))
    if kind == "consumer_reset":
        return dumps(ConsumerResetResponse(head=start))
    if kind in ("consumer_create", "consumer_info"):
        return dumps(ConsumerInfoResponse(head=start))
    return dumps(SuccessResponse(head=start))


def _assigned(view: ConsumersView, request: ApiRequest, call: ApiCall) -> ConsumerAssignment:
    if view.meta.stream(request.account, call.stream) is None:
        raise api_error("JSStreamNotFoundErr")
    made = view.meta.consumer(request.account, call.stream, call.consumer)
    if made is None:
        raise api_error("JSConsumerNotFoundErr")
    return made


def _led(view: ConsumersView, made: ConsumerAssignment) -> Consumer | None:
    """The consumer, if this server leads it."""
    if view.consumer_leader(made.account, made.stream, made.name) is None:
        return None
    return view.consumer(made.account, made.stream, made.name)


# Answered by the meta leader.


def _delete(view: ConsumersView, request: ApiRequest, call: ApiCall) -> Decision:
    expect_empty(request)
    made = _assigned(view, request, call)
    entry = remove_consumer(made.account, made.stream, made.name)
    reply = dumps(SuccessResponse(head=head("consumer_delete"), success=True))
    return ProposeMeta([entry], reply, [made])


def _names(view: ConsumersView, request: ApiRequest, call: ApiCall) -> Decision:
    names, offset = _page(view, request, call, NAMES_PER_PAGE)
    page = ApiPaged(total=len(names), offset=offset, limit=NAMES_PER_PAGE)
    shown = tuple(names[offset : offset + NAMES_PER_PAGE])
    response = ConsumerNamesResponse(head=head("consumer_names"), page=page, consumers=shown)
    return Reply(dumps(response))


def _list(view: ConsumersView, request: ApiRequest, call: ApiCall) -> Decision:
    names, offset = _page(view, request, call, INFOS_PER_PAGE)
    assets = [(call.stream, name) for name in names[offset : offset + INFOS_PER_PAGE]]
    return Gather(request, assets, total=len(names), offset=offset)


def _page(
    view: ConsumersView, request: ApiRequest, call: ApiCall, limit: int
) -> tuple[list[str], int]:
    asked = parsed_maybe(ConsumersRequest, request)
    if view.meta.stream(request.account, call.stream) is None:
        raise api_error("JSStreamNotFoundErr")
    found = view.meta.consumers(request.account, call.stream)
    names = sorted(name for name, made in found.items() if not made.config.direct)
    return names, min(max(asked.page.offset, 0), len(names))


def _pause(view: ConsumersView, request: ApiRequest, call: ApiCall) -> Decision:
    """The consumer's leader answers, once it holds its deliveries or goes on with them."""
    until_ns = parse_time(parsed_maybe(ConsumerPauseRequest, request).pause_until)
    until = format_time(until_ns) if until_ns else ""
    made = _assigned(view, request, call)
    config = with_level(replace(made.config, pause_until=until))
    changed = replace(made, config=config, request=request, revision=made.revision + 1)
    return ProposeMeta([assign_consumer(changed)], None)


def _remove_peer(view: ConsumersView, request: ApiRequest, call: ApiCall) -> Decision:
    return _replace_peer(view, request, call, "consumer_remove_peer")


def _evacuate_peer(view: ConsumersView, request: ApiRequest, call: ApiCall) -> Decision:
    return _replace_peer(view, request, call, "consumer_evacuate_peer")


def _replace_peer(view: ConsumersView, request: ApiRequest, call: ApiCall, kind: str) -> Decision:
    """Another of the stream's servers has the replica; the stream stays where it is."""
    require_cluster(view)
    if is_empty(request):
        raise api_error("JSBadRequestErr")
    body: type[ConsumerEvacuatePeerRequest | ConsumerRemovePeerRequest] = ConsumerRemovePeerRequest
    if kind == "consumer_evacuate_peer":
        body = ConsumerEvacuatePeerRequest
    asked = parsed(body, request)
    if not asked.peer:
        raise api_error("JSBadRequestErr")
    made = _assigned(view, request, call)
    stream = view.meta.stream(made.account, made.stream)
    assert stream is not None
    peer = member(view, made.group, asked.peer)
    peers = placing.without_peer(view, stream, made, peer)
    if peers is None:
        raise api_error("JSPeerRemapErr")
    group = placing.regrouped(view, made.group, peers)
    return ProposeMeta([assign_consumer(replace(made, group=group, request=None))], success(kind))


# Answered by the consumer's leader.


def _info(view: ConsumersView, request: ApiRequest, call: ApiCall) -> Decision:
    expect_empty(request)
    check_level(request)
    made = _assigned(view, request, call)
    consumer = _led(view, made)
    if consumer is None:
        return Silent()
    leader = view.consumer_leader(made.account, made.stream, made.name)
    return Reply(info_response(view, consumer, leader, view.group(made.group.name)))


def _waiting(view: ConsumersView, request: ApiRequest, call: ApiCall) -> Decision:
    made = _assigned(view, request, call)
    leader = view.consumer_leader(made.account, made.stream, made.name)
    return Silent() if leader is None else reports.waiting(leader, request)


def _unpin(view: ConsumersView, request: ApiRequest, call: ApiCall) -> Decision:
    """Releases the pin at once: whoever waits behind it gets the next messages."""
    group = parsed(ConsumerUnpinRequest, request).group
    if not group:
        raise api_error("JSInvalidJSONErr", err="consumer group not specified")
    if not GROUP_NAME.fullmatch(group):
        raise api_error("JSConsumerInvalidGroupNameErr")
    made = _assigned(view, request, call)
    leader = view.consumer_leader(made.account, made.stream, made.name)
    if leader is None:
        return Silent()
    if group not in made.config.priority_groups:
        raise api_error("JSConsumerInvalidPriorityGroupErr")
    leader.unpin()
    view.wake_consumer(made.account, made.stream, made.name)
    return Reply(dumps(head("consumer_unpin")))


def _reset(view: ConsumersView, request: ApiRequest, call: ApiCall) -> Decision:
    made = _assigned(view, request, call)
    consumer = _led(view, made)
    if consumer is None:
        return Silent()
    seq = parsed(ConsumerResetRequest, request).seq
    first = max(1, _reset_to(view, made, consumer, seq))

    def answer(started: int) -> bytes:
        leader = view.consumer_leader(made.account, made.stream, made.name)
        return reset_response(view, consumer, leader, view.group(made.group.name), started)

    return ProposeGroup(made.group.name, [encode_reset(first)], answer)


def _reset_to(view: ConsumersView, made: ConsumerAssignment, consumer: Consumer, seq: int) -> int:
    """Where a reset goes to, if the deliver policy allows it. Raises ApiError."""
    policy, config = consumer.config.deliver_policy, consumer.config
    if seq == 0:
        # The leader's floor: clients were told of acknowledgements that are not committed yet,
        # and those are in the log before the reset.
        leader = view.consumer_leader(made.account, made.stream, made.name)
        return (consumer if leader is None else leader).state.floor_stream + 1
    if policy is DeliverPolicy.ALL:
        return seq
    if policy is DeliverPolicy.BY_START_SEQUENCE:
        if seq < config.opt_start_seq:
            raise api_error("JSConsumerInvalidResetErr", err="below start seq")
        return seq
    stream = view.stream(made.account, made.stream)
    if policy is DeliverPolicy.BY_START_TIME and stream is not None:
        if seq < stream.store.seq_at_time(parse_time(config.opt_start_time)):
            raise api_error("JSConsumerInvalidResetErr", err="below start time")
        return seq
    raise api_error("JSConsumerInvalidResetErr", err="not allowed")


def _step_down(view: ConsumersView, request: ApiRequest, call: ApiCall) -> Decision:
    if not view.clustered:
        raise api_error("JSClusterRequiredErr")
    made = _assigned(view, request, call)
    if view.consumer_leader(made.account, made.stream, made.name) is None:
        return Silent()
    if len(made.group.members) == 1:
        return Reply(success("consumer_leader_stepdown"))
    servers = [one for one in view.servers() if one.peer in made.group.members]
    best = candidates(view, request, view.me, servers)
    return StepDown(made.group.name, best, success("consumer_leader_stepdown"))


HANDLERS: dict[str, tuple[str, Decider, Handler]] = {
    "consumer_create": ("consumer_create", Decider.META_LEADER, create),
    "consumer_create_durable": ("consumer_create", Decider.META_LEADER, create),
    "consumer_delete": ("consumer_delete", Decider.META_LEADER, _delete),
    "consumer_names": ("consumer_names", Decider.META_LEADER, _names),
    "consumer_list": ("consumer_list", Decider.META_LEADER, _list),
    "consumer_pause": ("consumer_pause", Decider.META_LEADER, _pause),
    "consumer_remove_peer": ("consumer_remove_peer", Decider.META_LEADER, _remove_peer),
    "consumer_evacuate_peer": ("consumer_evacuate_peer", Decider.META_LEADER, _evacuate_peer),
    "consumer_info": ("consumer_info", Decider.CONSUMER_LEADER, _info),
    "consumer_unpin": ("consumer_unpin", Decider.CONSUMER_LEADER, _unpin),
    "consumer_reset": ("consumer_reset", Decider.CONSUMER_LEADER, _reset),
    "consumer_waiting": ("consumer_waiting", Decider.CONSUMER_LEADER, _waiting),
    "consumer_leader_stepdown": (
        "consumer_leader_stepdown",
        Decider.CONSUMER_LEADER,
        _step_down,
    ),
}
"""Operation -> (type of the answer, who answers, handler)."""
