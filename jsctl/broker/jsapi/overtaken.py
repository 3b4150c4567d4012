"""Requests that make or change an asset, and deletes of it that others ask for meanwhile.

Who made it is answered by its leader once that serves it. A delete of what is not served yet waits
for that a little: then both are answered as if one had come behind the other. Where the delete is
the quicker one all the same, with a leader at another server or an asset that gets none, nobody is
left who could tell what was made: the server where such a request came in sees by the meta state
that it was overtaken, and says at once that there is no such thing.
"""

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING

from jsctl.api.errors import api_error
from jsctl.broker import lazy
from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment
from jsctl.broker.jetstream.meta.entries import Assignment
from jsctl.broker.jetstream.meta.state import MetaChange
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.deciding.held import HeldRequest
from jsctl.broker.jsapi.deciding.placing import Placing
from jsctl.broker.jsapi.live_view import ApiView
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.broker.handlers import api
else:
    api = lazy.module("jsctl.broker.handlers.api")

SERVED_NS = 1_000_000_000
"""So long a delete waits for the answer to who made the asset, and an asset for a leader."""
KEPT_MAX = 1_000
"""Requests that are remembered before it is looked which of them are answered."""

Asset = tuple[str, str, str]


@dataclass(slots=True)
class Overtaken:
    """See the module."""

    view: ApiView
    placing: Placing
    waits: Callable[[ApiRequest], bool]
    """Whether a request that came in here has no answer yet."""
    refuse: Callable[[ApiRequest, bytes], None]
    """The only answer that a request gets."""
    made: dict[Asset, list[ApiRequest]] = field(default_factory=dict)
    """Requests that came in here, by what they made or changed. Only changed here."""
    _count: int = 0
    """At least so many are remembered."""
    _look: int = 0

    # At who decides on a delete

    def is_too_soon(self, held: HeldRequest, removed: Iterable[Assignment]) -> bool:
        """Whether a delete has to wait until these are served."""
        in_time = self.view.now_ns < held.asked_ns + SERVED_NS
        return in_time and any(map(self._is_coming, removed))

    def _is_coming(self, asset: Assignment) -> bool:
        """Whether somebody waits to hear that it is served, as far as known here."""
        view = self.view
        if view.meta.is_in_flight(asset):
            return True
        replica: StreamReplica | ConsumerReplica | None
        if isinstance(asset, ConsumerAssignment):
            replica = view.consumer_replica(asset.account, asset.stream, asset.name)
        else:
            replica = view.stream_replica(asset.account, asset.name)
        if replica is not None and replica.group.leading:
            return replica.assigned.is_owed
        is_new = view.now_ns < asset.created_ns + SERVED_NS
        return is_new and not view.leader_of(asset.group.name)

    # Where requests come in

    def follow(self, change: MetaChange) -> None:
        """What the meta group decided."""
        key, after = (change.account, change.stream, change.consumer), change.after
        if change.server is not None:
            return
        if after is None:
            self._gone(key)
        elif after.request is not None and after.request.entry == self.view.me:
            self._keep(key, after.request)

    def _keep(self, key: Asset, request: ApiRequest) -> None:
        if request in self.made.get(key, [])[-1:] or not self.waits(request):
            return
        self.made.setdefault(key, []).append(request)
        self._count += 1
        if self._count > max(KEPT_MAX, self._look):
            self._tidy()

    def _gone(self, key: Asset) -> None:
        for request in filter(self.waits, self.made.pop(key, ())):
            resolved = self.placing.resolve(request)
            assert resolved is not None, "it was decided on"
            stream = self.view.meta.stream(*key[:2])
            word = "JSConsumerNotFoundErr" if key[2] and stream else "JSStreamNotFoundErr"
            self.refuse(request, api.refusal(resolved.route, api_error(word)))

    def _tidy(self) -> None:
        """Forget who is answered."""
        waiting = {key: list(filter(self.waits, some)) for key, some in self.made.items()}
        self.made = {key: some for key, some in waiting.items() if some}
        self._count = sum(map(len, self.made.values()))
        self._look = 2 * self._count
