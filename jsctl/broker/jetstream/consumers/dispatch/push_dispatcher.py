"""How fast a push consumer delivers: interest, windows, rate, original speed, heartbeats."""

from collections.abc import Callable, Sequence
from itertools import repeat

from jsctl.api.words import AckPolicy, ReplayPolicy
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.delivery import ConsumerDelivery, size_of
from jsctl.broker.jetstream.consumers.dispatch.pacing import (
    FLOW_CONTROL_REQUEST,
    FlowControl,
    RateLimit,
    Replay,
    idle_heartbeat,
)
from jsctl.broker.jetstream.consumers.facts import Interest
from jsctl.broker.jetstream.streams.publish_headers import parse_number
from jsctl.broker.protocol.deliveries import Item, OutgoingMessage
from jsctl.broker.protocol.headers import get
from jsctl.broker.store.record import Row

RATE_BURST_BYTES = 1024 * 1024
"""A rate limited consumer may send this much at once: the default of `max_payload`."""


class PushDispatcher:
    """The sending side of a leading push consumer."""

    __slots__ = (
        "_flow_prefix",
        "_has_interest",
        "_new_id",
        "active",
        "beat_at_ns",
        "consumer",
        "due_ns",
        "flow",
        "rate",
        "replay",
        "since_ns",
        "subject",
    )

    def __init__(
        self, consumer: Consumer, has_interest: Interest, new_id: Callable[[], str], now_ns: int
    ) -> None:
        self.consumer = consumer
        self._has_interest = has_interest
        self._new_id = new_id
        self._flow_prefix = f"$JS.FC.{consumer.stream}.{consumer.name}.".encode()
        self.active = False
        self.since_ns = now_ns
        """When interest was last seen to change."""
        self.flow: FlowControl | None = None
        self.rate: RateLimit | None = None
        self.replay: Replay | None = None
        self.due_ns: int | None = None
        """When pacing lets more go."""
        self.configure(now_ns)

    def configure(self, now_ns: int) -> None:
        """The consumer's config may have changed."""
        config = self.consumer.config
        self.subject = config.deliver_subject.encode()
        if not config.flow_control:
            self.flow = None
        elif self.flow is None:
            self.flow = FlowControl()
        rate = config.rate_limit_bps // 8
        if not rate:
            self.rate = None
        elif self.rate is None or self.rate.rate != rate:
            self.rate = RateLimit(rate, RATE_BURST_BYTES)
        self.beat_at_ns = now_ns + config.idle_heartbeat if config.idle_heartbeat else 0

    def start_replay(self, last_seq: int) -> None:
        """Deliver what the stream has now at its original speed, if the config says so."""
        if self.consumer.config.replay_policy is ReplayPolicy.ORIGINAL:
            self.replay = Replay(last_seq)

    def wanted(self) -> bool:
        """Whether somebody listens on the deliver subject."""
        return self._has_interest(self.subject)

    def look(self, now_ns: int) -> bool:
        """As `wanted`, and taken note of."""
        active = self.wanted()
        if active != self.active:
            self.active, self.since_ns = active, now_ns
        return active

    def answered(self, subject: bytes, headers: bytes) -> tuple[int, int] | None:
        """An answer to flow control. With ack policy flow_control: (stream, consumer) seqs."""
        if self.flow is None or not self.flow.answered(subject):
            return None
        if self.consumer.config.ack_policy is not AckPolicy.FLOW_CONTROL:
            return None
        seq = _number(headers, b"Nats-Last-Stream")
        return (seq, _number(headers, b"Nats-Last-Consumer")) if seq else None

    # Messages go out.

    def serve(
        self, delivery: ConsumerDelivery, now_ns: int, budget: int, out: list[OutgoingMessage]
    ) -> bool:
        """Send messages; False when the budget ended it and there may be more."""
        self.due_ns = None
        again = delivery.present_again(budget, now_ns)
        sent = self._send(delivery, again, now_ns, out, True)
        if sent < len(again):
            return True
        if 0 < sent == budget:
            return False
        room = delivery.room()
        rows = delivery.peek_new(min(budget - sent, room))
        given = self._send(delivery, rows, now_ns, out, False)
        if not rows and self.replay is not None and delivery.cursor > self.replay.until:
            self.replay = None
        return given < len(rows) or not rows or given >= room or not delivery.num_pending

    def _send(
        self,
        delivery: ConsumerDelivery,
        rows: Sequence[Row],
        now_ns: int,
        out: list[OutgoingMessage],
        again: bool,
    ) -> int:
        rows = self._paced(rows, now_ns)
        if not rows:
            return 0
        if again:
            items = [delivery.item(row, self.subject, at, True) for at, row in enumerate(rows)]
        else:
            items = delivery.items_new(rows, repeat(self.subject))
        items = self._metered(items, now_ns)
        out += items if self.flow is None else self._windowed(items, self.flow)
        count = len(items)
        (delivery.take_again if again else delivery.take_new)(rows[:count], now_ns)
        if count and self.beat_at_ns:
            self.beat_at_ns = now_ns + self.consumer.config.idle_heartbeat
        return count

    def _paced(self, rows: Sequence[Row], now_ns: int) -> Sequence[Row]:
        if self.replay is None or not rows:
            return rows
        count, due = self.replay.fitting([row[1] for row in rows], now_ns)
        self._due(due)
        return rows[:count]

    def _metered(self, items: list[Item], now_ns: int) -> list[Item]:
        if self.rate is not None:
            self.rate.fill(now_ns)
            items = items[: self.rate.fitting([size_of(item) for item in items])]
            self._due(self.rate.next_due_ns if self.rate.tokens < 0 else None)
        if self.flow is None:
            return items
        total, fitting = self.flow.outstanding_bytes, 0
        for item in items:
            if total > self.flow.window_bytes:
                break
            total += size_of(item)
            fitting += 1
        return items[:fitting]

    def _windowed(self, items: list[Item], flow: FlowControl) -> list[Item]:
        made: list[Item] = []
        for item in items:
            made.append(item)
            if flow.sent(size_of(item)):
                made.append(self._ask(flow))
        return made

    def _ask(self, flow: FlowControl) -> Item:
        flow.ask(self._flow_prefix + self._new_id()[:4].encode())
        return self.subject, flow.asked, FLOW_CONTROL_REQUEST, b"", b""

    def _due(self, due_ns: int | None) -> None:
        if due_ns is not None and (self.due_ns is None or due_ns < self.due_ns):
            self.due_ns = due_ns

    def tend(self, delivery: ConsumerDelivery, now_ns: int) -> list[Item]:
        """Heartbeats, and a flow control request when acks depend on one."""
        if not self.beat_at_ns or now_ns < self.beat_at_ns:
            return []
        self.beat_at_ns = now_ns + self.consumer.config.idle_heartbeat
        if not self.active:
            return []
        state, flow = delivery.progress.state, self.flow
        stalled = flow.asked if flow is not None else b""
        seq = max(state.delivered_stream, delivery.cursor - 1)
        beat = idle_heartbeat(state.delivered_seq, seq, stalled)
        out: list[Item] = [(self.subject, b"", beat, b"", b"")]
        by_flow = self.consumer.config.ack_policy is AckPolicy.FLOW_CONTROL
        if by_flow and state.pending and flow is not None and not flow.asked:
            out.append(self._ask(flow))
        return out

    @property
    def next_due_ns(self) -> int | None:
        """When to look again."""
        due = [at for at in (self.due_ns, self.beat_at_ns if self.active else 0) if at]
        return min(due, default=None)


def _number(headers: bytes, key: bytes) -> int:
    value = get(headers, key) if headers else None
    return parse_number(value or b"") or 0
