"""A delete is answered when those who lead what is deleted have let go of it, too.

The meta leader applies the removal first. A leader of the asset on another server still answers
for it until it has applied the same entry, and whoever asked for the delete would find there what
is gone. So the meta leader asks that server for its infos of these assets, as for a list, until
there are none. Other servers pass requests on to that leader, and it passes them on to the meta
leader; so all of them say from then on that there is no such thing.

The leader of a work queue is asked for a consumer of it, too, and says so when it has let go of
what was acknowledged: whoever makes another consumer then gets none of it once more.

A server that cannot be reached keeps no delete waiting: what it says when it is back is its old
state until it has caught up.
"""

from collections.abc import Callable, Iterable
from dataclasses import field
from functools import partial

from jsctl.api.codec import DecodeError, loads
from jsctl.api.consumer import ConsumerInfo
from jsctl.api.stream import StreamInfo
from jsctl.api.times import format_time
from jsctl.api.words import Retention
from jsctl.broker.assets.engine import Engine
from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment
from jsctl.broker.jetstream.meta.entries import Assignment
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.live_view import ApiView
from jsctl.broker.peers.items import GatherReply, GatherRequest
from jsctl.dataclass import dataclass

WAIT_NS = 2_000_000_000
"""A delete is answered then, whatever others still have."""
PAUSE_NS = 5_000_000
"""Before a server that still has something is asked again."""

Asset = tuple[str, str]


@dataclass(slots=True)
class Farewell:
    """One delete that is not answered yet."""

    request: ApiRequest
    reply: bytes
    assets: dict[Asset, str]
    """What is removed, and when it was created: the same name may be taken again already."""
    waiting: dict[str, list[Asset]]
    """Server -> what it may still have."""
    until_ns: int
    again_ns: int | None = None


@dataclass(slots=True)
class Farewells:
    """See the module. Belongs to the meta leader."""

    view: ApiView
    engine: Engine
    new_token: Callable[[], int]
    answer: Callable[[ApiRequest, bytes], None]
    removed: Callable[[str, str, Callable[[], None]], None]
    """Calls back when a stream that is led here has let go of what nobody wants."""
    open: dict[int, Farewell] = field(default_factory=dict)
    """Deletes that wait for other servers. Only changed here."""

    def begin(self, request: ApiRequest, reply: bytes, removed: Iterable[Assignment]) -> None:
        """These were removed here: answer when nobody else serves them."""
        assets: dict[Asset, str] = {}
        waiting: dict[str, list[Asset]] = {}
        for made in removed:
            asset = _asset(made)
            assets[asset] = format_time(made.created_ns)
            for peer in dict.fromkeys([*self._who_may_lead(made), *self._who_lets_go(made)]):
                waiting.setdefault(peer, []).append(asset)
        if not waiting:
            self._answer(request, reply, assets)
            return
        token, now_ns = self.new_token(), self.view.now_ns
        self.open[token] = Farewell(request, reply, assets, waiting, now_ns + WAIT_NS)
        self._ask(token, self.open[token])

    def _who_may_lead(self, made: Assignment) -> list[str]:
        """The leader; where none is known, all that may have become it. Others than this one."""
        cluster, group = self.engine.cluster, made.group
        leader = cluster.leader_of(group.name)
        peers = (leader,) if leader else group.members
        return [peer for peer in peers if peer != self.view.me and cluster.liveness.is_up(peer)]

    def _who_lets_go(self, made: Assignment) -> list[str]:
        """The same of the work queue that a consumer had."""
        if not isinstance(made, ConsumerAssignment):
            return []
        stream = self.view.meta.stream(made.account, made.stream)
        if stream is None or stream.config.retention is not Retention.WORK_QUEUE:
            return []
        return self._who_may_lead(stream)

    def _answer(self, request: ApiRequest, reply: bytes, assets: Iterable[Asset]) -> None:
        """When this server, too, has let go of what was acknowledged."""
        answer = partial(self.answer, request, reply)
        stream, consumer = next(iter(assets), ("", ""))
        if consumer:
            self.removed(request.account, stream, answer)
        else:
            answer()

    def _ask(self, token: int, farewell: Farewell) -> None:
        farewell.again_ns = None
        for peer, assets in farewell.waiting.items():
            request = GatherRequest(token, farewell.request.account, assets)
            self.engine.outbox.parcel(peer).gathers.append(request)

    def told(self, peer: str, reply: GatherReply) -> None:
        """What a server still serves."""
        farewell = self.open.get(reply.token)
        if farewell is None or peer not in farewell.waiting:
            return
        left = [
            (stream, consumer)
            for stream, consumer, document in reply.infos
            if _created(consumer, document) == farewell.assets.get((stream, consumer))
        ]
        if left:
            farewell.waiting[peer] = left
            farewell.again_ns = self.view.now_ns + PAUSE_NS
            return
        del farewell.waiting[peer]
        if not farewell.waiting:
            self._finish(reply.token)

    def _finish(self, token: int) -> None:
        farewell = self.open.pop(token)
        self._answer(farewell.request, farewell.reply, farewell.assets)

    def tick(self) -> None:
        """Ask again, and answer what took too long."""
        now_ns = self.view.now_ns
        for token, farewell in list(self.open.items()):
            for peer in list(farewell.waiting):
                if not self.engine.cluster.liveness.is_up(peer):
                    del farewell.waiting[peer]
            if now_ns >= farewell.until_ns or not farewell.waiting:
                self._finish(token)
            elif farewell.again_ns is not None and now_ns >= farewell.again_ns:
                self._ask(token, farewell)

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        due = [one.again_ns or one.until_ns for one in self.open.values()]
        return min(due, default=None)


def _asset(made: Assignment) -> Asset:
    if isinstance(made, ConsumerAssignment):
        return made.stream, made.name
    return made.name, ""


def _created(consumer: str, document: bytes) -> str | None:
    """When an asset was created; None if that cannot be read."""
    try:
        if consumer:
            return loads(ConsumerInfo, document).created
        return loads(StreamInfo, document).created
    except DecodeError:
        return None
