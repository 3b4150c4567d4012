"""STREAM.NAMES and STREAM.LIST, and what becomes of gathered infos."""

from collections.abc import Mapping
from typing import TypeVar

from jsctl.api.codec import dumps
from jsctl.api.consumer import ConsumerConfig, ConsumerInfo
from jsctl.api.requests import StreamListRequest, StreamNamesRequest
from jsctl.api.responses import (
    ApiPaged,
    ConsumerListResponse,
    StreamListResponse,
    StreamNamesResponse,
)
from jsctl.api.stream import StreamConfig, StreamInfo
from jsctl.broker.handlers.answers import SHOWN_KEYS, head, parsed_maybe
from jsctl.broker.handlers.decisions import Decision, Gather, Reply
from jsctl.broker.handlers.view import View
from jsctl.broker.jetstream.config_texts import ConfigTexts
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.dataclass import replace

C = TypeVar("C", StreamConfig, ConsumerConfig)
NAMES_PER_PAGE = 1024
INFOS_PER_PAGE = 256


def _matching(view: View, account: str, subject: str) -> list[str]:
    streams = view.meta.streams(account)
    if not subject:
        return list(streams)
    listening = view.meta.listening(account, subject.encode())
    return [name for name in streams if name in listening]


def _page(offset: int, total: int) -> int:
    return min(max(offset, 0), total)


def names(view: View, request: ApiRequest, _: tuple[str, ...]) -> Decision:
    """STREAM.NAMES"""
    body = parsed_maybe(StreamNamesRequest, request)
    found = _matching(view, request.account, body.subject)
    offset = _page(body.page.offset, len(found))
    page = ApiPaged(total=len(found), offset=offset, limit=NAMES_PER_PAGE)
    shown = tuple(found[offset : offset + NAMES_PER_PAGE])
    none = () if found and view.clustered else None
    response = StreamNamesResponse(head=head("stream_names"), page=page, streams=shown or none)
    return Reply(dumps(response))


def infos(view: View, request: ApiRequest, _: tuple[str, ...]) -> Decision:
    """STREAM.LIST"""
    body = parsed_maybe(StreamListRequest, request)
    found = _matching(view, request.account, body.subject)
    offset = _page(body.page.offset, len(found))
    assets = [(name, "") for name in found[offset : offset + INFOS_PER_PAGE]]
    return Gather(request, assets, total=len(found), offset=offset)


def listed(config_texts: ConfigTexts[C], config: C) -> bytes:
    """A config as lists tell it: they say nothing about the server."""
    if config.metadata.keys().isdisjoint(SHOWN_KEYS):
        return config_texts.text(config)
    kept = {key: value for key, value in config.metadata.items() if key not in SHOWN_KEYS}
    return config_texts.text_with(config, kept)


def listed_stream(info: StreamInfo) -> bytes:
    """An info of another server as lists tell it."""
    return dumps(replace(info, config=_without_server(info.config)))


def listed_consumer(info: ConsumerInfo) -> bytes:
    """The same of a consumer."""
    assert info.config is not None
    return dumps(replace(info, config=_without_server(info.config)))


def _without_server(config: C) -> C:
    kept = {key: value for key, value in config.metadata.items() if key not in SHOWN_KEYS}
    return replace(config, metadata=kept)


def finish(
    gather: Gather,
    infos: Mapping[tuple[str, str], bytes],
    offline: Mapping[str, str] | None = None,
) -> bytes:
    """The answer to a `Gather`.

    `infos` has what arrived in time, as lists tell it, by asset; the rest is named as missing.
    `offline` has the reasons of assets that this version cannot run.
    """
    page = ApiPaged(total=gather.total, offset=gather.offset, limit=INFOS_PER_PAGE)
    reasons = dict(offline or {})
    is_streams = b".STREAM.LIST" in gather.request.subject
    missing = tuple(
        stream if is_streams else consumer
        for stream, consumer in gather.assets
        if (stream, consumer) not in infos and (consumer or stream) not in reasons
    )
    made = b",".join([infos[asset] for asset in gather.assets if asset in infos])
    if is_streams:
        none: object = StreamListResponse(
            head=head("stream_list"), page=page, streams=(), missing=missing, offline=reasons
        )
        return dumps(none).replace(b'"streams":[]', b'"streams":[%s]' % made, 1)
    none = ConsumerListResponse(
        head=head("consumer_list"), page=page, consumers=(), missing=missing, offline=reasons
    )
    return dumps(none).replace(b'"consumers":[]', b'"consumers":[%s]' % made, 1)
