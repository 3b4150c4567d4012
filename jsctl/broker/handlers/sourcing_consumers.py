"""Consumers that other streams ask for, to mirror this one or to have it as a source.

Most are of the stream's leader alone, who makes them at once. A stream that lets go of what was
consumed has to remember what others have of it: there they are durable, and their acknowledgements
are the answers to flow control.
"""

from jsctl.api.codec import DecodeError, dumps, loads
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import api_error
from jsctl.api.requests import ConsumerCreateRequest
from jsctl.api.responses import ConsumerInfoResponse
from jsctl.api.stream import StreamConfig
from jsctl.api.words import AckPolicy, Retention
from jsctl.broker.handlers.consumer_info import consumer_info, head
from jsctl.broker.handlers.decisions import Decision, MakeDirect, Silent
from jsctl.broker.handlers.view import View
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.leader import ConsumerLeader
from jsctl.broker.jetstream.meta.assignments import StreamAssignment
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jetstream.sourcing.asking import IDENTITY
from jsctl.broker.jetstream.sourcing.names import stream_identity
from jsctl.broker.protocol import headers as blocks
from jsctl.dataclass import replace

NAME_LENGTH = 8


def asks_leader(view: View, request: ApiRequest, stream: str) -> bool:
    """Whether a request for a consumer is one that the stream's leader decides on."""
    if b'"direct"' not in request.payload:
        return False
    found = view.meta.stream(request.account, stream)
    try:
        config = loads(ConsumerCreateRequest, request.payload).config
    except (DecodeError, TypeError, ValueError):
        return False
    return found is not None and is_direct(config, found.config)


def is_direct(config: ConsumerConfig, stream: StreamConfig) -> bool:
    """Whether only the stream's leader has it."""
    return config.direct and stream.retention is Retention.LIMITS


def adapted(config: ConsumerConfig, stream: StreamConfig) -> ConsumerConfig:
    """As it is kept by a stream that lets go of what was consumed."""
    kept = not config.direct or not config.sourcing or not config.name
    if kept or stream.retention is Retention.LIMITS:
        return config
    return replace(
        config,
        direct=False,
        durable_name=config.name,
        ack_policy=AckPolicy.FLOW_CONTROL,
        ack_wait=0,
        max_deliver=0,
        inactive_threshold=0,
    )


def continued(old: ConsumerConfig, config: ConsumerConfig) -> ConsumerConfig:
    """One that is asked for again goes on behind what was acknowledged, wherever it began."""
    if not config.sourcing or not config.durable_name:
        return config
    return replace(
        config,
        deliver_policy=old.deliver_policy,
        opt_start_seq=old.opt_start_seq,
        opt_start_time=old.opt_start_time,
    )


def check_identity(request: ApiRequest, config: ConsumerConfig, stream: StreamAssignment) -> None:
    """Refuse who means an earlier stream of that name. Raises ApiError."""
    if not (config.direct or config.sourcing) or not request.headers:
        return
    meant, identity = blocks.get(request.headers, IDENTITY), stream_identity(stream.created_ns)
    if meant and meant != identity.encode():
        raise api_error("JSConsumerStreamIdentityMismatchF", msg=identity)


def identity_headers(config: ConsumerConfig, created_ns: int) -> bytes:
    """What goes with the answer to who made such a consumer; empty for all others."""
    if not (config.direct or config.sourcing):
        return b""
    return blocks.build([(IDENTITY, stream_identity(created_ns).encode())])


def create(
    view: View, request: ApiRequest, stream: StreamAssignment, config: ConsumerConfig
) -> Decision:
    """Have the stream's leader make it."""
    if view.stream_leader(stream.account, stream.name) is None:
        return Silent()
    name = view.new_name(NAME_LENGTH)
    if config.name:
        name = f"{config.name}-{name}"
    config = replace(config, name=name)
    headers = identity_headers(config, stream.created_ns)
    return MakeDirect(stream.account, config, stream.name, headers)


def created(view: View, consumer: Consumer, leader: ConsumerLeader) -> bytes:
    """The answer to who asked for it."""
    info = consumer_info(view, consumer, leader, None)
    return dumps(ConsumerInfoResponse(head=head("consumer_create"), info=info))
