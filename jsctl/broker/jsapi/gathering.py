"""STREAM.LIST and CONSUMER.LIST: infos of many assets, asked of their leaders."""

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from jsctl.api.codec import DecodeError, loads
from jsctl.api.consumer import ConsumerInfo
from jsctl.api.stream import StreamInfo
from jsctl.broker import lazy
from jsctl.broker.assets.engine import Engine
from jsctl.broker.handlers.decisions import Gather
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.live_view import ApiView
from jsctl.broker.peers.items import GatherReply, GatherRequest
from jsctl.broker.sessions.request_budget import RequestBudget
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.broker.handlers import answers, consumer_info, lists
    from jsctl.broker.handlers.told import consumer_texts, stream_texts
    from jsctl.broker.jetstream import config_texts
else:
    answers = lazy.module("jsctl.broker.handlers.answers")
    consumer_info = lazy.module("jsctl.broker.handlers.consumer_info")
    lists = lazy.module("jsctl.broker.handlers.lists")
    consumer_texts = lazy.module("jsctl.broker.handlers.told.consumer_texts")
    stream_texts = lazy.module("jsctl.broker.handlers.told.stream_texts")
    config_texts = lazy.module("jsctl.broker.jetstream.config_texts")

DEADLINE_NS = 4_000_000_000
"""Infos that did not arrive by then are listed as missing."""
TOLD_NS = 1_000_000_000
"""So long others have to tell them, however long a request waited before it was its turn."""
INFO_UNITS = 4
"""Of an info that is made, or read, of a turn's `RequestBudget`."""

BEGINNINGS_KEPT = 4096
"""What infos begin with; where there are more, the oldest is made anew."""
BEGINNING_CHARS_MAX = 4096
"""Longer ones are made each time: metadata may be large, and there may be many with it."""

Info = bytes
"""As lists tell it."""
Asset = tuple[str, str]


@dataclass(slots=True)
class OpenGather:
    """Infos that are being collected."""

    account: str
    then: Callable[[dict[Asset, Info]], None]
    until_ns: int
    infos: dict[Asset, Info] = field(default_factory=dict)
    here: deque[Asset] = field(default_factory=deque)
    """Led by this server, and not looked at yet."""
    told: deque[tuple[Asset, bytes]] = field(default_factory=deque)
    """By others, and not read yet."""
    waiting: set[Asset] = field(default_factory=set)
    """Which others are asked for."""


@dataclass(slots=True)
class AskedInfos:
    """What another server asked for, and was not told yet."""

    peer: str
    token: int
    account: str
    assets: deque[Asset]
    infos: list[tuple[str, str, bytes]] = field(default_factory=list)
    """Found so far. All are told together: who hears nothing of an asset takes it for gone."""


