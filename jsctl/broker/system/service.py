"""The system account's side of a server: answers to requests, monitoring pages, events.

Made by `account` with the first request, page or listener; see `lazy`.
"""

from typing import TYPE_CHECKING

from jsctl.api.codec import dumps, encode
from jsctl.api.monitoring.accountz import Permissions, ResponsePermission
from jsctl.api.monitoring.connz import SubjectPermission
from jsctl.broker import lazy
from jsctl.broker.accounts.identity import NOT_VOUCHED
from jsctl.broker.interest.targets import Captured, Namespace
from jsctl.broker.login_options.permissions import SubjectPermission as Rules
from jsctl.broker.routing.trace import Trace
from jsctl.broker.sessions import standing
from jsctl.broker.sessions.request_budget import PAGE_BYTES
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.system.client_events import ClientEvent, ClientEventKind
from jsctl.broker.system.client_orders import kick, send_lame_duck
from jsctl.broker.system.encodings import compressed
from jsctl.broker.system.events import Event, SysEvents
from jsctl.broker.system.monitoring.connection_facts import conn_facts
from jsctl.broker.system.monitoring.http import answer_http, known_page, page_of
from jsctl.broker.system.monitoring.live_view import MonitorView
from jsctl.broker.system.outlet import EventOutlet
from jsctl.broker.system.reload_requests import ReloadRequests
from jsctl.broker.system.requests import (
    ActionKind,
    Outcome,
    Requester,
    SysAction,
    SysReply,
    SysRequest,
    SysServices,
)
from jsctl.broker.system.server import ServerParts
from jsctl.broker.system.subscriber_counts import SubscriberCounts
from jsctl.broker.system.trace_events import document
from jsctl.broker.turn import Answer, Query

if TYPE_CHECKING:
    from jsctl.broker.leafnodes.types import LeafEvent
    from jsctl.broker.system.monitoring import leaf_facts
    from jsctl.broker.system.resolver.requests import Answers, Resolver
else:
    leaf_facts = lazy.module("jsctl.broker.system.monitoring.leaf_facts", optional=True)

SUBSCRIBERS = b"$SYS.DEBUG.SUBSCRIBERS"


