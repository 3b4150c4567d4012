"""What units of this server report: answers to creates, advisories, unused consumers."""

from collections.abc import Callable
from dataclasses import dataclass, field

from jsctl.api.errors import ApiError
from jsctl.broker.cluster.consumer_unit import ConsumerUnit
from jsctl.broker.cluster.stream_unit import StreamUnit
from jsctl.broker.jetstream.consumer_facts import Advisory
from jsctl.broker.jetstream.meta_entries import remove_consumer
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.node import late
from jsctl.broker.node.api_view import ApiView

REMOVE_REPEAT_NS = 2_000_000_000


@dataclass(slots=True)
class UnitReports:
    """Implements `consumer_unit.Reports`; the node sets the outlets once they exist."""

    view: ApiView | None = None
    answer: Callable[[ApiRequest, bytes], None] | None = None
    advise: Callable[[ConsumerUnit, list[Advisory]], None] | None = None
    propose_meta: Callable[[list[bytes]], None] | None = None
    serves: Callable[[StreamUnit], None] | None = None
    _removed_ns: dict[str, int] = field(default_factory=dict)

    def stream_serves(self, unit: StreamUnit, request: ApiRequest) -> None:
        """The leader of a stream answers the request that made or changed it."""
        if self.serves is not None:
            self.serves(unit)
        if self.view is not None and self.answer is not None:
            body = late.streams.create_response(self.view, unit.assignment, unit.stream)
            self.answer(request, body)

    def consumer_serves(self, unit: ConsumerUnit, request: ApiRequest) -> None:
        """The leader of a consumer answers the request that made or changed it."""
        if self.view is not None and self.answer is not None:
            group = self.view.group(unit.group.name)
            body = late.consumer_info.served_response(
                self.view, request, unit.consumer, unit.leader, group
            )
            self.answer(request, body)

    def advisories(self, unit: ConsumerUnit, facts: list[Advisory]) -> None:
        """Facts to be told to operators."""
        if self.advise is not None:
            self.advise(unit, facts)

    def refusal(self, unit: StreamUnit) -> ApiError | None:
        """Limits of the account, and of this server, that a stream has reached."""
        if self.view is None:
            return None
        return self.view.usage.refusal(unit)

    def inactive(self, unit: ConsumerUnit) -> None:
        """The consumer was not used for its threshold: have it deleted."""
        now_ns = unit.env.now_ns
        last = self._removed_ns.get(unit.group.name, 0)
        if self.propose_meta is not None and now_ns - last > REMOVE_REPEAT_NS:
            self._removed_ns[unit.group.name] = now_ns
            made = unit.assignment
            self.propose_meta([remove_consumer(made.account, made.stream, made.name)])
