"""The live server as monitoring sees it. Reads only; `look` sets the moment."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from jsctl.api.monitoring.connz import LeafInfo, SubDetail, SublistStats
from jsctl.api.monitoring.health import RaftzGroup
from jsctl.api.stream import StreamInfo
from jsctl.broker import lazy
from jsctl.broker.accounts.accounts import Account
from jsctl.broker.accounts.imports import Wiring
from jsctl.broker.interest.links import GatewayLink
from jsctl.broker.interest.targets import ROUTE_IDS_FROM, LeafLink, Subscription
from jsctl.broker.linking.link_counts import LinkTraffic
from jsctl.broker.options import AccountOptions
from jsctl.broker.sessions import listing
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.system.monitoring import connection_facts as facts
from jsctl.broker.system.monitoring.settings_facts import settings
from jsctl.broker.system.monitoring.view import (
    AccountFacts,
    ConsumerFacts,
    GateFacts,
    HealthFacts,
    JetStreamFacts,
    ListedConn,
    Meets,
    PerKind,
    RouteFacts,
    Settings,
    Totals,
)
from jsctl.broker.system.server import ServerParts
from jsctl.broker.turn import ConnKind
from jsctl.dataclass import replace

if TYPE_CHECKING:
    from jsctl.broker.system.monitoring import (
        gateway_facts,
        health_facts,
        jetstream_facts,
        leaf_facts,
    )
    from jsctl.broker.system.monitoring.jetstream_facts import JetStreamReport
else:
    health_facts = lazy.module("jsctl.broker.system.monitoring.health_facts", optional=True)
    jetstream_facts = lazy.module("jsctl.broker.system.monitoring.jetstream_facts", optional=True)
    gateway_facts = lazy.module("jsctl.broker.system.monitoring.gateway_facts", optional=True)
    leaf_facts = lazy.module("jsctl.broker.system.monitoring.leaf_facts", optional=True)


OWN_REQUESTS = b"$SYS.REQ.SERVER."
NOBODY: Mapping[str, str] = {}
EVERYBODY = "PING"
"""What stands in the place of a server's id in requests for all."""