@dataclass(slots=True)
class Gathering:
    """Collects on the server that was asked, and answers for what this server leads: a portion a
    turn, the first one first."""

    view: ApiView
    engine: Engine
    budget: RequestBudget
    answer: Callable[[ApiRequest, bytes], None]
    settled: Callable[[str, Iterable[str], Callable[[], None]], None]
    """Calls back when these streams of an account have applied what they have."""
    open: dict[int, OpenGather] = field(default_factory=dict)
    """Lists that wait for other servers. Only changed here."""
    questions: list[tuple[str, GatherRequest]] = field(default_factory=list)
    """Of other servers, that came in this turn and wait for `reply`. Only changed here."""
    _working: deque[int] = field(default_factory=deque)
    """Lists that this server has something to do for, by token."""
    _questions: deque[AskedInfos] = field(default_factory=deque)
    """Of other servers, that are being answered."""
    _next: int = 0
    beginnings: dict[tuple[str, str, str], tuple[object, int, str]] = field(default_factory=dict)
    """By account, stream and consumer: what an info begins with, behind the config and the time
    that it tells."""

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
        soonest_ns = self.view.now_ns + TOLD_NS
        open_ = OpenGather(
            account, then, max(until_ns or self.view.now_ns + DEADLINE_NS, soonest_ns)
        )
        elsewhere: dict[str, list[Asset]] = {}
        for asset in assets:
            if self._leads(account, asset):
                open_.here.append(asset)
                continue
            leader = self.engine.cluster.leader_of(self._group(account, asset))
            if leader and leader != self.view.me:
                elsewhere.setdefault(leader, []).append(asset)
                open_.waiting.add(asset)
        token = self.new_token()
        self.open[token] = open_
        for peer, asked in elsewhere.items():
            self.engine.outbox.parcel(peer).gathers.append(GatherRequest(token, account, asked))
        self._working.append(token)
        self._work()

    @property
    def busy(self) -> bool:
        """Whether the next turn has something to go on with."""
        return bool(self._working or self._questions)

    def go_on(self) -> None:
        """Another portion."""
        self._answer_questions()
        self._work()

    def _work(self) -> None:
        """Look at what is led here, and read what was told, as far as this turn has room."""
        while self._working and self.budget.left > 0:
            token = self._working[0]
            open_ = self.open.get(token)
            if open_ is None or self._advance(open_):
                self._working.popleft()
                if open_ is not None and not open_.waiting:
                    del self.open[token]
                    open_.then(open_.infos)

    def _advance(self, open_: OpenGather) -> bool:
        """More of a list; whether there is nothing left to do for it now."""
        account, infos, here, told = open_.account, open_.infos, open_.here, open_.told
        while here and self.budget.left > 0:
            asset = here.popleft()
            info = self.info(account, asset)
            if info is not None:
                infos[asset] = info
        while told and not here and self.budget.left > 0:
            asset, document = told.popleft()
            self.budget.left -= INFO_UNITS
            with suppress(DecodeError):  # It is listed as missing when the time is up.
                infos[asset] = _read(asset, document)
                open_.waiting.discard(asset)
        return not here and not told

    def _group(self, account: str, asset: Asset) -> str:
        stream, consumer = asset
        meta = self.view.meta
        found = meta.consumer(account, stream, consumer) if consumer else None
        if consumer:
            return "" if found is None else found.group.name
        assigned = meta.stream(account, stream)
        return "" if assigned is None else assigned.group.name

    def _leads(self, account: str, asset: Asset) -> bool:
        stream, name = asset
        view = self.view
        replica = (
            view.consumer_replica(account, stream, name)
            if name
            else view.stream_replica(account, stream)
        )
        return replica is not None and replica.group.leading

    def info(self, account: str, asset: Asset) -> Info | None:
        """The info of an asset that this server leads; None for others."""
        stream, name = asset
        self.budget.left -= INFO_UNITS
        text = self._of_consumer if name else self._of_stream
        info = text(account, stream, name)
        return None if info is None else info.encode("utf-8", "replace")

    def _of_stream(self, account: str, name: str, _: str) -> str | None:
        replica = self.view.stream_replica(account, name)
        if replica is None or replica.leading is None or not replica.group.leading:
            return None
        view, made = self.view, replica.assignment
        key, config = (account, name, ""), made.config
        begun = self._beginning(key, config, made.created_ns)
        if begun is None:
            text = lists.listed(config_texts.STREAMS, config)
            begun = stream_texts.begun(text, made.created_ns)
            self._keep(key, (config, made.created_ns, begun))
        cluster = answers.group_text(view, made.group) if view.clustered else ""
        upstreams = replica.leading.inbound.infos()
        return stream_texts.info_text(
            view, made, replica.stream, begun, upstreams, domain=view.domain, cluster=cluster
        )

    def _of_consumer(self, account: str, stream: str, name: str) -> str | None:
        replica = self.view.consumer_replica(account, stream, name)
        if replica is None or not replica.group.leading:
            return None
        view, consumer = self.view, replica.consumer
        key, config = (account, stream, name), consumer.config
        begun = self._beginning(key, config, consumer.created_ns)
        if begun is None:
            text = lists.listed(config_texts.CONSUMERS, config)
            begun = consumer_texts.begun(consumer, text)
            self._keep(key, (config, consumer.created_ns, begun))
        group = view.group(replica.group.name) if view.clustered else None
        return consumer_info.consumer_text(view, consumer, replica.leader, group, begun)

    def _beginning(self, key: tuple[str, str, str], config: object, created_ns: int) -> str | None:
        known = self.beginnings.get(key)
        if known is None or known[0] is not config or known[1] != created_ns:
            return None
        return known[2]

    def _keep(self, key: tuple[str, str, str], begun: tuple[object, int, str]) -> None:
        if len(begun[2]) > BEGINNING_CHARS_MAX:
            return
        if len(self.beginnings) >= BEGINNINGS_KEPT and key not in self.beginnings:
            del self.beginnings[next(iter(self.beginnings))]
        self.beginnings[key] = begun

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
        self._questions.append(
            AskedInfos(peer, request.token, request.account, deque(request.assets))
        )
        self._answer_questions()

    def _answer_questions(self) -> None:
        while self._questions and self.budget.left > 0:
            asked = self._questions[0]
            while asked.assets and self.budget.left > 0:
                asset = asked.assets.popleft()
                info = self.info(asked.account, asset)
                if info is not None:
                    asked.infos.append((*asset, info))
            if not asked.assets:
                self._questions.popleft()
                told = GatherReply(asked.token, asked.infos)
                self.engine.outbox.parcel(asked.peer).gathered.append(told)

    def told(self, reply: GatherReply) -> None:
        """Infos of another server."""
        open_ = self.open.get(reply.token)
        if open_ is None:
            return
        open_.told.extend(((stream, consumer), body) for stream, consumer, body in reply.infos)
        self._working.append(reply.token)
        self._work()

    def tick(self) -> None:
        """Do not wait any longer for what takes too long."""
        if not self.open:
            return
        now_ns = self.view.now_ns
        for token, open_ in list(self.open.items()):
            if open_.waiting and now_ns >= open_.until_ns:
                open_.waiting.clear()
                self._working.append(token)
        self._work()

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        waiting = (open_.until_ns for open_ in self.open.values() if open_.waiting)
        return min(waiting, default=None)


def _read(asset: Asset, document: bytes) -> Info:
    """Raises DecodeError."""
    if asset[1]:
        return lists.listed_consumer(loads(ConsumerInfo, document))
    return lists.listed_stream(loads(StreamInfo, document))


def _streams(assets: Iterable[Asset]) -> Iterable[str]:
    return dict.fromkeys(stream for stream, _ in assets)
