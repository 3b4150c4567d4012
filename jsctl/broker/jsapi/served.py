"""What is answered to the request that made or changed an asset, once its leader serves it."""

from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.assets.replicas.facts import ConsumerServes, StreamServes
from jsctl.broker.jsapi.live_view import ApiView

if TYPE_CHECKING:
    from jsctl.broker.handlers import consumer_info, sourcing_consumers, streams
else:
    streams = lazy.module("jsctl.broker.handlers.streams")
    sourcing_consumers = lazy.module("jsctl.broker.handlers.sourcing_consumers")
    consumer_info = lazy.module("jsctl.broker.handlers.consumer_info")


def answer_headers(view: ApiView, fact: ConsumerServes) -> bytes:
    """The header block that goes with the answer; mostly empty."""
    made = fact.assignment
    stream = view.meta.stream(made.account, made.stream)
    if stream is None or not (made.config.direct or made.config.sourcing):
        return b""
    return sourcing_consumers.identity_headers(made.config, stream.created_ns)


def answer_body(view: ApiView, fact: StreamServes | ConsumerServes) -> bytes:
    """The body of the answer."""
    if isinstance(fact, StreamServes):
        return streams.create_response(view, fact.assignment, fact.stream)
    # A server alone has nothing to tell of it.
    group = view.group(fact.assignment.group.name) if view.clustered else None
    return consumer_info.served_response(view, fact.request, fact.consumer, fact.leader, group)