class MonitorView:
    """Implements `system.monitoring.view.ServerView`."""

    def __init__(self, server: ServerParts) -> None:
        self._server = server
        self._tallies = server.tallies
        self.now_ns = 0
        self.settings: Settings
        self._http_requests: dict[str, int] = {}
        self._by_id: dict[int, ClientSession | LeafLink] | None = None
        """Clients and leaf nodes by their ids; made when one is asked for."""
        self.look(0)

    def look(self, now_ns: int) -> "MonitorView":
        """See the server as it is now."""
        server, tallies = self._server, self._tallies
        self.now_ns = now_ns
        self._by_id = None
        self.settings = settings(
            server.options,
            server.identity,
            server.addresses,
            started_ns=tallies.started_ns,
            loaded_ns=tallies.loaded_ns or tallies.started_ns,
            runtime=tallies.process.runtime,
        )
        if server.gates is not None:
            self.settings = gateway_facts.with_gateways(self.settings, server.gates)
        return self

    # The server

    def totals(self) -> Totals:
        """Counters of the whole server."""
        server, process = self._server, self._tallies.process
        accounts = list(server.accounts)
        self._tallies.links.follow(server.router.routes, self.now_ns)
        self._tallies.leafs.follow(self._leaf_links(), self.now_ns)
        self._tallies.gates.follow(self._gate_links(), self.now_ns)
        links, leafs = self._tallies.links.now(), self._tallies.leafs.now()
        gates = self._tallies.gates.now()
        in_msgs = sum(account.in_messages for account in accounts)
        in_bytes = sum(account.in_bytes for account in accounts)
        out_msgs = sum(account.out_messages for account in accounts)
        out_bytes = sum(account.out_bytes for account in accounts)
        return Totals(
            memory_bytes=process.memory_bytes,
            cpu_percent=process.cpu_percent,
            cores=process.cores,
            threads_max=process.cores,
            connections=len(server.sessions),
            total_connections=server.sessions.total,
            remotes=len(server.links.mesh.peers()) if server.links is not None else 0,
            others=_known_servers(server),
            leafs=len(self._leaf_links()),
            in_msgs=in_msgs + links.in_msgs,
            in_bytes=in_bytes + links.in_bytes,
            out_msgs=out_msgs,
            out_bytes=out_bytes,
            in_client_msgs=max(in_msgs - leafs.in_msgs - gates.in_msgs, 0),
            in_client_bytes=max(in_bytes - leafs.in_bytes - gates.in_bytes, 0),
            out_client_msgs=max(out_msgs - links.out_msgs - leafs.out_msgs - gates.out_msgs, 0),
            out_client_bytes=max(
                out_bytes - links.out_bytes - leafs.out_bytes - gates.out_bytes, 0
            ),
            slow_consumers=self._slow(accounts),
            stale_connections=self._stale(),
            subscriptions=sum(len(account.sublist) for account in accounts),
            pinned_account_fails=server.accounts.unpinned.count,
            internal_errors=server.line.count,
            active_accounts=sum(account.connections + account.leafs > 0 for account in accounts),
        )

    def _slow(self, accounts: Sequence[Account]) -> PerKind:
        found = self._server.leafs
        leafs = found.connections.slow if found is not None else 0
        total = sum(account.slow_consumers for account in accounts)
        late = self._tallies.late
        return PerKind(
            clients=total - leafs,
            routes=late[ConnKind.ROUTE],
            gateways=late[ConnKind.GATEWAY],
            leafs=leafs,
        )

    def _stale(self) -> PerKind:
        found = self._server.leafs
        leafs = found.connections.stale if found is not None else 0
        far = self._server.gates
        gates = far.connections.stale if far is not None else 0
        return PerKind(clients=self._tallies.stale, gateways=gates, leafs=leafs)

    def _gate_links(self) -> list[GatewayLink]:
        found = self._server.gates
        return [] if found is None else found.links()

    def _leaf_links(self) -> list[LeafLink]:
        found = self._server.leafs
        return [] if found is None else found.links()

    def connect_urls(self) -> Sequence[str]:
        """Client URLs told to clients; a server without peers tells none."""
        return self._server.identity.connect_urls

    def http_requests(self) -> Mapping[str, int]:
        """How often each monitoring path was asked for."""
        return self._http_requests

    def asked(self, path: str) -> None:
        """A monitoring path was asked for."""
        self._http_requests[path] = self._http_requests.get(path, 0) + 1

    # Connections

    def connections(self, account: str = "") -> Sequence[ListedConn]:
        """Open client connections, of all accounts unless one is named, and leaf nodes among
        them."""
        sessions: Iterable[ClientSession] = self._server.sessions
        if account:
            sessions = [one for one in sessions if one.account.name == account]
        found = [ListedConn(one.client_id, partial(facts.conn_facts, one)) for one in sessions]
        leafs = self._server.leafs
        if leafs is not None:
            found += map(leaf_facts.listed, leafs.facts(account))
        return found

    def closed_connections(self, account: str = "") -> Sequence[ListedConn]:
        """The last closed ones, oldest first."""
        found = [
            ListedConn(one.client_id, partial(facts.conn_facts, one, closed=True), one.stopped_ns)
            for one in self._server.sessions.closed
            if account in ("", one.account.name)
        ]
        leafs = self._server.leafs
        if leafs is not None:
            closed = [one for one in leafs.connections.closed if account in ("", one.account)]
            found += map(leaf_facts.listed, closed)
            found.sort(key=lambda one: one.stop_ns)
        return found

    def subscriptions_of(self, cid: int) -> Sequence[SubDetail]:
        """Subscriptions of an open connection, a leaf node's too, or route."""
        if cid >= ROUTE_IDS_FROM:
            conn = cid - ROUTE_IDS_FROM
            links = [link for link in self._server.router.routes if link.conn == conn]
            return [facts.sub_detail(sub) for link in links for sub in listing.of_link(link)]
        found = self._known(cid)
        return () if found is None else facts.client_subscriptions(found)

    def listens(self, cid: int, wanted: Meets) -> bool:
        """Whether an open client or leaf node has such a subscription."""
        found = self._known(cid)
        return found is not None and any(
            wanted(sub.subject) for sub in found.subscriptions.values()
        )

    def _known(self, cid: int) -> ClientSession | LeafLink | None:
        if self._by_id is None:
            self._by_id = {one.client_id: one for one in self._server.sessions}
            self._by_id.update((one.leaf_id, one) for one in self._leaf_links())
        return self._by_id.get(cid)

    def routes(self) -> Sequence[RouteFacts]:
        """Registered route connections."""
        server = self._server
        if server.links is None:
            return ()
        self._tallies.links.follow(server.router.routes, self.now_ns)
        links = {link.conn: link for link in server.router.routes}
        return [
            facts.route_facts(fact, links[fact.conn], self._tallies.links.last_ns(fact.conn))
            for fact in server.links.mesh.links()
            if fact.conn in links
        ]

    def gateways(self, *, interest: bool) -> Sequence[GateFacts]:
        """Connections to and from other clusters; with what these listen to, if it is wanted."""
        gates = self._server.gates
        found = [] if gates is None else gates.facts(subscriptions=interest)
        return [gateway_facts.gate_facts(one) for one in found]

    def leafs(self, account: str, *, subscriptions: bool) -> Sequence[LeafInfo]:
        """Leaf nodes and hubs, of one account if it is named."""
        leafs = self._server.leafs
        found = [] if leafs is None else leafs.facts(account, subscriptions=subscriptions)
        return [leaf_facts.leaf_info(one) for one in found]

    def accounts(self) -> Sequence[AccountFacts]:
        """All accounts known here."""
        enabled, loaded_ns = self._jetstream_accounts(), self.settings.config_load_ns
        return [
            self._account(account, loaded_ns, jetstream=account.name in enabled)
            for account in self._server.accounts
        ]

    def account(self, name: str) -> AccountFacts | None:
        """One account."""
        found = self._server.accounts.get(name)
        if found is None:
            return None
        view = self._server.jetstream
        enabled = view is not None and view.usage.enabled(name)
        made = self._account(found, self.settings.config_load_ns, jetstream=enabled)
        lacks = view is not None and name in view.usage.refused
        return replace(made, lacks_jetstream=True) if lacks else made

    def _account(self, account: Account, loaded_ns: int, *, jetstream: bool) -> AccountFacts:
        leafs = self._server.leafs
        over = LinkTraffic() if leafs is None else leafs.connections.traffic_of(account)
        return facts.account_facts(account, loaded_ns, over, self.now_ns, jetstream=jetstream)

    def account_options(self, name: str) -> AccountOptions:
        """How an account is configured; nothing of one that is not known."""
        found = self._server.accounts.get(name)
        return AccountOptions() if found is None else found.options

    def imports(self, name: str) -> Sequence[Wiring]:
        """What an account has of others: all that it wants, but for what it is not given."""
        found = self._server.accounts.get(name)
        return () if found is None else self._server.router.imports.of(found)

    def account_subscriptions(
        self, account: str, wanted: Meets | None, offset: int, limit: int
    ) -> tuple[int, Sequence[SubDetail]]:
        """How many local subscriptions an account has, internal ones included, with the details of
        a page of them; all, or those that are `wanted`."""
        found = self._server.accounts.get(account)
        if found is None:
            return 0, []
        count, shown = listing.of_account(found, wanted, offset, limit)
        return count, list(map(facts.sub_detail, shown))

    def reached(self, account: str, subject: str, queue: str) -> int:
        """How many of these a subject reaches, in a queue group if one is named."""
        found = self._server.accounts.get(account)
        return 0 if found is None else listing.reached(found, subject.encode(), queue)

    def sublist_stats(self, account: str) -> SublistStats:
        """How an account's subscriptions are matched."""
        found = self._server.accounts.get(account)
        return facts.sublist_stats([] if found is None else [found])

    # JetStream

    def _jetstream_accounts(self) -> dict[str, str]:
        """Those that may use it, and what people call them."""
        view = self._server.jetstream
        if view is None:
            return {}
        accounts, enabled = self._server.accounts, view.usage.enabled
        return {account.name: account.tag for account in accounts if enabled(account.name)}

    def _report(self, accounts: Mapping[str, str] = NOBODY) -> "JetStreamReport | None":
        server = self._server
        view = server.jetstream
        if view is None or view.engine.cluster.removed:
            return None
        return jetstream_facts.JetStreamReport(view.engine, view, server.options, accounts)

    def jetstream(self, *, accounts: bool = True) -> JetStreamFacts | None:
        """With each account and its streams, if that is wanted; None while JetStream is not
        enabled."""
        report = self._report(self._jetstream_accounts())
        return None if report is None else report.facts(accounts=accounts)

    def stream_info(self, account: str, stream: str) -> StreamInfo | None:
        """Info of a local replica, with its cluster part."""
        report = self._report()
        return None if report is None else report.stream_info(account, stream)

    def consumers(self, account: str, stream: str) -> Sequence[ConsumerFacts]:
        """Local replicas of a stream's consumers."""
        report = self._report()
        return () if report is None else report.consumers(account, stream)

    def raft_groups(self) -> Sequence[tuple[str, str, RaftzGroup]] | None:
        """(account, group name, state) of all groups here; None when there never were any.

        A single server tells of none, as its groups replicate nothing.
        """
        report = self._report()
        if report is None or not self._server.options.replicated:
            return None
        return report.raft_groups()

    def queues(self) -> Mapping[str, tuple[int, int]]:
        """(waiting, in progress) of internal queues by name."""
        report = self._report()
        return {} if report is None else report.queues()

    def health(self, *, assets: bool = True) -> HealthFacts:
        """What health depends on, with the state of all assets if that is wanted."""
        engine, failed = self._server.engine, self._tallies.failed
        if engine is None:
            return HealthFacts(not_ready=failed, jetstream_enabled=False)
        return health_facts.HealthReport(engine, failed).facts(assets=assets)


def _known_servers(server: ServerParts) -> int:
    """How many servers there are beside this one, in its cluster, in others and behind leaf nodes:
    each listens to requests for itself in the system account."""
    found: set[str] = set()
    if server.links is not None:
        found.update(peer.server_id for peer in server.links.mesh.peers())
    routes, system = server.router.routes, server.accounts.system
    # The system account has a route of its own, as a rule; others may have very many subscriptions.
    own = [one for one in routes if system is not None and one.account == system.name]
    for link in own or routes:
        found |= _told(link.subscriptions.values())
    if server.gates is not None:
        for gate in server.gates.links():
            found |= _told(server.gates.routing.heard_of(gate))
    if server.leafs is not None:
        for leaf in server.leafs.links():
            if leaf.account.is_system:
                found |= _told(leaf.subscriptions.values())
    return len(found - {EVERYBODY, server.identity.server_id})


def _told(subs: Iterable[Subscription]) -> set[str]:
    return {
        sub.subject.split(b".", 4)[3].decode(errors="replace")
        for sub in subs
        if sub.account.is_system and sub.subject.startswith(OWN_REQUESTS)
    }
