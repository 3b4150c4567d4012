"""The system account's side of a server: requests, events, monitoring pages, advisories.

Requests of the system account are plain subscriptions, so that every server of the cluster
answers. Ordinary accounts import a few of them: their requests cross into the system account
and the answers of all servers are led back. What only the server of the asking connection can
answer is listened to in every account, on this server alone.
"""

from typing import TYPE_CHECKING

from jsctl.broker.cluster.consumer_unit import ConsumerUnit
from jsctl.broker.cluster.engine import Engine
from jsctl.broker.handlers.sys_events import Event, EventSchedule, SysEvents
from jsctl.broker.handlers.sys_http import answer_http, known_path
from jsctl.broker.handlers.sys_services import (
    SERVED_HERE_ONLY,
    ActionKind,
    Outcome,
    Requester,
    SysAction,
    SysReply,
    SysRequest,
    SysServices,
)
from jsctl.broker.jetstream.consumer_facts import Advisory
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.node.advisories import JetStreamAdvisories
from jsctl.broker.node.api_view import ApiView, random_name
from jsctl.broker.node.client_events import ClientEvents
from jsctl.broker.node.client_orders import kick, send_lame_duck
from jsctl.broker.node.monitor_settings import system_account
from jsctl.broker.node.monitor_view import MonitorView
from jsctl.broker.node.subscriber_counts import SubscriberCounts
from jsctl.broker.node.system_imports import import_services, shown_permissions
from jsctl.broker.routing.accounts import Account
from jsctl.broker.routing.session import ClientSession
from jsctl.broker.routing.targets import Captured, Sink
from jsctl.broker.turn import Answer, Query

if TYPE_CHECKING:
    from jsctl.broker.node.node import Node

ID_LENGTH = 22
SUBSCRIBERS = b"$SYS.DEBUG.SUBSCRIBERS"
COUNT_NS = 1_000_000_000
"""How often is looked which links are there, for the sake of their counters."""


