"""The table of `$JS.API` subjects: who answers, with which handler, and how a refusal looks."""

from dataclasses import dataclass

from jsctl.api.codec import dumps
from jsctl.api.errors import ApiError, api_error
from jsctl.api.responses import (
    AccountInfoResponse,
    AccountPurgeResponse,
    MsgGetResponse,
    StreamCreateResponse,
    StreamInfoResponse,
    StreamListResponse,
    StreamNamesResponse,
    StreamPurgeResponse,
    StreamRestoreResponse,
    StreamSnapshotResponse,
    SuccessResponse,
)
from jsctl.broker.handlers import (
    account,
    lists,
    meta,
    stream_groups,
    stream_messages,
    streams,
)
from jsctl.broker.handlers.answers import Handler, head
from jsctl.broker.handlers.decisions import Decision, Reply, Silent, Target
from jsctl.broker.handlers.view import View
from jsctl.broker.jetstream.publish_headers import nats_fields
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.options import COMPATIBLE_API_LEVEL

PREFIX = b"$JS.API."
_LEVEL_HEADER = b"Nats-Required-Api-Level"


@dataclass(frozen=True, slots=True)
class Route:
    """One request of the API. `pattern` has `*` for each parameter, a final `>` for the rest."""

    pattern: str
    target: Target
    handler: Handler
    kind: str
    """The response's type, e.g. `stream_create`."""
    response: type = SuccessResponse
    system: bool = False
    """Only the system account is answered."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A request's route and the parameters of its subject."""

    route: Route
    names: tuple[str, ...]


_META, _STREAM = Target.META_LEADER, Target.STREAM_LEADER
STREAM_ROUTES = (
    Route("INFO", _META, account.info, "account_info", AccountInfoResponse),
    Route("STREAM.CREATE.*", _META, streams.create, "stream_create", StreamCreateResponse),
    Route("STREAM.UPDATE.*", _META, streams.update, "stream_update", StreamCreateResponse),
    Route("STREAM.DELETE.*", _META, streams.delete, "stream_delete"),
    Route("STREAM.INFO.*", _STREAM, streams.info, "stream_info", StreamInfoResponse),
    Route("STREAM.NAMES", _META, lists.names, "stream_names", StreamNamesResponse),
    Route("STREAM.LIST", _META, lists.infos, "stream_list", StreamListResponse),
    Route("STREAM.PURGE.*", _STREAM, stream_messages.purge, "stream_purge", StreamPurgeResponse),
    Route("STREAM.MSG.GET.*", _STREAM, stream_messages.get, "stream_msg_get", MsgGetResponse),
    Route("STREAM.MSG.DELETE.*", _STREAM, stream_messages.delete, "stream_msg_delete"),
    Route(
        "STREAM.SNAPSHOT.*",
        _STREAM,
        stream_groups.snapshot,
        "stream_snapshot",
        StreamSnapshotResponse,
    ),
    Route(
        "STREAM.RESTORE.*",
        _META,
        stream_groups.restore,
        "stream_restore",
        StreamRestoreResponse,
    ),
    Route("STREAM.LEADER.STEPDOWN.*", _STREAM, stream_groups.step_down, "stream_leader_stepdown"),
    Route("STREAM.PEER.REMOVE.*", _META, stream_groups.remove_peer, "stream_remove_peer"),
    Route("STREAM.PEER.EVACUATE.*", _META, stream_groups.evacuate_peer, "stream_remove_peer"),
    Route(
        "STREAM.CANCEL_MOVE.*",
        _META,
        stream_groups.cancel_move,
        "stream_update",
        StreamCreateResponse,
    ),
    Route("META.LEADER.STEPDOWN", _META, meta.step_down, "meta_leader_stepdown", system=True),
    Route("SERVER.REMOVE", _META, meta.remove, "meta_server_remove", system=True),
    Route(
        "ACCOUNT.PURGE.*",
        _META,
        meta.purge_account,
        "account_purge",
        AccountPurgeResponse,
        system=True,
    ),
    Route(
        "ACCOUNT.STREAM.MOVE.*.*",
        _META,
        stream_groups.move,
        "stream_update",
        StreamCreateResponse,
        system=True,
    ),
    Route(
        "ACCOUNT.STREAM.CANCEL_MOVE.*.*",
        _META,
        stream_groups.cancel_account_move,
        "stream_update",
        StreamCreateResponse,
        system=True,
    ),
)


class Routes:
    """Routes prepared for look-up by subject."""

    def __init__(self, routes: tuple[Route, ...] = STREAM_ROUTES) -> None:
        self._exact: dict[tuple[str, ...], Route] = {}
        for route in routes:
            self._exact[tuple(route.pattern.split("."))] = route
        self._patterns = sorted(self._exact, key=lambda tokens: (tokens[-1] == ">", -len(tokens)))

    def resolve(self, subject: bytes) -> Resolved | None:
        """The route of a subject that begins with `$JS.API.`; None: nobody answers it."""
        if not subject.startswith(PREFIX):
            return None
        tokens = subject[len(PREFIX) :].decode("utf-8", "replace").split(".")
        for pattern in self._patterns:
            names = _match(pattern, tokens)
            if names is not None:
                return Resolved(self._exact[pattern], names)
        return None


def _match(pattern: tuple[str, ...], tokens: list[str]) -> tuple[str, ...] | None:
    if pattern[-1] == ">":
        if len(tokens) < len(pattern):
            return None
        tokens = [*tokens[: len(pattern) - 1], ".".join(tokens[len(pattern) - 1 :])]
    if len(tokens) != len(pattern) or "" in tokens:
        return None
    names: list[str] = []
    for wanted, token in zip(pattern, tokens, strict=True):
        if wanted in ("*", ">"):
            names.append(token)
        elif wanted != token:
            return None
    return tuple(names)


def refusal(route: Route, error: ApiError) -> bytes:
    """An error as the route's answer; fields that are never left out have their zero values."""
    return dumps(route.response(head=head(route.kind, error)))


def answer(view: View, request: ApiRequest, resolved: Resolved) -> Decision:
    """Decide on a request that this server has to answer."""
    route = resolved.route
    if route.system and not request.system:
        return Silent()
    try:
        _check_common(view, request, route)
        return route.handler(view, request, resolved.names)
    except ApiError as error:
        return Reply(refusal(route, error))


def _check_common(view: View, request: ApiRequest, route: Route) -> None:
    level = nats_fields(request.headers).get(_LEVEL_HEADER)
    if level is not None and not (level.isdigit() and int(level) <= COMPATIBLE_API_LEVEL):
        raise api_error("JSRequiredApiLevelErr")
    if route.system:
        return
    facts = view.account(request.account)
    if facts is None or not facts.enabled:
        raise api_error("JSNotEnabledForAccountErr")
