"""What is answered to the request that made or changed an asset, once its leader serves it.

The answer about a consumer tells how many messages are for it, and with a pattern that takes a look
through the subjects of its stream. Who decided on the request, mostly another server, has paid for
that in turns of its own, and hundreds of consumers may begin here in one: they are told of as far
as a turn has room, in their order.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.assets.replicas.facts import ConsumerServes, StreamServes
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.deciding.searches import LOOKED_AT
from jsctl.broker.jsapi.live_view import ApiView
from jsctl.broker.sessions.request_budget import REQUEST_UNITS, RequestBudget
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.broker.handlers import consumer_info, sourcing_consumers, streams
else:
    streams = lazy.module("jsctl.broker.handlers.streams")
    sourcing_consumers = lazy.module("jsctl.broker.handlers.sourcing_consumers")
    consumer_info = lazy.module("jsctl.broker.handlers.consumer_info")


@dataclass(slots=True)
class Serving:
    """The answers about consumers."""

    view: ApiView
    budget: RequestBudget
    answer: Callable[[ApiRequest, bytes, bytes], None]
    waiting: deque[ConsumerServes] = field(default_factory=deque)
    """Those that wait for a turn with room for them. Only changed here."""

    def take(self, fact: ConsumerServes) -> None:
        """Answer at once, or when it is this one's turn."""
        if self.waiting or self.budget.left <= 0:
            self.waiting.append(fact)
        else:
            self._tell(fact)

    def begin_turn(self) -> None:
        """Another turn: answer those that it has room for, one at least."""
        first = True
        while self.waiting and (self.budget.left > 0 or first):
            first = False
            self._tell(self.waiting.popleft())

    def _tell(self, fact: ConsumerServes) -> None:
        """It is told of as it is now, also if another server has come to lead it meanwhile: it was
        made, and nobody else answers."""
        made = fact.assignment
        stream = self.view.stream_replica(made.account, made.stream)
        before = 0 if stream is None else stream.store.subjects_searched
        headers, body = answer_headers(self.view, fact), answer_body(self.view, fact)
        searched = 0 if stream is None else stream.store.subjects_searched - before
        self.budget.left -= REQUEST_UNITS + searched // LOOKED_AT
        self.answer(fact.request, body, headers)
        consumer = self.view.consumer_replica(made.account, made.stream, made.name)
        if consumer is not None:
            consumer.answered(fact.request)


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