class SysService:
    """Owned by the node; also the owner of its sinks."""

    def __init__(self, node: "Node", monitor: MonitorView) -> None:
        self._node = node
        self._view = monitor
        self._system: Account | None = node.accounts.system
        name = system_account(node.options) if self._system is not None else ""
        self._system_name = name
        self._services = SysServices(self.new_id, system_account=name)
        self._events = SysEvents(self._services)
        self._schedule = EventSchedule.starting(0)
        self._clients = self._client_events()
        self._advisories: JetStreamAdvisories | None = None
        self._counts: SubscriberCounts | None = None
        self._reload = False
        self._count_due_ns = 0
        self._now_ns = 0

    def _client_events(self) -> ClientEvents:
        return ClientEvents(
            self._view,
            self._node.sessions,
            self._events,
            self._schedule,
            self._system_name,
            self._tell,
            self._tell_account,
            self._wanted,
        )

    def new_id(self) -> str:
        """A fresh id for an event."""
        return random_name(self._node.router.jitter, ID_LENGTH)

    def watch(self, engine: Engine, view: ApiView) -> JetStreamAdvisories:
        """JetStream starts: who is to be told of what happens there."""
        self._advisories = JetStreamAdvisories(
            engine,
            view,
            self._system_name,
            self._node.identity.server_id,
            self.new_id,
            self._publish,
            self._stirred,
        )
        return self._advisories

    def _stirred(self) -> None:
        self._schedule.jetstream_changed(self._node.router.now_ns)

    # Start and time

    def start(self, now_ns: int) -> None:
        """Listen; the node knows its addresses now."""
        self._now_ns = now_ns
        self._schedule = self._clients.schedule = EventSchedule.starting(now_ns)
        router, server_id = self._node.router, self._node.identity.server_id
        if self._system is not None:
            for pattern in (
                "$SYS.REQ.SERVER.PING",
                "$SYS.REQ.SERVER.PING.*",
                f"$SYS.REQ.SERVER.{server_id}.*",
                "$SYS.REQ.ACCOUNT.*.*",
                "$SYS.REQ.ACCOUNT.NSUBS",
            ):
                router.subscribe(self._system, pattern.encode(), Sink(self, self._system))
            import_services(router, self._system)
            inbox = f"$SYS._INBOX_.{server_id}."
            self._counts = SubscriberCounts(router, self._system, inbox.encode())
            self._counts.listen()
        for subject in sorted(SERVED_HERE_ONLY):
            router.subscribe_everywhere(subject.encode(), self)

    def tick(self, now_ns: int) -> None:
        """Clients that came and went, statistics, numbers of connections."""
        self._now_ns = now_ns
        if now_ns >= self._count_due_ns:
            self._count_due_ns = now_ns + COUNT_NS
            self._view.links.follow(self._node.router.routes, now_ns)
        self._clients.look(now_ns)
        if self._schedule.take_statsz(now_ns):
            self._send_statsz(now_ns)
        self._clients.account_events(now_ns)
        if self._counts is not None:
            self._counts.tick(now_ns)
        if self._advisories is not None:
            self._advisories.tick(now_ns)

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        due = [self._schedule.deadline_ns()] if self._system is not None else []
        more = [part.next_due_ns() for part in (self._advisories, self._counts) if part is not None]
        return min([*due, *(at for at in more if at is not None)], default=None)

    def _send_statsz(self, now_ns: int) -> None:
        if self._wanted(f"$SYS.SERVER.{self._node.identity.server_id}.STATSZ"):
            self._tell(self._events.stats(self._view.look(now_ns)))

    # Events

    def _wanted(self, subject: str) -> bool:
        system = self._system
        return system is not None and self._node.router.has_interest(system, subject.encode())

    def _tell(self, events: list[Event]) -> None:
        if self._system is not None:
            for subject, payload in events:
                self._node.router.publish(self._system, subject, payload)

    def _tell_account(self, account: str, event: Event) -> None:
        self._publish(account, *event)

    def _publish(self, account: str, subject: bytes, payload: bytes) -> None:
        found = self._node.accounts.get(account)
        if found is not None:
            self._node.router.publish(found, subject, payload)

    def accepted(self, session: ClientSession) -> None:
        """A client connected."""
        self._clients.accepted(session)

    def closing(self, session: ClientSession | None, reason: str) -> None:
        """The edge lost a client; it is told of once its session is closed."""

    def lame_duck(self) -> None:
        """The server begins to send its clients away."""
        self._tell(self._events.lame_duck(self._view.look(self._now_ns)))

    def shutdown(self) -> None:
        """The process ends."""
        self._tell(self._events.shutdown(self._view.look(self._now_ns)))

    # Monitoring pages

    def query(self, query: Query) -> Answer:
        """Answer a request on the monitoring port."""
        view = self._view.look(self._node.router.now_ns)
        base = view.settings.http_base_path
        path = query.path[len(base) :] if base and query.path.startswith(base) else query.path
        if known_path(path or "/"):
            view.asked(path or "/")
        found = answer_http(view, query.path, query.params)
        return Answer(query.token, found.status, found.content_type, found.body)

    # Requests

    def take(self, sink: Sink) -> None:
        """Serve what a sink captured."""
        if isinstance(sink.owner, SubscriberCounts):
            sink.owner.take(sink)
            return
        account = sink.account
        for captured in sink.take():
            if account is not None:
                self._serve(account, captured)

    def _serve(self, account: Account, captured: Captured) -> None:
        subject, reply, headers, payload, origin = captured
        session = origin if isinstance(origin, ClientSession) else None
        if subject == SUBSCRIBERS and self._count_everywhere(account, payload, reply):
            return
        request = SysRequest(
            subject.decode("utf-8", "replace"),
            reply.decode("utf-8", "replace"),
            headers,
            payload,
            _requester(account, session),
        )
        view = self._view.look(self._node.router.now_ns)
        outcome = self._services.serve(view, request)
        if isinstance(outcome, SysAction):
            outcome = self._act(view, outcome)
        self._answer(account, reply, outcome)

    def _count_everywhere(self, account: Account, payload: bytes, reply: bytes) -> bool:
        """Have all servers count; False when this one can tell alone."""
        links = self._node.links
        others = len(links.mesh.peers()) if links is not None else 0
        if not others or self._counts is None or not reply or len(payload.split()) != 1:
            return False
        self._counts.ask(account, payload, reply, others + 1)
        return True

    def _answer(self, account: Account, reply: bytes, outcome: Outcome) -> None:
        if isinstance(outcome, SysReply) and reply:
            self._node.router.publish(account, reply, outcome.payload, headers=outcome.headers)

    def _act(self, view: MonitorView, action: SysAction) -> SysReply:
        error = ""
        if action.kind is ActionKind.RELOAD:
            self._reload = True
        elif action.kind is ActionKind.KICK:
            error = kick(self._node.sessions, action.cid)
        else:
            error = send_lame_duck(self._node.sessions, action.cid)
        return self._services.done(view, error)

    def take_reload(self) -> bool:
        """Whether somebody asked for a reload since the last call."""
        wanted, self._reload = self._reload, False
        return wanted

    # JetStream

    def api_answer(self, request: ApiRequest, payload: bytes) -> None:
        """This server decided on a request of the JetStream API."""
        if self._advisories is not None:
            self._advisories.api_answer(request, payload)

    def consumer_advisories(self, unit: ConsumerUnit, facts: list[Advisory]) -> None:
        """What a consumer found out while it delivered."""
        if self._advisories is not None:
            self._advisories.consumer_facts(unit, facts)


def _requester(account: Account, session: ClientSession | None) -> Requester:
    """Who asks: the account of the sink, as the request is answered for that."""
    if session is None:
        return Requester(account.name)
    return Requester(
        account.name,
        user=session.user,
        permissions=shown_permissions(session),
    )
