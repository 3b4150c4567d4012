"""Publishes that need what their stream has not switched on, and how they are refused.

What asks for a feature, and which of several mistakes is named, is as in the real server: nothing
of it may be stored as if it were a plain message.
"""

import re

from jsctl.api.errors import ApiError, api_error
from jsctl.broker.accel.columns import FAST_INGEST
from jsctl.broker.jetstream.streams import publish_headers as known

Fields = dict[bytes, bytes]
_NUMBER = re.compile(rb"[+-]?[0-9]+")


def is_ingest(reply: bytes) -> bool:
    """Whether a publish belongs to the fast ingest protocol: its reply says so, not a header."""
    return reply.endswith(FAST_INGEST)


def is_batch(fields: Fields) -> bool:
    """Whether a publish belongs to an atomic batch."""
    return bool(fields.get(known.BATCH_ID))


def counter_refusal(fields: Fields) -> ApiError | None:
    """Increments of counters; judged before all other headers."""
    increment = fields.get(known.INCREMENT)
    if not increment:
        return None
    if _NUMBER.fullmatch(increment) is None:
        return api_error("JSMessageIncrInvalidErr")
    return api_error("JSMessageIncrDisabledErr")
