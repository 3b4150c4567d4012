"""The system account: what has to be there before anybody asks.

Requests of the system account are plain subscriptions, so that every server of the cluster
answers. Ordinary accounts import a few of them: their requests cross into the system account
and the answers of all servers are led back. What only the server of the asking connection can
answer is listened to in every account, on this server alone.

Answers, pages and events come from `service`, which is loaded with the first of them.
"""

from collections import deque
from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.interest.targets import Captured, Namespace, Sink
from jsctl.broker.routing.trace import Trace
from jsctl.broker.sessions.last_line import client_of
from jsctl.broker.sessions.request_budget import REQUEST_UNITS
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.system.client_events import ClientEvents
from jsctl.broker.system.client_orders import make_room
from jsctl.broker.system.far_accounts import FarAccounts
from jsctl.broker.system.imports import SERVED_HERE_ONLY, import_jetstream, import_services
from jsctl.broker.system.outlet import EventOutlet
from jsctl.broker.system.schedule import EventSchedule
from jsctl.broker.system.server import ServerParts
from jsctl.broker.system.subscriber_counts import SubscriberCounts
from jsctl.broker.turn import Answer, Query, TurnOutputs

LARGE_PARTS = (
    "jsctl.api.server",
    "jsctl.api.monitoring.connz",
    "jsctl.api.account",
    "jsctl.api.monitoring.jsz",
    "jsctl.api.monitoring.statsz",
    "jsctl.api.monitoring.varz",
    "jsctl.api.monitoring.accountz",
    "jsctl.api.monitoring.health",
    "jsctl.api.events",
    "jsctl.api.requests",
    "jsctl.api.responses",
    "jsctl.broker.system.encodings",
    "jsctl.broker.system.monitoring.view",
    "jsctl.broker.system.monitoring.http",
    "jsctl.broker.system.requests",
    "jsctl.broker.routes.types",
    "jsctl.api.error_table",
    "jsctl.broker.accounts.request_info",
)
"""Of what answers and tells: those that take longest to import, for pieces of like size, and what
is imported where it is used. Nothing that needs JetStream: `node.jetstream` names that."""

if TYPE_CHECKING:
    from jsctl.broker.system import service as system_service
    from jsctl.broker.system.resolver import requests as claims_requests
    from jsctl.broker.system.resolver.requests import Resolver
    from jsctl.broker.system.service import SystemService
else:
    claims_requests = lazy.module("jsctl.broker.system.resolver.requests", optional=True)
    lazy.parts(*LARGE_PARTS)
    system_service = lazy.module("jsctl.broker.system.service")

COUNT_NS = 1_000_000_000
"""How often is looked which links are there, for the sake of their counters."""


