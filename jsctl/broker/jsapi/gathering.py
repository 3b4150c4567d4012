"""STREAM.LIST and CONSUMER.LIST: infos of many assets, asked of their leaders."""

from collections.abc import Callable, Iterable
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from jsctl.api.codec import DecodeError, dumps, loads
from jsctl.api.consumer import ConsumerInfo
from jsctl.api.stream import StreamInfo
from jsctl.broker import lazy
from jsctl.broker.assets.engine import Engine
from jsctl.broker.handlers.decisions import Gather
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.live_view import ApiView
from jsctl.broker.peers.items import GatherReply, GatherRequest
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.broker.handlers import consumer_info, lists, streams
else:
    consumer_info = lazy.module("jsctl.broker.handlers.consumer_info")
    streams = lazy.module("jsctl.broker.handlers.streams")
    lists = lazy.module("jsctl.broker.handlers.lists")

DEADLINE_NS = 4_000_000_000
"""Infos that did not arrive by then are listed as missing."""

Info = StreamInfo | ConsumerInfo
Asset = tuple[str, str]


@dataclass(slots=True)
class OpenGather:
    """Infos that are being collected."""

    then: Callable[[dict[Asset, Info]], None]
    infos: dict[Asset, Info]
    waiting: set[Asset]
    until_ns: int


@dataclass(slots=True)
class Gathering:
    """Collects on the server that was asked, and answers for what this server leads."""

    view: ApiView
    engine: Engine
    answer: Callable[[ApiRequest, bytes], None]
    settled: Callable[[str, Iterable[str], Callable[[], None]], None]
    """Calls back when these streams of an account have applied what they have."""
    open: dict[int, OpenGather] = field(default_factory=dict)
    """Lists that wait for other servers. Only changed here."""
    questions: list[tuple[str, GatherRequest]] = field(default_factory=list)
    """Of other servers, that came in this turn and wait for `reply`. Only changed here."""
    _next: int = 0

    def new_token(self) -> int:
        """By which the answer to a question is known; none of an earlier process is like it, whose
        answer may come to this one."""
        self._next = (self._next or self.engine.options.boot) + 1
        return self._next

    def begin(self, gather: Gather, until_ns: int) -> None:
        """Answer a list request when all infos are there, or the time is up."""

        def finish(infos: dict[Asset, Info]) -> None:
            self.answer(gather.request, lists.finish(gather, infos))

        account, assets = gather.request.account, gather.assets
        self.settled(
            account, _streams(assets), partial(self.collect, account, assets, finish, until_ns)
        )

    def collect(
        self,
        account: str,
        assets: list[Asset],
        then: Callable[[dict[Asset, Info]], None],
        until_ns: int = 0,
    ) -> None:
        """Ask everybody who leads one of the assets; `then` has what there is in time."""
        open_ = OpenGather(then, {}, set(), until_ns or self.view.now_ns + DEADLINE_NS)
        elsewhere: dict[str, list[Asset]] = {}
        for asset in assets:
            info = self.info(account, asset)
            if info is not None:
                open_.infos[asset] = info
                continue
            leader = self.engine.cluster.leader_of(self._group(account, asset))
            if leader and leader != self.view.me:
                elsewhere.setdefault(leader, []).append(asset)
                open_.waiting.add(asset)
        if not open_.waiting:
            then(open_.infos)
            return
        token = self.new_token()
        self.open[token] = open_
        for peer, asked in elsewhere.items():
            self.engine.outbox.parcel(peer).gathers.append(GatherRequest(token, account, asked))

    def _group(self, account: str, asset: Asset) -> str:
        stream, consumer = asset
        meta = self.view.meta
        found = meta.consumer(account, stream, consumer) if consumer else None
        if consumer:
            return "" if found is None else found.group.name
        assigned = meta.stream(account, stream)
        return "" if assigned is None else assigned.group.name

    def info(self, account: str, asset: Asset) -> Info | None:
        """The info of an asset that this server leads; None for others."""
        stream, name = asset
        if name:
            consumer = self.view.consumer_replica(account, stream, name)
            if consumer is None or not consumer.group.leading:
                return None
            group = self.view.group(consumer.group.name)
            return consumer_info.consumer_info(self.view, consumer.consumer, consumer.leader, group)
        replica = self.view.stream_replica(account, stream)
        if replica is None or not replica.group.leading:
            return None
        return streams.stream_info(self.view, replica.assignment, replica.stream)

    def asked(self, peer: str, request: GatherRequest) -> None:
        """Another server collects. It is told at the end of the turn, when all is applied that
        it made known before it asked."""
        self.questions.append((peer, request))

    def reply(self) -> None:
        """Tell those who asked."""
        asked, self.questions = self.questions, []
        for peer, request in asked:
            self.settled(
                request.account, _streams(request.assets), partial(self._tell, peer, request)
            )

    def _tell(self, peer: str, request: GatherRequest) -> None:
        infos = []
        for stream, consumer in request.assets:
            info = self.info(request.account, (stream, consumer))
            if info is not None:
                infos.append((stream, consumer, dumps(info)))
        self.engine.outbox.parcel(peer).gathered.append(GatherReply(request.token, infos))

    def told(self, reply: GatherReply) -> None:
        """Infos of another server."""
        open_ = self.open.get(reply.token)
        if open_ is None:
            return
        for stream, consumer, document in reply.infos:
            info: Info
            try:
                info = loads(ConsumerInfo, document) if consumer else loads(StreamInfo, document)
            except DecodeError:
                continue  # It is listed as missing when the time is up.
            open_.infos[(stream, consumer)] = info
            open_.waiting.discard((stream, consumer))
        if not open_.waiting:
            del self.open[reply.token]
            open_.then(open_.infos)

    def tick(self) -> None:
        """Answer what took too long with what is there."""
        now_ns = self.view.now_ns
        for token, open_ in list(self.open.items()):
            if now_ns >= open_.until_ns:
                del self.open[token]
                open_.then(open_.infos)

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        return min((open_.until_ns for open_ in self.open.values()), default=None)


def _streams(assets: Iterable[Asset]) -> Iterable[str]:
    return dict.fromkeys(stream for stream, _ in assets)
