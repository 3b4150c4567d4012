"""What requests cost that look through a whole stream, in units of `RequestBudget`."""

from jsctl.api.subjects import ApiCall
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.live_view import ApiView
from jsctl.broker.sessions.request_budget import may_search

LISTED = 16
"""Subjects or schedules a unit that are looked at, counted, sorted, or told of one by one."""
LOOKED_AT = 128
"""Subjects a unit that only a pattern is held against."""
_SEARCHES = {
    "stream_info": LISTED,
    "stream_msg_get": LOOKED_AT,
    "stream_purge": LOOKED_AT,
}
"""Operation -> how many subjects are looked at for a unit, if it is about a pattern."""


def search_units(view: ApiView, request: ApiRequest, call: ApiCall) -> int:
    """What a request costs beyond being taken. It is an estimate: nothing is understood here."""
    per_unit = _SEARCHES.get(call.operation)
    if per_unit is not None and may_search(request.payload):
        replica = view.stream_replica(request.account, call.stream)
        return 0 if replica is None else replica.store.subject_count // per_unit
    if call.operation == "stream_schedules":
        replica = view.stream_replica(request.account, call.stream)
        known = None if replica is None else replica.stream.schedules
        return 0 if known is None else len(known) // LISTED
    return 0
