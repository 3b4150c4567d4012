"""Where a request of the API has to go: its route, who decides on it, and that one's group."""

from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.assets.meta.group_file import META_GROUP
from jsctl.broker.handlers.decisions import Decider
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.live_view import ApiView

if TYPE_CHECKING:
    from jsctl.broker.handlers import api
    from jsctl.broker.handlers.api import Resolved
else:
    api = lazy.module("jsctl.broker.handlers.api")

SUBJECTS_KEPT = 512
"""Requests that are in flight at a time, as a rule; with one more all are looked up anew."""
SUBJECT_BYTES_KEPT = 512


class Placing:
    """Reads the view, and changes nothing."""

    __slots__ = ("_resolved", "_view")

    def __init__(self, view: ApiView) -> None:
        self._view = view
        self._resolved: dict[bytes, Resolved | None] = {}

    def resolve(self, request: ApiRequest) -> "Resolved | None":
        """The route; on its way a request asks for it several times, and others in between."""
        known, subject = self._resolved, request.subject
        if subject in known:
            return known[subject]
        found = api.resolve(subject)
        if len(subject) <= SUBJECT_BYTES_KEPT:
            if len(known) >= SUBJECTS_KEPT:
                known.clear()
            known[subject] = found
        return found

    def target(self, request: ApiRequest) -> Decider | None:
        """Who decides; None if nobody does."""
        resolved = self.resolve(request)
        if resolved is None or (resolved.route.system and not request.system):
            return None
        return api.decider(self._view, request, resolved)

    def place(self, request: ApiRequest) -> str | None:
        """The group that decides on a request; None if nobody does."""
        target = self.target(request)
        return None if target is None else self.group_of(target, request)

    def group_of(self, target: Decider, request: ApiRequest) -> str:
        """The name of who decides; of what is not there, that of the meta group."""
        resolved = self.resolve(request)
        if target is Decider.META_LEADER or resolved is None:
            return META_GROUP
        meta, call = self._view.meta, resolved.call
        stream = meta.stream(request.account, call.stream)
        if stream is None:
            return META_GROUP
        if target is Decider.STREAM_LEADER:
            return stream.group.name
        consumer = meta.consumer(request.account, call.stream, call.consumer)
        return META_GROUP if consumer is None else consumer.group.name

    def only_asks(self, request: ApiRequest) -> bool:
        """Whether a request changes nothing, however often it is decided on."""
        resolved = self.resolve(request)
        return resolved is not None and resolved.call.operation in api.QUESTIONS

    def unavailable(self, request: ApiRequest) -> bytes:
        """What is answered when nobody leads."""
        resolved = self.resolve(request)
        assert resolved is not None
        return api.unavailable(self._view, request, resolved)
