"""What requests cost that look through all subjects of a stream, in units of `RequestBudget`."""

import re

from jsctl.api.subjects import ApiCall
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.live_view import ApiView

LISTED = 16
"""Subjects a unit that are looked at, counted, and told of one by one."""
LOOKED_AT = 128
"""Subjects a unit that only a pattern is held against."""
_SEARCHES = {
    "stream_info": (b"subjects_filter", LISTED),
    "stream_msg_get": (b"by_subj", LOOKED_AT),
    "stream_purge": (b"filter", LOOKED_AT),
    "consumer_create": (b"", LISTED),
    "consumer_create_durable": (b"", LISTED),
    "consumer_reset": (b"", LISTED),
}
"""Operation -> what a request has to say for it, and how much is looked at for a unit."""
_PATTERN = re.compile(rb"[*>\\]|last_per_subject").search
"""What a pattern has, be it escaped."""


def search_units(view: ApiView, request: ApiRequest, call: ApiCall) -> int:
    """What a request costs beyond being taken. It is an estimate: no pattern is understood here."""
    search = _SEARCHES.get(call.operation)
    if search is None or search[0] not in request.payload or not _PATTERN(request.payload):
        return 0
    replica = view.stream_replica(request.account, call.stream)
    return 0 if replica is None else replica.store.subject_count // search[1]
