"""STREAM.CHECK: replicas read all that they have on their disks, and say how far they are."""

from jsctl.api.requests import StreamCheckRequest
from jsctl.broker.handlers.answers import is_empty, parsed
from jsctl.broker.handlers.decisions import CheckStream, Decision, Silent
from jsctl.broker.handlers.streams import existing
from jsctl.broker.handlers.view import View
from jsctl.broker.jetstream.requests import ApiRequest


def check(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.CHECK.<stream>; the leader asks the others, and tells of all."""
    start = not is_empty(request) and parsed(StreamCheckRequest, request).start
    found = existing(view, request.account, names[0])
    if view.stream_leader(found.account, found.name) is None:
        return Silent()
    return CheckStream(found.group.name, start)
