"""The door of the system account: what has to be there before anybody asks.

Requests of the system account are plain subscriptions, so that every server of the cluster
answers. Ordinary accounts import a few of them: their requests cross into the system account
and the answers of all servers are led back. What only the server of the asking connection can
answer is listened to in every account, on this server alone.

Answers, pages and events come from `sys_service`, which is made with the first of them.
"""

from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.accounts.accounts import Account
from jsctl.broker.interest.targets import Sink
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.routing.setup import random_name, system_account
from jsctl.broker.routing.trace import Trace
from jsctl.broker.sessions.last_line import client_of
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.system.client_events import ClientEvents
from jsctl.broker.system.imports import SERVED_HERE_ONLY, import_services
from jsctl.broker.system.schedule import EventSchedule
from jsctl.broker.system.server import Server
from jsctl.broker.system.subscriber_counts import SubscriberCounts
from jsctl.broker.system.tallies import Tallies
from jsctl.broker.turn import Answer, Query

if TYPE_CHECKING:
    from jsctl.broker.assets.consumer_replica import ConsumerReplica
    from jsctl.broker.assets.engine import Engine
    from jsctl.broker.jetstream.consumers.facts import Advisory
    from jsctl.broker.jsapi.live_view import ApiView
    from jsctl.broker.system import advisories as jetstream_advisories
    from jsctl.broker.system import service as system_service
    from jsctl.broker.system.advisories import JetStreamAdvisories
    from jsctl.broker.system.service import SystemService
else:
    system_service = lazy.module("jsctl.broker.system.service")
    jetstream_advisories = lazy.module("jsctl.broker.system.advisories", optional=True)

ID_LENGTH = 22
COUNT_NS = 1_000_000_000
"""How often is looked which links are there, for the sake of their counters."""


class SystemAccount:
    """Owned by the node; also the owner of its sinks, and where events go."""

    def __init__(self, node: Server) -> None:
        self._node = node
        self.tallies = Tallies()
        self.counts: SubscriberCounts | None = None
        self._system: Account | None = node.accounts.system
        self.system_name = system_account(node.options) if self._system is not None else ""
        self._clients = ClientEvents(
            node.sessions,
            node.accounts,
            self.tallies,
            self,
            node.identity.server_id,
            self.system_name,
        )
        self._advisories: JetStreamAdvisories | None = None
        self._service: SystemService | None = None
        self._count_due_ns = 0

    def service(self) -> "SystemService":
        """What answers and tells; loaded with the first need of it."""
        if self._service is None:
            self._service = system_service.SystemService(self._node, self)
        return self._service

    def new_id(self) -> str:
        """A fresh id for an event."""
        return random_name(self._node.router.jitter, ID_LENGTH)

    def watch(self, engine: "Engine", view: "ApiView") -> "JetStreamAdvisories":
        """JetStream starts: who is to be told of what happens there."""
        self._advisories = jetstream_advisories.JetStreamAdvisories(
            engine,
            view,
            self.system_name,
            self._node.identity.server_id,
            self.new_id,
            self.publish,
            self._stirred,
        )
        return self._advisories

    def _stirred(self) -> None:
        self._clients.schedule.jetstream_changed(self._node.router.now_ns)

    # Start and time

    def start(self, now_ns: int) -> None:
        """Listen; the node knows its addresses now."""
        self.tallies.started_ns = now_ns
        self._clients.schedule = EventSchedule.starting(now_ns)
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
            self.counts = SubscriberCounts(router, self._system, inbox.encode())
            self.counts.listen()
        for subject in sorted(SERVED_HERE_ONLY):
            router.subscribe_everywhere(subject.encode(), self)

    def tick(self, now_ns: int) -> None:
        """Clients that came and went, statistics, numbers of connections."""
        if now_ns >= self._count_due_ns:
            self._count_due_ns = now_ns + COUNT_NS
            self.tallies.links.follow(self._node.router.routes, now_ns)
        self._clients.look(now_ns)
        if self._clients.schedule.take_statsz(now_ns) and self._wanted_of_server("STATSZ"):
            self.service().stats()
        self._clients.account_events(now_ns)
        if self.counts is not None:
            self.counts.tick(now_ns)
        if self._advisories is not None:
            self._advisories.tick(now_ns)

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        due = [self._clients.schedule.deadline_ns()] if self._system is not None else []
        more = [part.next_due_ns() for part in (self._advisories, self.counts) if part is not None]
        return min([*due, *(at for at in more if at is not None)], default=None)

    # Events

    def wanted(self, subject: str, account: str = "") -> bool:
        """Whether anybody listens; in the system account unless another is named."""
        place = self._node.accounts.get(account) if account else self._system
        return place is not None and self._node.router.has_interest(place, subject.encode())

    def _wanted_of_server(self, event: str) -> bool:
        return self.wanted(f"$SYS.SERVER.{self._node.identity.server_id}.{event}")

    def publish(self, account: str, subject: bytes, payload: bytes) -> None:
        """Tell everybody who listens."""
        found = self._node.accounts.get(account)
        if found is not None:
            self._node.router.publish(found, subject, payload)

    def accepted(self, session: ClientSession) -> None:
        """A client connected."""
        self._clients.accepted(session)

    def tell(self, traces: list[Trace]) -> None:
        """Messages were traced."""
        if traces:
            self.service().traced(traces)

    def lame_duck(self) -> None:
        """The server begins to send its clients away."""
        if self._wanted_of_server("LAMEDUCK"):
            self.service().lame_duck()

    def shutdown(self) -> None:
        """The process ends."""
        if self._wanted_of_server("SHUTDOWN"):
            self.service().shutdown()

    # Requests

    def query(self, query: Query) -> Answer:
        """Answer a request on the monitoring port."""
        return self.service().query(query)

    def take(self, sink: Sink) -> None:
        """Serve what a sink captured."""
        if isinstance(sink.owner, SubscriberCounts):
            sink.owner.take(sink)
            return
        account, line = sink.account, self._node.line
        for captured in sink.take():
            if account is not None:
                line.run(client_of(captured[4]), self.service().serve, account, captured)

    def take_reload(self) -> bool:
        """Whether somebody asked for a reload since the last call."""
        return self._service is not None and self._service.take_reload()

    # JetStream

    def api_answer(self, request: ApiRequest, payload: bytes) -> None:
        """This server decided on a request of the JetStream API."""
        if self._advisories is not None:
            self._advisories.api_answer(request, payload)

    def consumer_advisories(self, replica: "ConsumerReplica", facts: "list[Advisory]") -> None:
        """What a consumer found out while it delivered."""
        if self._advisories is not None:
            self._advisories.consumer_facts(replica, facts)
