"""The request for an origin's messages, and what its answer says.

The origin is asked for a push consumer as nats-server asks for one. A server that does not know
something of it is asked again for less: see `LEVELS`.
"""

from jsctl.api.codec import DecodeError, dumps, loads
from jsctl.api.consumer import ConsumerConfig, ConsumerInfo
from jsctl.api.errors import ApiErrorBody, api_error
from jsctl.api.requests import ConsumerCreateRequest
from jsctl.api.responses import ConsumerInfoResponse
from jsctl.api.times import SECOND_NS
from jsctl.api.words import AckPolicy, DeliverPolicy
from jsctl.broker.jetstream.sourcing.arrivals import NUMBER_MAX
from jsctl.broker.jetstream.sourcing.origin import UpstreamOrigin
from jsctl.broker.protocol import headers as blocks
from jsctl.dataclass import dataclass, replace

HEARTBEAT_NS = SECOND_NS
UNUSED_NS = 10 * SECOND_NS
"""A consumer that nobody listens to for so long ends."""
ACK_WAIT_NS = 22 * 3600 * SECOND_NS
LEVELS = (5, 4, 0)
"""API levels that are asked for in turn: 5 knows origins that were made anew, 4 gives consumers
that remember what was taken of a work queue, and 0 is everybody else."""
IDENTITY = b"Nats-Stream-Identity"
ERROR_LENGTH_MAX = 1024
"""Of what an origin says of a mistake: it is shown with the stream."""
IDENTITY_LENGTH_MAX = 64
"""It goes into each message's header."""
_LEVEL = b"Nats-Required-Api-Level"


@dataclass(frozen=True, slots=True)
class Start:
    """Where to begin: at a sequence, else at a time, else with everything."""

    seq: int = 0
    time: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """To be published, with an inbox for the answer."""

    subject: bytes
    headers: bytes
    payload: bytes


@dataclass(frozen=True, slots=True)
class Granted:
    """The origin delivers: by this consumer, from behind this sequence."""

    consumer: bytes
    delivered: int
    identity: str


@dataclass(frozen=True, slots=True)
class Metadata:
    """Who asks."""

    stream: str
    account: str
    domain: str = ""


def request(
    origin: UpstreamOrigin,
    start: Start,
    deliver: bytes,
    level: int,
    identity: str,
    who: Metadata,
    nonce: str,
) -> Request:
    """Ask for a consumer; for one that somebody has made, to begin again behind its acks."""
    name = origin.consumer
    pairs = [] if not level else [(_LEVEL, str(level).encode())]
    if identity and level >= LEVELS[0]:
        pairs.append((IDENTITY, identity.encode()))
    head = blocks.build(pairs) if pairs else b""
    stream = origin.declared.name
    if origin.declared.consumer is not None:
        subject = f"$JS.API.CONSUMER.RESET.{stream}.{name}"
        return Request(origin.api_subject(subject), head, b"")
    if not level:
        name = f"{name}_{nonce}"
    config = _config(origin, start, deliver, name, who, sourcing=bool(level))
    subject = f"$JS.API.CONSUMER.CREATE.{stream}"
    if config.filter_subject:
        subject += f".{name}.{config.filter_subject}"
    body = dumps(ConsumerCreateRequest(stream_name=stream, config=config))
    return Request(origin.api_subject(subject), head, body)


def _config(
    origin: UpstreamOrigin,
    start: Start,
    deliver: bytes,
    name: str,
    who: Metadata,
    *,
    sourcing: bool,
) -> ConsumerConfig:
    policy = DeliverPolicy.ALL
    if start.seq:
        policy = DeliverPolicy.BY_START_SEQUENCE
    elif start.time:
        policy = DeliverPolicy.BY_START_TIME
    filters = origin.filters
    kind = "mirror" if origin.is_mirror else "src"
    told = {f"_nats.{kind}.stream": who.stream, f"_nats.{kind}.acc": who.account}
    if who.domain:
        told[f"_nats.{kind}.domain"] = who.domain
    return ConsumerConfig(
        name=name,
        deliver_subject=deliver.decode(),
        deliver_policy=policy,
        opt_start_seq=start.seq,
        opt_start_time="" if start.seq else start.time,
        ack_policy=AckPolicy.NONE,
        ack_wait=ACK_WAIT_NS,
        max_deliver=1,
        filter_subject=filters[0] if len(filters) == 1 else "",
        filter_subjects=filters if len(filters) > 1 else (),
        idle_heartbeat=HEARTBEAT_NS,
        flow_control=True,
        direct=True,
        sourcing=sourcing,
        inactive_threshold=UNUSED_NS,
        metadata=told,
    )


def farewell(origin: UpstreamOrigin) -> Request:
    """Have the consumer deleted: nobody reads it any more."""
    subject = f"$JS.API.CONSUMER.DELETE.{origin.declared.name}.{origin.consumer}"
    return Request(origin.api_subject(subject), b"", b"")


def read_answer(origin: UpstreamOrigin, headers: bytes, payload: bytes) -> Granted | ApiErrorBody:
    """What was answered. Nobody answers: the origin's server is not there, or not allowed."""
    failed = (
        "JSMirrorConsumerSetupFailedErrF" if origin.is_mirror else "JSSourceConsumerSetupFailedErrF"
    )
    if blocks.status(headers)[0] == 503:
        return api_error(failed, err="no responders").body()
    try:
        answer = loads(ConsumerInfoResponse, payload)
    except (DecodeError, TypeError, ValueError):
        return api_error("JSInvalidJSONErr", err="consumer create response").body()
    told = answer.head.error
    if told is not None and _has_types(int, told.code, told.err_code):
        return replace(told, description=str(told.description)[:ERROR_LENGTH_MAX])
    info = answer.info
    if told is not None or info is None or info.config is None or not _is_sound(info):
        return api_error(failed, err="invalid consumer create response").body()
    if origin.declared.consumer is not None and (
        info.config.ack_policy is not AckPolicy.FLOW_CONTROL
    ):
        name = (
            "JSMirrorConsumerRequiresAckFCErr"
            if origin.is_mirror
            else "JSSourceConsumerRequiresAckFCErr"
        )
        return api_error(name).body()
    identity = (blocks.get(headers, IDENTITY) or b"").decode("utf-8", "replace") if headers else ""
    # It may have delivered something by now; where it began is at or behind what is acknowledged.
    begun = min(info.delivered.stream_seq, info.ack_floor.stream_seq, NUMBER_MAX)
    return Granted(info.name.encode(), max(begun, 0), identity[:IDENTITY_LENGTH_MAX])


def _is_sound(info: ConsumerInfo) -> bool:
    """Whether what is needed of a consumer is there: who answers may be anybody."""
    numbers = _has_types(int, info.delivered.stream_seq, info.ack_floor.stream_seq)
    return numbers and _has_types(str, info.name) and bool(info.name)


def _has_types(kind: type, *values: object) -> bool:
    return all(isinstance(value, kind) for value in values)
