"""What is answered to the request that made or changed an asset, once its leader serves it."""

from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.assets.replicas.facts import ConsumerServes, StreamServes
from jsctl.broker.jsapi.live_view import ApiView

if TYPE_CHECKING:
    from jsctl.broker.handlers import consumer_info, streams
else:
    streams = lazy.module("jsctl.broker.handlers.streams")
    consumer_info = lazy.module("jsctl.broker.handlers.consumer_info")


def answer_body(view: ApiView, fact: StreamServes | ConsumerServes) -> bytes:
    """The body of the answer."""
    if isinstance(fact, StreamServes):
        return streams.create_response(view, fact.assignment, fact.stream)
    group = view.group(fact.assignment.group.name)
    return consumer_info.served_response(view, fact.request, fact.consumer, fact.leader, group)
