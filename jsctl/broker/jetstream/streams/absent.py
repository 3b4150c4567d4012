"""Publishes that need what no stream here can have switched on, and how they are refused.

What asks for a feature, and which of several mistakes is named, is as in the real server with the
feature switched off: nothing of it may be stored as if it were a plain message.
"""

import re

from jsctl.api.errors import ApiError, api_error
from jsctl.broker.jetstream.streams import publish_headers as known
from jsctl.broker.subject.validity import is_valid_literal

Fields = dict[bytes, bytes]
_PURGE = b"purge"
_NUMBER = re.compile(rb"[+-]?[0-9]+")


def is_ingest(reply: bytes) -> bool:
    """Whether a publish belongs to the fast ingest protocol: its reply says so, not a header."""
    return reply.endswith(known.FAST_INGEST)


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


def late_refusal(fields: Fields, subject: bytes) -> ApiError | None:
    """Schedules and what only other streams may say; judged behind what is expected."""
    if fields.get(known.SCHEDULE):
        return api_error("JSMessageSchedulesDisabledErr")
    scheduler, following = fields.get(known.SCHEDULER), fields.get(known.SCHEDULE_NEXT)
    if following:
        named = scheduler and scheduler != subject and is_valid_literal(scheduler)
        if following != _PURGE or not named:
            return api_error("JSMessageSchedulesSchedulerInvalidErr")
        return api_error("JSMessageSchedulesDisabledErr")
    if scheduler:
        return api_error("JSMessageSchedulesSchedulerInvalidErr")
    if fields.get(known.STREAM_SOURCE):
        return api_error("JSMessageSourceHdrNotAllowedErr")
    return None
