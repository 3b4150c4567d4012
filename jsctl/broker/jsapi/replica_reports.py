"""What replicas of this server report: answers to creates, advisories, unused consumers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jsctl.api.errors import ApiError
from jsctl.broker import lazy
from jsctl.broker.assets.consumer_replica import ConsumerReplica
from jsctl.broker.assets.stream_replica import StreamReplica
from jsctl.broker.jetstream.consumers.facts import Advisory
from jsctl.broker.jetstream.meta.entries import remove_consumer
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.live_view import ApiView

if TYPE_CHECKING:
    from jsctl.broker.handlers import consumer_info, streams
else:
    streams = lazy.module("jsctl.broker.handlers.streams")
    consumer_info = lazy.module("jsctl.broker.handlers.consumer_info")

REMOVE_REPEAT_NS = 2_000_000_000


@dataclass(slots=True)
class ReplicaReports:
    """Implements `replica_context.Reports`; the node sets the outlets once they exist."""

    view: ApiView | None = None
    answer: Callable[[ApiRequest, bytes], None] | None = None
    advise: Callable[[ConsumerReplica, list[Advisory]], None] | None = None
    propose_meta: Callable[[list[bytes]], None] | None = None
    serves: Callable[[StreamReplica], None] | None = None
    _removed_ns: dict[str, int] = field(default_factory=dict)

    def stream_serves(self, replica: StreamReplica, request: ApiRequest) -> None:
        """The leader of a stream answers the request that made or changed it."""
        if self.serves is not None:
            self.serves(replica)
        if self.view is not None and self.answer is not None:
            body = streams.create_response(self.view, replica.assignment, replica.stream)
            self.answer(request, body)

    def consumer_serves(self, replica: ConsumerReplica, request: ApiRequest) -> None:
        """The leader of a consumer answers the request that made or changed it."""
        if self.view is not None and self.answer is not None:
            group = self.view.group(replica.group.name)
            body = consumer_info.served_response(
                self.view, request, replica.consumer, replica.leader, group
            )
            self.answer(request, body)

    def advisories(self, replica: ConsumerReplica, facts: list[Advisory]) -> None:
        """Facts to be told to operators."""
        if self.advise is not None:
            self.advise(replica, facts)

    def refusal(self, replica: StreamReplica) -> ApiError | None:
        """Limits of the account, and of this server, that a stream has reached."""
        if self.view is None:
            return None
        return self.view.usage.refusal(replica)

    def inactive(self, replica: ConsumerReplica) -> None:
        """The consumer was not used for its threshold: have it deleted."""
        now_ns = replica.env.now_ns
        last = self._removed_ns.get(replica.group.name, 0)
        if self.propose_meta is not None and now_ns - last > REMOVE_REPEAT_NS:
            self._removed_ns[replica.group.name] = now_ns
            made = replica.assignment
            self.propose_meta([remove_consumer(made.account, made.stream, made.name)])
