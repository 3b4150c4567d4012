"""JetStream of one server: engine, API, direct gets, peers' frames and advisories, as one.

Loaded when it is switched on, whole when it exists. What replicas find out in a turn is passed on
here: the answer to whoever asked, the advisory to whoever listens.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from jsctl.broker import lazy
from jsctl.broker.accounts.accounts import AccountChange, AccountChangeKind
from jsctl.broker.assets.assets import StreamKey
from jsctl.broker.assets.engine import Engine
from jsctl.broker.assets.replicas.facts import (
    ArchiveNews,
    BatchesAbandoned,
    ConsumerAdvisories,
    ConsumerServes,
    MetaChanged,
    MirrorCaughtUp,
    ReplicaDamageChanged,
    StreamServes,
)
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.assets.traffic import RouterTraffic
from jsctl.broker.interest.targets import Sink, Subscription
from jsctl.broker.jsapi.answer_publisher import AnswerPublisher
from jsctl.broker.jsapi.direct_gets import DirectGets
from jsctl.broker.jsapi.intake import RequestIntake
from jsctl.broker.jsapi.live_view import ApiView
from jsctl.broker.jsapi.served import answer_body
from jsctl.broker.jsapi.service import ApiService
from jsctl.broker.jsapi.subscriptions import ApiSubscriptions, subscribe_api
from jsctl.broker.jsapi.usage import Usage
from jsctl.broker.node.engine_setup import engine_options, publish_limits, scrub_limits, server_card
from jsctl.broker.node.far_servers import FarServers
from jsctl.broker.node.peer_frames import PeerFrames
from jsctl.broker.options import Options
from jsctl.broker.peers.outbox import FRAMES
from jsctl.broker.ports import Disk, ZoneOffset
from jsctl.broker.routes.types import PeerChange
from jsctl.broker.routing.limits import ServerIdentity
from jsctl.broker.routing.router import Router
from jsctl.broker.routing.setup import random_name
from jsctl.broker.sessions.last_line import LastLine
from jsctl.broker.sessions.request_budget import RequestBudget
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.store.wal.new_store import NewStore
from jsctl.broker.system.advisories import JetStreamAdvisories
from jsctl.broker.system.outlet import EventOutlet
from jsctl.broker.turn import Jitter, LogLevel, LogLine, TurnInputs, TurnOutputs

LARGE_PARTS = (
    "jsctl.broker.handlers.streams",
    "jsctl.broker.system.monitoring.jetstream_facts",
    "jsctl.broker.system.monitoring.health_facts",
    "jsctl.broker.replication.last_writes",
)
"""What monitoring and the end of the process need where there is JetStream: each of them imports
most of it, which takes a turn of a tenth of a second where it is not there already."""

lazy.parts(*LARGE_PARTS)

REFRESH_NS = 250_000_000
"""How often is looked whether replicas are fresh enough for direct gets."""
CALM_NS = 2_000_000_000
"""So long after the last change a server alone goes on to look: nothing else makes a difference."""
ID_LENGTH = 22
ASKED = b"S"
"""Ends the subject of what other servers tell of themselves."""
_NO_CHANGE = (ConsumerAdvisories, ReplicaDamageChanged, ArchiveNews, BatchesAbandoned)
"""Facts behind which everything stands as before."""


class JetStream:
    """See the module. Reads or makes the store's identity: raises ConfigError, DiskError."""

    def __init__(
        self,
        options: Options,
        *,
        disk: Disk,
        jitter: Jitter,
        incarnation: str,
        identity: ServerIdentity,
        router: Router,
        line: LastLine,
        outlet: EventOutlet,
        budget: RequestBudget,
        zones: ZoneOffset,
        new_store: NewStore | None = None,
    ) -> None:
        streams: dict[StreamKey, StreamReplica] = {}
        usage = Usage(options, streams)
        self.engine = Engine(
            engine_options(options, identity, disk, incarnation, jitter, new_store),
            disk=disk,
            traffic=RouterTraffic(router, usage.enabled),
            jitter=jitter,
            new_id=lambda: random_name(jitter, ID_LENGTH),
            quota=usage,
            streams=streams,
            zones=zones,
            new_store=new_store,
        )
        self.view = ApiView(self.engine, options, usage, jitter)
        self._advisories = JetStreamAdvisories(self.engine, self.view, outlet)
        publisher = AnswerPublisher(router, self.engine)
        audit = self._advisories.api_answer
        self.api = ApiService(self.view, self.engine, publisher, audit, budget, line)
        self._intake = RequestIntake(self.engine, self.api, identity, line)
        self._frames = PeerFrames(router, self.engine, self.api, usage)
        self._direct = DirectGets(self.engine)
        system = router.accounts.system
        assert system is not None, "JetStream has one"
        self._far = FarServers(
            router,
            system,
            b"%s.%s.%s" % (FRAMES[0].encode(), self.engine.options.me.encode(), ASKED),
        )
        self._router = router
        self._identity = identity
        self._line = line
        self._domain = options.jetstream.domain
        self._refresh_due_ns = 0
        self.stirred = False
        """Something was taken after which `next_due_ns` may be another. Whoever looks clears it."""
        self._changed_ns = 0
        self._clustered = options.replicated

    def start(self, now_ns: int) -> None:
        """Recover. Raises DiskError, Damaged."""
        subscribe_api(self._router, self._domain)
        self.engine.start(now_ns)
        self._listen_anew(self._allot(self.view.usage.loaded))

    def reload(self, options: Options, changes: Sequence[AccountChange]) -> None:
        """Limits of the server and of accounts count from now on; what is led here listens in
        accounts that came, and no longer in those that went."""
        self.view.options = options
        self._changed_ns = self._router.now_ns
        anew = self._allot(lambda: self.view.usage.change_options(options))
        self.engine.show(server_card(options, self._identity))
        self.engine.upkeep.scrubber.limits = scrub_limits(options)
        self.engine.context.room.limits = publish_limits(options)
        for change in changes:
            if change.kind is not AccountChangeKind.CHANGED:
                anew.add(change.account.name)
        self._listen_anew(anew)

    def _allot(self, change: Callable[[], None]) -> set[str]:
        """Change what accounts have; those that may use JetStream now, or no longer. The log tells
        who does not have what it wants."""
        usage = self.view.usage
        owners = {account for account, _ in self.engine.assets.streams}
        had, refused = set(filter(usage.enabled, owners)), usage.refused
        change()
        for name, why in usage.refused.items():
            if refused.get(name) != why:
                text = f"Error configuring jetstream for account [{self._tag(name)}]: {why}"
                self.engine.context.logs.append(LogLine(LogLevel.ERROR, text))
        return had ^ set(filter(usage.enabled, owners))

    def _tag(self, name: str) -> str:
        account = self._router.accounts.get(name)
        return name if account is None or account.tag == name else f"{name}/{account.tag}"

    def _listen_anew(self, names: Iterable[str]) -> None:
        for name in sorted(names):
            self.engine.assets.listen_anew(name)
            self._direct.listen_anew(name)

    def peer_changed(self, name: str, change: PeerChange) -> None:
        """A broker was linked, or a link to one is gone."""
        self._frames.peer_changed(name, change)

    def far_changed(self, sub: Subscription, came: bool) -> None:
        """Another cluster listens to something, or no longer."""
        self._frames.far_changed(sub, came)

    def know_clusters(self, bare: frozenset[str], serving: frozenset[str], now_ns: int) -> None:
        """Which other clusters are of brokers without JetStream, as far as these are linked, and
        which have one with it; what nats-servers are is asked while that matters."""
        meta = self.engine.meta
        if meta.bootstrap is None:
            self._far.end()
            return
        if meta.bootstrap.other_clusters:
            self._far.ask(now_ns)
        meta.know_bare((bare | self._far.bare()) - serving)

    # In a turn

    def take_early(self, now_ns: int, inputs: TurnInputs) -> int:
        """The turn begins: some of the time that went by, and what the disk has done. The rest
        of the time is returned, for `take_late`."""
        ticks = self.engine.tick_early(now_ns, inputs.steady_ns)
        for ticket in inputs.synced:
            self.engine.synced(ticket)
        return ticks

    @property
    def waiting(self) -> bool:
        """Whether `go_on` has something to do."""
        return bool(self._direct.batches) or self.api.archives.under_way

    @property
    def unfinished(self) -> bool:
        """Whether the turn left something that is to go on soon."""
        return self.waiting or self.engine.groups.is_ahead

    @property
    def has_put_off(self) -> bool:
        """Whether the last turn left something to be applied."""
        return bool(self.engine.groups.put_off)

    def go_on(self) -> None:
        """More of the answers that an earlier turn began."""
        self._direct.go_on(self._line)
        self.api.archives.go_on()

    def is_of_peers(self, sink: Sink) -> bool:
        """Whether a sink captures what brokers say to each other."""
        return self._frames.owns(sink)

    def take(self, sink: Sink, now_ns: int) -> bool:
        """Act on what a sink captured; False if that is not for JetStream."""
        owner = sink.owner
        if isinstance(owner, ApiSubscriptions):
            self.stirred = True
            self._intake.take(owner, sink)
        elif self._frames.owns(sink):
            if self._frames.take(sink, now_ns):
                self.stirred = True
        elif owner is self._far:
            self._far.take(sink)
        elif self.api.archives.captured(sink):
            self.stirred = True
        else:
            return self._direct.take(sink, self._line)
        return True

    def pass_on(self) -> bool:
        """Answer and tell what replicas found out; whether assets or leaders changed."""
        changed = False
        self._changed_ns = self._router.now_ns
        for fact in self.engine.take_facts():
            match fact:
                case StreamServes():
                    made = fact.assignment
                    self._direct.serves((made.account, made.name))
                    if not self.api.archives.served(fact):
                        answer = partial(self._answer_served, fact)
                        self.api.settling.removed(made.account, made.name, answer)
                case ConsumerServes():
                    self.api.serving.take(fact)
                case MirrorCaughtUp():
                    self._direct.refresh()
                case _:
                    if isinstance(fact, MetaChanged):
                        self.api.overtaken.follow(fact.change)
                        self._direct.let_go((fact.change.account, fact.change.stream))
                    changed = changed or not isinstance(fact, _NO_CHANGE)
                    self._advisories.tell(fact)
        return changed

    def _answer_served(self, fact: StreamServes) -> None:
        self.api.answer(fact.request, answer_body(self.view, fact))

    def requests_dropped(self, count: int) -> None:
        """So many requests were dropped, as too many waited."""
        self._advisories.requests_dropped(count)

    def tick(self, now_ns: int) -> None:
        """What is due in the API, direct gets and advisories."""
        self._advisories.tick(now_ns)
        self.api.retry()
        self.api.gathering.tick()
        self.api.farewells.tick()
        self._direct.tick(self._line)
        if self.api.confirming.dropped:
            self._advisories.requests_dropped(self.api.confirming.take_dropped())
        if cut := self._direct.take_dropped():
            self._advisories.requests_dropped(cut)
        if now_ns >= self._refresh_due_ns and not self._is_calm:
            self._refresh_due_ns = now_ns + REFRESH_NS
            self._direct.refresh()

    @property
    def _is_calm(self) -> bool:
        """Whether the last look at replicas tells what the next one would."""
        return not self._clustered and self._refresh_due_ns >= self._changed_ns + CALM_NS

    def work(self, collect: Callable[[], None]) -> None:
        """All that groups and assets can do now. `collect` takes what comes of it, in between."""
        self.engine.run(collect)
        while self.api.confirming.go_on():
            self.engine.run(collect)
        if self.api.gathering.questions:
            self.engine.settle()
            self.api.gathering.reply()
        if self._direct.late:
            self.engine.settle()
            self._direct.answer_late(self._line)

    def emit(self, outputs: TurnOutputs, sessions: Sessions) -> None:
        """The turn ends: work for the disk, frames for peers, lines for the log."""
        if self.engine.context.crowds:
            self._crowd(sessions)
        outputs.disk = self.engine.seal()
        self._frames.send()
        if logs := self.engine.context.logs:
            outputs.logs += logs
            logs.clear()

    def _crowd(self, sessions: Sessions) -> None:
        """Clients that are far ahead of the log of a stream are not read until it caught up."""
        crowds = self.engine.context.crowds
        for group, origins in crowds.take_arrived().items():
            sessions.hold(group, origins.values())
        for group in crowds.take_over():
            sessions.relieve(group)

    @property
    def is_stirred(self) -> bool:
        """Whether input of this turn concerns JetStream although no sink captured it."""
        return bool(self.engine.context.facts) or self.engine.assets.pushers.stirred

    @property
    def has_read(self) -> bool:
        """Whether direct gets have left nothing to do, nor time that was told before them."""
        return not (self._direct.waits or self.engine.is_busy)

    @property
    def rests(self) -> bool:
        """Whether a turn before `urgent_ns` that brings nothing has nothing to do here."""
        return self.engine.rests and not (self.api.gathering.questions or self._direct.late)

    @property
    def expecting(self) -> bool:
        """Whether each turn may be the one that something waits for."""
        engine = self.engine
        return bool(
            self._direct.damaged.waiting
            or self.api.expecting
            or engine.meta.bootstrap is not None
            or engine.context.damaged
        )

    @property
    def pending(self) -> bool:
        """Whether something waits for its time that any turn may have begun."""
        waiting = self.api.held or self._direct.leaderless
        return bool(waiting or (self._clustered and self.engine.assets.unsettled))

    def urgent_ns(self) -> int | None:
        """When the next turn has to be for what messages may change at any time."""
        return self.view.now_ns if self._direct.batches else self.engine.urgent_ns()

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        awake = self.engine.peers.keeps_awake  # Then there is a turn to look in soon anyway.
        due_ns = None if awake or self._is_calm else self._refresh_due_ns
        for part in (self.engine, self.api, self._direct, self._advisories):
            at = part.next_due_ns()
            if at is not None and (due_ns is None or at < due_ns):
                due_ns = at
        return due_ns

    def close(self) -> None:
        """The process ends: release files."""
        self.engine.close()
