"""The node: sessions, routes, JetStream and requests, composed; and the order of a turn."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.accounts.accounts import Accounts
from jsctl.broker.conf.units import advertised
from jsctl.broker.interest.targets import Captured, Sink
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.subscriptions import (
    ApiSubscriptions,
    from_route,
    is_twin,
    request_of,
    subscribe_api,
)
from jsctl.broker.node.lame_duck import LameDuck
from jsctl.broker.node.portions import Portions
from jsctl.broker.node.protocol_log import protocol_log
from jsctl.broker.options import Options
from jsctl.broker.ports import Disk
from jsctl.broker.routing import setup
from jsctl.broker.routing.router import Router
from jsctl.broker.routing.setup import random_name
from jsctl.broker.sessions.last_line import TEXT, LastLine, client_of
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.system.account import SystemAccount
from jsctl.broker.system.subscriber_counts import SubscriberCounts
from jsctl.broker.turn import (
    Accepted,
    Answer,
    Command,
    ConnKind,
    Jitter,
    LogLevel,
    LogLine,
    Query,
    TurnInputs,
    TurnOutputs,
)

if TYPE_CHECKING:
    from jsctl.broker.assets import engine as jetstream_engine
    from jsctl.broker.assets import traffic as asset_traffic
    from jsctl.broker.assets.engine import Engine
    from jsctl.broker.jsapi import direct_gets, live_view, replica_reports
    from jsctl.broker.jsapi import service as api_service
    from jsctl.broker.jsapi import usage as usage_of_accounts
    from jsctl.broker.jsapi.direct_gets import DirectGets
    from jsctl.broker.jsapi.live_view import ApiView
    from jsctl.broker.jsapi.service import ApiService
    from jsctl.broker.node import engine_setup, peer_frames
    from jsctl.broker.node.peer_frames import PeerFrames
    from jsctl.broker.routes import links as route_links
    from jsctl.broker.routes.links import Links
else:
    route_links = lazy.module("jsctl.broker.routes.links", optional=True)
    asset_traffic = lazy.module("jsctl.broker.assets.traffic", optional=True)
    replica_reports = lazy.module("jsctl.broker.jsapi.replica_reports", optional=True)
    engine_setup = lazy.module("jsctl.broker.node.engine_setup", optional=True)
    jetstream_engine = lazy.module("jsctl.broker.assets.engine", optional=True)
    usage_of_accounts = lazy.module("jsctl.broker.jsapi.usage", optional=True)
    live_view = lazy.module("jsctl.broker.jsapi.live_view", optional=True)
    api_service = lazy.module("jsctl.broker.jsapi.service", optional=True)
    peer_frames = lazy.module("jsctl.broker.node.peer_frames", optional=True)
    direct_gets = lazy.module("jsctl.broker.jsapi.direct_gets", optional=True)

REFRESH_NS = 250_000_000
"""How often is looked whether replicas are fresh enough for direct gets."""


class Node:
    """See the module. Owned by one caller; a turn at a time."""

    def __init__(
        self,
        options: Options,
        *,
        disk: Disk,
        jitter: Jitter,
        server_id: str,
        incarnation: str,
    ) -> None:
        self.options = options
        self._disk = disk
        self._jitter = jitter
        self._server_id = server_id
        self._incarnation = incarnation
        self.identity = setup.identity(options, server_id)
        self.accounts = Accounts(options)
        self.router = Router(self.accounts, setup.limits(options), jitter)
        self.sessions = Sessions(
            self.router, self.identity, self.router.limits, options.client.closed_clients_max
        )
        self.line = LastLine(self.sessions, self._close_route)
        self.addresses: dict[str, tuple[str, int]] = {}
        self._client_urls: tuple[str, ...] = ()
        self.links: Links | None = None
        self.engine: Engine | None = None
        self.api: ApiService | None = None
        self._view: ApiView | None = None
        self._frames: PeerFrames | None = None
        self._direct: DirectGets | None = None
        self._protocol_log = protocol_log(options)
        self._refresh_due_ns = 0
        self._logs: list[LogLine] = []
        self.failed = ""
        limits = options.jetstream.limits
        self._portions = Portions(limits.turn_units_max, limits.request_queue_max)
        """Why the node has to end, once it has to."""
        self._departure = LameDuck(options, None, self.sessions, self.identity, jitter)
        self._sys = SystemAccount(self)

    # Start

    def listening(self, kind: str, host: str, port: int, reached_at: Sequence[str] = ()) -> None:
        """Before `start`: where the edge listens; kind is client, cluster or monitor.

        `reached_at` are the hosts by which others find it: addresses, where `host` is "any".
        """
        self.addresses[kind] = (host, port)
        if kind == "client":
            told = advertised(self.options.client_advertise, port)
            self.identity.host, self.identity.port = told or (host, port)
            self._client_urls = setup.client_urls(told, reached_at, port)

    def start(self, now_ns: int) -> TurnOutputs:
        """Recover. Raises ConfigError, DiskError, Damaged."""
        self.router.now_ns = now_ns
        if self.options.clustered:
            self.links = route_links.Links.of(
                self.options,
                self._server_id,
                self.addresses,
                self._client_urls,
                self.router,
                self.sessions,
                self._jitter,
            )
        if self.options.jetstream.enabled:
            self._start_jetstream(now_ns)
        self._sys.start(now_ns)
        if self.links is not None:
            self.links.mesh.start(now_ns)
        return self.turn(TurnInputs(), now_ns)

    def _start_jetstream(self, now_ns: int) -> None:
        options = self.options
        traffic = asset_traffic.RouterTraffic(self.router)
        reports = replica_reports.ReplicaReports()
        engine_options = engine_setup.engine_options(
            options, self._disk, self._incarnation, self._jitter
        )
        engine: Engine = jetstream_engine.Engine(
            engine_options,
            disk=self._disk,
            traffic=traffic,
            jitter=self._jitter,
            new_id=lambda: random_name(self._jitter, 22),
            reports=reports,
            news=lambda: engine_setup.news(options, engine, self._server_id, self.identity),
        )
        usage = usage_of_accounts.Usage(options, engine.assets)
        view: ApiView = live_view.ApiView(engine, options, usage, self._jitter)
        self.engine, self._view = engine, view
        self.api = api_service.ApiService(
            view, engine, self._publish, self._publish_at, self._sys.api_answer, self.line
        )
        self._frames = peer_frames.PeerFrames(self.router, engine, self.api, usage)
        self._direct = direct_gets.DirectGets(engine)
        self._departure.engine = engine
        reports.view, reports.answer = view, self.api.answer
        reports.propose_meta = engine.to_meta
        reports.serves = self._direct.serves
        reports.advise = self._sys.consumer_advisories
        engine.env.watcher = self._sys.watch(engine, view)
        subscribe_api(self.router, options.jetstream.domain)
        engine.start(now_ns)

    # The turn

    def turn(self, inputs: TurnInputs, now_ns: int) -> TurnOutputs:
        """Take everything that happened, answer with everything that is to be done."""
        self.router.now_ns = now_ns
        if inputs.process is not None:
            self._sys.tallies.process = inputs.process
        engine = self.engine
        late = engine.tick_early(now_ns) if engine is not None else 0
        self._take_disk(inputs)
        self._take_connections(inputs, now_ns)
        for command in inputs.commands:
            self._command(command, now_ns)
        for sink in self._portions.begin():
            self._take_sink(sink)
        self._collect()
        if engine is not None:
            engine.tick_late(late)
        self._tick(now_ns)
        if engine is not None:
            self._work(engine)
        outputs = TurnOutputs()
        for query in inputs.queries:
            outputs.answers.append(self._answer(query))
        self._emit(outputs, now_ns)
        return outputs

    def _take_disk(self, inputs: TurnInputs) -> None:
        if self.engine is not None:
            for ticket in inputs.synced:
                self.engine.synced(ticket)
        for _, reason in inputs.disk_failed:
            self._logs.append(
                LogLine(
                    LogLevel.FATAL,
                    f"The store cannot be written: {reason}; nothing unsynced was acknowledged,"
                    " the server stops",
                )
            )
            self.failed = "disk failure"

    def _take_connections(self, inputs: TurnInputs, now_ns: int) -> None:
        sessions, links, run = self.sessions, self.links, self.line.run
        self.line.count += len(inputs.faults)
        for accepted in inputs.accepted:
            run(accepted.conn, self._accept, accepted, now_ns)
        for conn, ok in inputs.verified:
            run(conn, sessions.verified, conn, ok)
        self._take_pending(inputs)
        for conn in sessions.begin(len(inputs.chunks)):
            run(conn, sessions.go_on, conn)
        for conn, chunk in inputs.chunks:
            if self._protocol_log is not None:
                self._protocol_log.received(conn, chunk)
            if links is not None and links.owns(conn):
                run(conn, links.feed, conn, chunk, now_ns)
            else:
                run(conn, sessions.feed, conn, chunk, now_ns)
        self._take_closed(inputs, now_ns)
        self._follow_links()

    def _accept(self, accepted: Accepted, now_ns: int) -> None:
        if accepted.kind is ConnKind.CLIENT:
            session = self.sessions.accept(accepted, now_ns)
            self._sys.accepted(session)
            if self._protocol_log is not None:
                self._protocol_log.accepted(session)
        elif self.links is not None:
            self.links.opened(accepted, now_ns)

    def _close_route(self, conn: int) -> None:
        if self.links is not None and self.links.owns(conn):
            self.links.mesh.bad(conn, "Internal Server Error", "Internal Error", self.router.now_ns)

    def _take_pending(self, inputs: TurnInputs) -> None:
        for conn, unsent in inputs.pending:
            if self.links is not None and self.links.owns(conn):
                self.links.pending(conn, unsent)
            else:
                self.sessions.client_pending(conn, unsent)

    def _take_closed(self, inputs: TurnInputs, now_ns: int) -> None:
        for dial, reason in inputs.dial_failed:
            if self.links is not None:
                self.links.mesh.dial_failed(dial.token, reason, now_ns)
        for conn, reason in inputs.closed:
            if self.links is not None and self.links.owns(conn):
                self.links.closed(conn, reason, now_ns)
            else:
                self.sessions.gone(conn, reason)
                if self._protocol_log is not None:
                    self._protocol_log.gone(conn, reason)

    def _follow_links(self) -> None:
        if self.links is None:
            return
        self.links.follow()
        if self.links.urls is not None:
            self.identity.connect_urls, self.links.urls = self.links.urls, None
            self.sessions.send_info()
        for name, linked in self.links.take_peers():
            if self._frames is not None:
                self._frames.peer_changed(name, linked)

    def _command(self, command: Command, now_ns: int) -> None:
        if command is Command.RELOAD:
            return
        before = self._departure.lame
        self._departure.command(command, now_ns)
        if self._departure.lame and not before:
            self._sys.lame_duck()
            if self.links is not None:
                self.links.mesh.lame_duck()

    def _tick(self, now_ns: int) -> None:
        self.sessions.tick(now_ns)
        if self.links is not None:
            self.links.tick(now_ns)
            self._follow_links()
        self._sys.tick(now_ns)
        if self.api is not None:
            self.api.retry()
            self.api.gathering.tick()
        if self._direct is not None and now_ns >= self._refresh_due_ns:
            self._refresh_due_ns = now_ns + REFRESH_NS
            self._direct.refresh()

    def _work(self, engine: "Engine") -> None:
        assert self.api is not None
        engine.run(self._collect)
        while self.api.confirmed():
            engine.run(self._collect)

    # Captures

    def _collect(self) -> None:
        """Hand what sinks captured to whom it concerns."""
        while sinks := self.router.take_dirty():
            if self.engine is not None:
                sinks = self.engine.collect(sinks)
            for sink in sinks:
                self._take_sink(sink)

    def _take_sink(self, sink: Sink) -> None:
        owner = sink.owner
        of_peers = self._frames is not None and owner is self._frames
        if not of_peers and not isinstance(owner, SubscriberCounts):
            self._portions.cut(sink)
        if isinstance(owner, ApiSubscriptions):
            self._take_api(owner, sink)
        elif self._frames is not None and of_peers:
            self._frames.take(sink, self.router.now_ns)
        elif self._direct is None or not self._direct.take(sink, self.line):
            self._sys.take(sink)

    def _take_api(self, owner: ApiSubscriptions, sink: Sink) -> None:
        api = self.api
        assert api is not None
        for captured in sink.take():
            link = from_route(captured)
            if link is not None and not self._answers_for(link.peer):
                continue
            if link is not None and is_twin(owner, captured):
                continue
            found: list[ApiRequest] = []
            if self.line.run(client_of(captured[4]), self._understand, owner, captured, found):
                api.take(found[0])

    def _understand(
        self, owner: ApiSubscriptions, captured: Captured, found: list[ApiRequest]
    ) -> None:
        """What a request says and who decides on it; nothing is changed by it yet."""
        api, engine, identity = self.api, self.engine, self.identity
        assert api is not None and engine is not None
        me, name = engine.options.me, identity.server_name
        found.append(request_of(owner, captured, me, identity.cluster, name))
        api.place(found[0])

    def _answer(self, query: Query) -> Answer:
        answers: list[Answer] = []
        if self.line.run(0, lambda: answers.append(self._sys.query(query))):
            return answers[0]
        return Answer(query.token, 500, "text/plain; charset=utf-8", TEXT)

    def _answers_for(self, server_id: str) -> bool:
        """Whether a request that another server routed here is ours: brokers see to their own
        clients, for those of other servers the meta leader does."""
        engine = self.engine
        assert engine is not None
        for news in engine.servers.values():
            if news.server_id == server_id and news.facts.jetstream:
                return False
        return engine.founding is not None and engine.meta.group.leading

    def _publish(self, account: str, subject: bytes, headers: bytes, payload: bytes) -> None:
        found = self.accounts.get(account)
        if found is not None:
            self.router.publish(found, subject, payload, headers=headers)

    def _publish_at(
        self, account: str, peer: str, subject: bytes, headers: bytes, payload: bytes
    ) -> bool:
        found = self.accounts.get(account)
        news = self.engine.servers.get(peer) if self.engine is not None else None
        if found is None or news is None:
            return False
        return self.router.publish_at(found, news.server_id, subject, headers, payload)

    # The end of the turn

    def _emit(self, outputs: TurnOutputs, now_ns: int) -> None:
        engine = self.engine
        self._departure.step(now_ns, outputs)
        if outputs.exit:
            self._sys.shutdown()
        if engine is not None:
            outputs.disk += engine.seal()
            assert self._frames is not None
            self._frames.send()
            outputs.logs += engine.env.logs
            engine.env.logs.clear()
        self._sys.tell(self.router.tracing.take())
        self.sessions.emit(outputs)
        if self._protocol_log is not None:
            self._protocol_log.sent(outputs.writes)
            for conn, reason in outputs.closes:
                self._protocol_log.gone(conn, reason)
            outputs.logs += self._protocol_log.take()
        if self.links is not None:
            self.links.emit(outputs)
        outputs.logs += self._logs + self._departure.logs
        outputs.faults += self.line.take()
        self._logs, self._departure.logs = [], []
        if self.failed:
            outputs.exit = outputs.exit or self.failed
        if outputs.exit and engine is not None:
            engine.close()
        outputs.reload = self._sys.take_reload()
        outputs.deadline_ns = self._deadline(now_ns)

    def _deadline(self, now_ns: int) -> int | None:
        due: list[int | None] = [
            now_ns if self._portions.waiting else None,
            self.sessions.deadline_ns(),
            self._sys.next_due_ns(),
            self._departure.next_due_ns(now_ns),
        ]
        if self.links is not None:
            due.append(self.links.mesh.deadline_ns)
        if self.engine is not None and self.api is not None:
            due += [self.engine.next_due_ns(), self.api.next_due_ns()]
            due.append(self._refresh_due_ns)
        return min((at for at in due if at is not None), default=None)

    def reload(self, options: Options) -> None:
        """Checked options; they count from the next turn, which has Command.RELOAD."""
        self.options = options
        self._protocol_log = protocol_log(options)
        self._sys.tallies.loaded_ns = self.router.now_ns
        self.router.limits = setup.limits(options)
