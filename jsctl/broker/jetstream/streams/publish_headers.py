"""The headers by which publishers steer a stream, read once a message."""

from collections.abc import Sequence

from jsctl.api.times import SECOND_NS, parse_duration
from jsctl.broker.jetstream.streams.ttl import NEVER

MSG_ID = b"Nats-Msg-Id"
EXPECTED_STREAM = b"Nats-Expected-Stream"
EXPECTED_LAST_SEQ = b"Nats-Expected-Last-Sequence"
EXPECTED_LAST_SUBJECT_SEQ = b"Nats-Expected-Last-Subject-Sequence"
EXPECTED_LAST_SUBJECT = b"Nats-Expected-Last-Subject-Sequence-Subject"
EXPECTED_LAST_MSG_ID = b"Nats-Expected-Last-Msg-Id"
ROLLUP = b"Nats-Rollup"
TTL = b"Nats-TTL"
INCREMENT = b"Nats-Incr"
BATCH_ID = b"Nats-Batch-Id"
SCHEDULE = b"Nats-Schedule"
SCHEDULE_NEXT = b"Nats-Schedule-Next"
SCHEDULER = b"Nats-Scheduler"
STREAM_SOURCE = b"Nats-Stream-Source"
MARKER_REASON = b"Nats-Marker-Reason"
FAST_INGEST = b".$FI"
"""What replies of the fast ingest protocol end with: it is asked for there, not in a header."""
KV_OPERATION = b"KV-Operation"
KV_PURGE = b"PURGE"
ROLLUP_SUBJECT = b"sub"
ROLLUP_ALL = b"all"
_LINE = b"\r\nNats-"
_ONLY_ID = b"NATS/1.0\r\nNats-Msg-Id:"


def nats_fields(headers: bytes) -> dict[bytes, bytes]:
    """The fields that begin with `Nats-`; of several with one name the first counts."""
    found: dict[bytes, bytes] = {}
    at = headers.find(_LINE)
    while at >= 0:
        end = headers.find(b"\r\n", at + 2)
        line = headers[at + 2 : end if end >= 0 else None]
        key, _, value = line.partition(b":")
        if key not in found:
            found[key] = value.strip()
        at = headers.find(_LINE, end) if end >= 0 else -1
    return found


def plain_ids(blocks: Sequence[bytes]) -> list[bytes]:
    """The message ids of header blocks that hold nothing else; empty if not all are such."""
    start = len(_ONLY_ID)
    ids = [
        block[start:-4].strip()
        if block.startswith(_ONLY_ID) and block.find(b"\r\n", start) == len(block) - 4
        else b""
        for block in blocks
    ]
    return ids if all(ids) else []


def parse_number(text: bytes) -> int | None:
    """A non-negative decimal number; None for anything else."""
    return int(text) if text.isdigit() and len(text) < 20 else None


def parse_ttl(text: bytes) -> int | None:
    """A time to live in ns; NEVER for `never`, None if it is not valid."""
    if text == b"never":
        return NEVER
    number = parse_number(text)
    if number is not None:
        return number * SECOND_NS or None
    try:
        duration_ns = parse_duration(text.decode(), go_only=True)
    except ValueError:
        return None
    return duration_ns // SECOND_NS * SECOND_NS if duration_ns >= SECOND_NS else None
