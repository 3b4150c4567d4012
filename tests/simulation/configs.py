"""What the streams and consumers of a plan are created with."""

from typing import Any

from tests.simulation.clients import push_subject
from tests.simulation.dead_letters import METADATA
from tests.simulation.plan import ConsumerKind, Plan, StreamKind
from tests.simulation.world import MS, SECOND

ACK_WAIT_NS = SECOND


def stream_config(plan: Plan, number: int) -> dict[str, Any]:
    """A stream's."""
    replicas, storage, max_msgs = plan.streams[number]
    kind = plan.kind(number)
    config = {
        "name": f"S{number}",
        "subjects": [f"S{number}.>"],
        "num_replicas": replicas,
        "storage": storage,
        "max_msgs": max_msgs,
        "duplicate_window": kind.window_ms * MS,
    }
    if kind != StreamKind():
        config |= {
            "retention": kind.retention,
            "max_age": kind.max_age_ms * MS,
            "max_msgs_per_subject": kind.per_subject,
            "discard": kind.discard,
        }
    config |= kind.switches()
    if plan.batches:
        config |= {"allow_atomic": True, "allow_batched": True}
    return config


def consumer_config(number: int, name: str, kind: ConsumerKind) -> dict[str, Any]:
    """That of a consumer of a stream."""
    config: dict[str, Any] = {"durable_name": name, "ack_policy": kind.ack}
    if kind.ack != "none":
        config["ack_wait"] = ACK_WAIT_NS
    if kind.ack != "none" and kind.max_deliver > 0:
        config["max_deliver"] = kind.max_deliver
    if kind.ack != "none" and kind.max_ack_pending > 0:
        config["max_ack_pending"] = kind.max_ack_pending
    if kind.letters:
        config["metadata"] = METADATA
    if kind.filter:
        config["filter_subject"] = f"S{number}.{kind.filter}"
    if kind.push:
        config["deliver_subject"] = push_subject(f"S{number}", name)
        config["rate_limit_bps"] = kind.rate_bps
    return config
