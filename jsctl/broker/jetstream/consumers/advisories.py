"""Advisories of consumers as they are published: subject and JSON."""

from jsctl.api.codec import dumps
from jsctl.api.events import (
    ConsumerAckMetric,
    ConsumerDeliveryExceededAdvisory,
    ConsumerDeliveryNakAdvisory,
    ConsumerDeliveryTerminatedAdvisory,
    ConsumerGroupPinnedAdvisory,
    ConsumerGroupUnpinnedAdvisory,
    TypedEvent,
)
from jsctl.api.times import format_time
from jsctl.broker.jetstream.consumers.facts import Advisory, AdvisoryKind

_TYPES = {
    AdvisoryKind.MAX_DELIVERIES: "io.nats.jetstream.advisory.v1.max_deliver",
    AdvisoryKind.NAKED: "io.nats.jetstream.advisory.v1.nak",
    AdvisoryKind.TERMINATED: "io.nats.jetstream.advisory.v1.terminated",
    AdvisoryKind.ACK_METRIC: "io.nats.jetstream.metric.v1.consumer_ack",
    AdvisoryKind.PINNED: "io.nats.jetstream.advisory.v1.consumer_group_pinned",
    AdvisoryKind.UNPINNED: "io.nats.jetstream.advisory.v1.consumer_group_unpinned",
}


def advisory_message(
    fact: Advisory,
    *,
    account: str,
    stream: str,
    consumer: str,
    domain: str,
    event_id: str,
    now_ns: int,
) -> tuple[bytes, bytes]:
    """(subject, payload) of an advisory; `event_id` is fresh for each."""
    subject = f"{fact.kind.value}.{stream}.{consumer}".encode()
    kind = _TYPES[fact.kind]
    start = TypedEvent(type=kind, id=event_id, timestamp=format_time(now_ns))
    return subject, dumps(_event(fact, start, account, stream, consumer, domain))


def _event(
    fact: Advisory, start: TypedEvent, account: str, stream: str, consumer: str, domain: str
) -> object:
    kind, seq, cseq = fact.kind, fact.stream_seq, fact.consumer_seq
    if kind is AdvisoryKind.MAX_DELIVERIES:
        return ConsumerDeliveryExceededAdvisory(
            head=start,
            stream=stream,
            consumer=consumer,
            stream_seq=seq,
            deliveries=fact.deliveries,
            domain=domain,
        )
    if kind is AdvisoryKind.NAKED:
        return ConsumerDeliveryNakAdvisory(
            head=start,
            stream=stream,
            consumer=consumer,
            consumer_seq=cseq,
            stream_seq=seq,
            deliveries=fact.deliveries,
            domain=domain,
        )
    if kind is AdvisoryKind.TERMINATED:
        return ConsumerDeliveryTerminatedAdvisory(
            head=start,
            stream=stream,
            consumer=consumer,
            consumer_seq=cseq,
            stream_seq=seq,
            deliveries=fact.deliveries,
            reason=fact.reason,
            domain=domain,
        )
    if kind is AdvisoryKind.ACK_METRIC:
        return ConsumerAckMetric(
            head=start,
            stream=stream,
            consumer=consumer,
            consumer_seq=cseq,
            stream_seq=seq,
            ack_time=fact.ack_time_ns,
            deliveries=fact.deliveries,
            domain=domain,
        )
    return _group_event(fact, start, account, stream, consumer, domain)


def _group_event(
    fact: Advisory, start: TypedEvent, account: str, stream: str, consumer: str, domain: str
) -> object:
    if fact.kind is AdvisoryKind.PINNED:
        return ConsumerGroupPinnedAdvisory(
            head=start,
            account=account,
            stream=stream,
            consumer=consumer,
            domain=domain,
            group=fact.group,
            pinned_id=fact.pin,
        )
    return ConsumerGroupUnpinnedAdvisory(
        head=start,
        account=account,
        stream=stream,
        consumer=consumer,
        domain=domain,
        group=fact.group,
        reason=fact.reason,
    )