class SystemAccount:
    """The owner of the sinks of its requests; tells events when they are due."""

    def __init__(self, server: ServerParts, outlet: EventOutlet, now_ns: int) -> None:
        self._server = server
        self._outlet = outlet
        self._system = server.accounts.system
        self._counts: SubscriberCounts | None = None
        if self._system is not None:
            inbox = f"$SYS._INBOX_{outlet.server_id}."
            self._counts = SubscriberCounts(server.router, self._system, inbox.encode())
        self._far: FarAccounts | None = None
        if self._system is not None and (server.links or server.gates or server.leafs):
            self._far = FarAccounts(server.router, self._system, outlet.server_id)
        self._resolver: Resolver | None = None
        if self._system is not None and server.options.operator.enabled:
            self._resolver = claims_requests.Resolver(server, self._system, outlet)
        schedule = EventSchedule.starting(now_ns)
        self._clients = ClientEvents(server.sessions, server.tallies, outlet, schedule)
        self._service: SystemService | None = None
        self.waiting: deque[tuple[Namespace, Captured]] = deque()
        """Requests that the next turn goes on with. Only changed here."""
        self._count_due_ns = 0

    def _loaded(self) -> "SystemService":
        """What answers and tells; loaded with the first need of it."""
        if self._service is None:
            self._service = system_service.SystemService(
                self._server, self._outlet, self._counts, self._resolver
            )
        return self._service

    def listen(self) -> None:
        """Be there for requests."""
        router, server_id = self._server.router, self._outlet.server_id
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
            options = self._server.options
            if options.replicated and not options.jetstream.enabled:
                import_jetstream(router, self._system)
        if self._resolver is not None:
            self._resolver.listen(self)
        if self._counts is not None:
            self._counts.listen()
        if self._far is not None:
            self._far.follow()
        for subject in sorted(SERVED_HERE_ONLY):
            router.subscribe_everywhere(subject.encode(), self)

    # Time

    def tick(self, now_ns: int) -> None:
        """Clients that came and went, statistics, numbers of connections."""
        if now_ns >= self._count_due_ns:
            self._count_due_ns = now_ns + COUNT_NS
            self._count_links(now_ns)
        for event in self._clients.look(now_ns):
            self._loaded().client_event(event)
        leafs = self._server.leafs
        for one in leafs.take_events() if leafs is not None else ():
            if self._clients.leaf(one, now_ns):
                self._loaded().leaf_event(one)
        if self._far is not None and self._far.tick(now_ns):
            self._clients.schedule.news(now_ns)
        if self._clients.schedule.take_statsz(now_ns) and self._outlet.wanted_of_server("STATSZ"):
            self._loaded().stats()
        for name in self._clients.accounts_to_tell(now_ns):
            self._loaded().account_connections(name)
        for part in (self._counts, self._resolver):
            if part is not None:
                part.tick(now_ns)

    def _count_links(self, now_ns: int) -> None:
        tallies, leafs = self._server.tallies, self._server.leafs
        tallies.links.follow(self._server.router.routes, now_ns)
        if leafs is not None:
            tallies.leafs.follow(leafs.links(), now_ns)
        if self._server.gates is not None:
            tallies.gates.follow(self._server.gates.links(), now_ns)

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        if self._system is None:
            return None
        due = [self._clients.schedule.deadline_ns()]
        for part in (self._counts, self._far, self._resolver):
            if part is not None and (part_ns := part.next_due_ns()) is not None:
                due.append(part_ns)
        return min(due)

    @property
    def expecting(self) -> bool:
        """Whether a client has yet to say who it is."""
        return self._clients.expecting

    # Events

    def accepted(self, session: ClientSession) -> None:
        """A client connected."""
        self._clients.accepted(session)

    def jetstream_changed(self, now_ns: int) -> None:
        """Assets or leaders are not what they were: statistics tell that soon."""
        self._clients.schedule.news(now_ns)

    def tell(self, traces: list[Trace]) -> None:
        """Messages were traced."""
        if traces:
            self._loaded().traced(traces)

    def reloaded(self) -> None:
        """What the server tells of itself may have changed, and what it has to hear."""
        if self._far is not None:
            self._far.follow()
        if self._outlet.wanted_of_server("STATSZ"):
            self._loaded().stats()

    def lame_duck(self) -> None:
        """The server begins to send its clients away."""
        if self._outlet.wanted_of_server("LAMEDUCK"):
            self._loaded().lame_duck()

    def shutdown(self) -> None:
        """The process ends."""
        if self._outlet.wanted_of_server("SHUTDOWN"):
            self._loaded().shutdown()

    # Requests

    def query(self, query: Query) -> Answer:
        """Answer a request on the monitoring port."""
        return self._loaded().query(query)

    def take(self, sink: Sink) -> None:
        """Serve what a sink captured."""
        if isinstance(sink.owner, SubscriberCounts):
            sink.owner.take(sink)
            return
        if isinstance(sink.owner, FarAccounts):
            self._hear_far(sink.owner, sink)
            return
        if sink.account is not None:
            self.waiting.extend((sink.account, captured) for captured in sink.take())
            self.go_on()

    def go_on(self, least: int = 0) -> None:
        """Serve as many of those that wait as the turn has room for, so many at least."""
        line, budget = self._server.line, self._server.budget
        while self.waiting and (budget.left > 0 or least > 0):
            least -= 1
            account, captured = self.waiting.popleft()
            budget.left -= REQUEST_UNITS
            line.run(client_of(captured[4]), self._loaded().serve, account, captured)

    def _hear_far(self, far: FarAccounts, sink: Sink) -> None:
        """Other servers tell what accounts have there: who is too many now has to go."""
        for account in far.take(sink):
            make_room(self._server, account)

    def changed(self, told: list[tuple[int, str]]) -> None:
        """Some of these have changed, or were refused: (ticket, what went wrong)."""
        if self._resolver is not None:
            self._loaded().answer_claims(self._resolver.carried_out(told))

    def emit(self, outputs: TurnOutputs) -> None:
        """What the edge is to do for those who asked since the last call."""
        outputs.reload = self._service is not None and self._service.reloads.take()
        if self._resolver is not None:
            outputs.claims = self._resolver.take_changes()

    def reload_ended(self, refusal: str) -> None:
        """Answer those who asked for one."""
        self._loaded().reload_ended(refusal)
