"""The headers by which publishers steer a stream, read once a message."""

from jsctl.api.times import SECOND_NS, parse_duration
from jsctl.broker.jetstream.streams.ttl import NEVER
from jsctl.broker.protocol import headers as blocks
from jsctl.broker.store.record import Publish
from jsctl.broker.subject.validity import is_valid_literal

NO_SEQUENCE = -1
"""What no message has."""

MSG_ID = b"Nats-Msg-Id"
EXPECTED_STREAM = b"Nats-Expected-Stream"
EXPECTED_LAST_SEQ = b"Nats-Expected-Last-Sequence"
EXPECTED_LAST_SUBJECT_SEQ = b"Nats-Expected-Last-Subject-Sequence"
EXPECTED_LAST_SUBJECT = b"Nats-Expected-Last-Subject-Sequence-Subject"
EXPECTED_LAST_MSG_ID = b"Nats-Expected-Last-Msg-Id"
ROLLUP = b"Nats-Rollup"
TTL = b"Nats-TTL"
INCREMENT = b"Nats-Incr"
COUNTER_SOURCES = b"Nats-Counter-Sources"
BATCH_ID = b"Nats-Batch-Id"
BATCH_SEQUENCE = b"Nats-Batch-Sequence"
BATCH_COMMIT = b"Nats-Batch-Commit"
SCHEDULE = b"Nats-Schedule"
SCHEDULE_NEXT = b"Nats-Schedule-Next"
SCHEDULER = b"Nats-Scheduler"
SCHEDULE_TARGET = b"Nats-Schedule-Target"
SCHEDULE_SOURCE = b"Nats-Schedule-Source"
SCHEDULE_TTL = b"Nats-Schedule-TTL"
SCHEDULE_ZONE = b"Nats-Schedule-Time-Zone"
SCHEDULE_ROLLUP = b"Nats-Schedule-Rollup"
NEXT_PURGE = b"purge"
SCHEDULING = frozenset({SCHEDULE, SCHEDULE_ZONE, SCHEDULE_NEXT, SCHEDULER})
"""What asks for schedules, or for the end of one."""
STREAM_SOURCE = b"Nats-Stream-Source"
MARKER_REASON = b"Nats-Marker-Reason"
KV_OPERATION = b"KV-Operation"
KV_PURGE = b"PURGE"
ROLLUP_SUBJECT = b"sub"
ROLLUP_ALL = b"all"
_LINE = b"\r\nNats-"
_TTL_SECONDS_MAX = (1 << 63) - 1
_TTL_DIGITS_MAX = len(str(_TTL_SECONDS_MAX))


def nats_fields(headers: bytes) -> dict[bytes, bytes]:
    """The fields that begin with `Nats-`; of several with one name the first counts. Spaces behind
    a value belong to it, as with nats-server: `1 ` is no number."""
    found: dict[bytes, bytes] = {}
    at = headers.find(_LINE)
    while at >= 0:
        end = headers.find(b"\r\n", at + 2)
        line = headers[at + 2 : end if end >= 0 else None]
        key, _, value = line.partition(b":")
        if key not in found:
            found[key] = value.lstrip(b" ")
        at = headers.find(_LINE, end) if end >= 0 else -1
    return found


def without_request_info(batch: list[Publish]) -> list[Publish]:
    """The same as they are to be stored: what came through a service import says who published it,
    which is for services, and for nobody who reads the stream."""
    if blocks.REQUEST_INFO not in b"".join([item[2] for item in batch]):
        return batch
    return [
        (subject, reply, blocks.remove(headers, blocks.REQUEST_INFO), payload, origin)
        for subject, reply, headers, payload, origin in batch
    ]


def rollup_of(fields: dict[bytes, bytes]) -> bytes:
    """What a message rolls up, in small letters; empty if nothing."""
    return fields.get(ROLLUP, b"").lower()


def ends_schedule(fields: dict[bytes, bytes]) -> bool:
    """Whether a message takes the place of a schedule, which goes when it is stored."""
    return fields.get(SCHEDULE_NEXT) == NEXT_PURGE and is_valid_literal(fields.get(SCHEDULER, b""))


def parse_number(text: bytes) -> int | None:
    """A non-negative decimal number; None for anything else."""
    return int(text) if text.isdigit() and len(text) < 20 else None


def expected_sequence(text: bytes) -> int | None:
    """What a publisher expects; None where nothing is. What is no number is never what is there."""
    if not text:
        return None
    number = parse_number(text)
    return NO_SEQUENCE if number is None else number


def parse_ttl(text: bytes) -> int | None:
    """A time to live in ns; NEVER for `never`, None if it is not valid."""
    if not text:
        return None
    if text.lower() == b"never":
        return NEVER
    if text.isdigit():
        digits = text.lstrip(b"0")
        seconds = int(digits or b"0") if len(digits) <= _TTL_DIGITS_MAX else _TTL_SECONDS_MAX + 1
        return seconds * SECOND_NS or None if seconds <= _TTL_SECONDS_MAX else None
    try:
        duration_ns = parse_duration(text.decode(), go_only=True)
    except ValueError:
        return None
    return duration_ns // SECOND_NS * SECOND_NS if duration_ns >= SECOND_NS else None