class SystemService:
    """See the module. `counts` is None where there is no system account, `resolver` where accounts
    are configured."""

    def __init__(
        self,
        server: ServerParts,
        outlet: EventOutlet,
        counts: SubscriberCounts | None,
        resolver: "Resolver | None" = None,
    ) -> None:
        self._server = server
        self._outlet = outlet
        self._counts = counts
        self._resolver = resolver
        self._monitor = MonitorView(server)
        self._services = SysServices(outlet.new_id, system_account=outlet.system)
        self._events = SysEvents(self._services)
        self.reloads = ReloadRequests()

    def _view(self) -> MonitorView:
        """The server as it is now."""
        return self._monitor.look(self._server.router.now_ns)

    # Events

    def _tell(self, events: list[Event]) -> None:
        for subject, payload in events:
            self._outlet.publish(self._outlet.system, subject, payload)

    def client_event(self, event: ClientEvent) -> None:
        """Tell what became of a client."""
        view, events = self._view(), self._events
        facts = conn_facts(event.session, closed=event.kind is not ClientEventKind.CONNECTED)
        match event.kind:
            case ClientEventKind.CONNECTED:
                self._tell(events.connected(view, facts))
            case ClientEventKind.DISCONNECTED:
                self._tell(events.disconnected(view, facts))
            case ClientEventKind.REFUSED:
                self._tell(events.refused(view, facts))
            case ClientEventKind.REFUSED_IN_ACCOUNT:
                self._outlet.publish(facts.account, *events.refused_in_account(view, facts))

    def leaf_event(self, event: "LeafEvent") -> None:
        """Tell what became of a leaf node or a hub."""
        view, events, facts = self._view(), self._events, leaf_facts.conn_facts(event.facts)
        told = events.connected if event.connected else events.disconnected
        self._tell(told(view, facts))

    def account_connections(self, name: str) -> None:
        """How many connections an account has."""
        view = self._view()
        account = view.account(name)
        if account is not None:
            self._tell(self._events.account_connections(view, account))

    def stats(self) -> None:
        """Statistics of the server."""
        self._tell(self._events.stats(self._view()))

    def lame_duck(self) -> None:
        """The server begins to send its clients away."""
        self._tell(self._events.lame_duck(self._view()))

    def shutdown(self) -> None:
        """The process ends."""
        self._tell(self._events.shutdown(self._view()))

    def traced(self, traces: list[Trace]) -> None:
        """Tell what became of traced messages, each in its account."""
        view = self._view()
        for trace in traces:
            event = document(trace, self._services.server(view))
            body, encoding = compressed(dumps(event), trace.accepts)
            router = self._server.router
            router.publish(trace.account, trace.dest, body, headers=encoding)

    # Monitoring pages

    def query(self, query: Query) -> Answer:
        """Answer a request on the monitoring port."""
        view = self._view()
        page = page_of(view.settings.http_base_path, query.path)
        if known_page(page):
            view.asked(page)
        found = answer_http(view, query.path, query.params)
        return Answer(query.token, found.status, found.content_type, found.body)

    # Requests

    def serve(self, account: Namespace, captured: Captured) -> None:
        """Serve one request that was made in an account."""
        if self._resolver is not None and account is self._server.accounts.system:
            answers = self._resolver.serve(captured)
            if answers is not None:
                self.answer_claims(answers)
                return
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
        view = self._view()
        outcome = self._services.serve(view, request)
        if isinstance(outcome, SysAction) and outcome.kind is ActionKind.RELOAD:
            self.reloads.ask(account, reply, headers)
            return
        if isinstance(outcome, SysAction):
            outcome = self._services.done(view, self._act(outcome), headers)
        self._answer(account, reply, outcome)

    def answer_claims(self, answers: "Answers") -> None:
        """Tell what became of requests about the JWTs of accounts."""
        system, view = self._server.accounts.system, self._view()
        assert system is not None
        for reply, said in answers:
            if isinstance(said, dict):
                said = dumps({"server": encode(self._services.server(view)), **said})
            self._answer(system, reply, SysReply(said))

    def _count_everywhere(self, account: Namespace, payload: bytes, reply: bytes) -> bool:
        """Have all servers count; False when this one can tell alone."""
        links, gates, counts = self._server.links, self._server.gates, self._counts
        others = len(links.mesh.peers()) if links is not None else 0
        far, words = gates is not None and bool(gates.links()), payload.split()
        if not (others or far) or counts is None or not reply or not words:
            return False
        counts.ask(account, words, reply, None if far else others + 1)
        return True

    def _answer(self, account: Namespace, reply: bytes, outcome: Outcome) -> None:
        # Who may only look is not to have a request made of what he is told.
        if isinstance(outcome, SysReply):
            self._server.budget.left -= len(outcome.payload) // PAGE_BYTES
        if isinstance(outcome, SysReply) and reply:
            self._server.router.answer(account, reply, outcome.payload, outcome.headers)

    def _act(self, action: SysAction) -> str:
        """Do something to a client; what went wrong."""
        order = kick if action.kind is ActionKind.KICK else send_lame_duck
        return order(self._server, action.cid)

    def reload_ended(self, refusal: str) -> None:
        """Answer all who asked for a reload: the file was read after each of them had."""
        view = self._view()
        for account, reply, headers in self.reloads.ended():
            self._answer(account, reply, self._services.done(view, refusal, headers))


def _requester(account: Namespace, session: ClientSession | None) -> Requester:
    """Who asks: the account of the sink, as the request is answered for that."""
    if session is None:
        return Requester(account.name)
    vouched = standing.vouched_of(session) or NOT_VOUCHED
    return Requester(
        account.name,
        user=session.user,
        account_tag=account.tag,
        user_tag=vouched.name,
        permissions=shown_permissions(session),
        expires_ns=vouched.expires_ns,
    )


def shown_permissions(session: ClientSession) -> Permissions | None:
    """What a client may do, as `USER.INFO` tells it; None for one that may do everything."""
    rules = None if session.identity is None else session.identity.permissions
    if rules is None:
        return None
    responses = rules.responses
    return Permissions(
        publish=_shown(rules.publish),
        subscribe=_shown(rules.subscribe),
        responses=(
            ResponsePermission(max=responses.messages_max, ttl=responses.expires_ns)
            if responses is not None
            else None
        ),
    )


def _shown(rules: Rules | None) -> SubjectPermission:
    if rules is None:
        return SubjectPermission()
    return SubjectPermission(allow=rules.allow or (), deny=rules.deny)
