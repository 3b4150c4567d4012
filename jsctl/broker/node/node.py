"""The node as the edge drives it: it is told where the edge listens, starts, and takes turns."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.accounts.accounts import Accounts
from jsctl.broker.conf.units import advertised
from jsctl.broker.errors import ConfigError
from jsctl.broker.interest.targets import Sink
from jsctl.broker.node.lame_duck import LameDuck
from jsctl.broker.node.running import RunningNode
from jsctl.broker.options import Options
from jsctl.broker.ports import Disk, ZoneOffset, only_utc
from jsctl.broker.routing import setup
from jsctl.broker.routing.limits import ServerIdentity
from jsctl.broker.routing.router import Router
from jsctl.broker.sessions.last_line import LastLine
from jsctl.broker.sessions.request_budget import RequestBudget
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.system.account import SystemAccount
from jsctl.broker.system.outlet import EventOutlet
from jsctl.broker.system.server import ServerParts
from jsctl.broker.system.tallies import Tallies
from jsctl.broker.turn import Jitter, TurnInputs, TurnOutputs

if TYPE_CHECKING:
    from jsctl.broker.assets.engine import Engine
    from jsctl.broker.gateways import gates as gateways
    from jsctl.broker.gateways import types as gateway_types
    from jsctl.broker.gateways.gates import Gates
    from jsctl.broker.gateways.types import GatewaySettings
    from jsctl.broker.leafnodes import leafs as leafnodes
    from jsctl.broker.leafnodes import types as leaf_types
    from jsctl.broker.leafnodes.leafs import Leafs
    from jsctl.broker.leafnodes.types import LeafSettings
    from jsctl.broker.node import jetstream as node_jetstream
    from jsctl.broker.node.jetstream import JetStream
    from jsctl.broker.routes import links as route_links
    from jsctl.broker.routes.links import Links
    from jsctl.broker.routing import gateway_replies
    from jsctl.broker.store.wal.new_store import NewStore
else:
    gateways = lazy.module("jsctl.broker.gateways.gates", optional=True)
    gateway_types = lazy.module("jsctl.broker.gateways.types", optional=True)
    gateway_replies = lazy.module("jsctl.broker.routing.gateway_replies", optional=True)
    leafnodes = lazy.module("jsctl.broker.leafnodes.leafs", optional=True)
    leaf_types = lazy.module("jsctl.broker.leafnodes.types", optional=True)
    route_links = lazy.module("jsctl.broker.routes.links", optional=True)
    node_jetstream = lazy.module("jsctl.broker.node.jetstream", optional=True)


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
        zones: ZoneOffset = only_utc,
        new_store: "NewStore | None" = None,
    ) -> None:
        """`new_store` is what was just made on `disk`, if it was."""
        self._options = options
        self._new_store = new_store
        self._zones = zones
        self._disk = disk
        self._jitter = jitter
        self._incarnation = incarnation
        self._server_id = server_id
        self._replies = None
        if options.gateway.enabled or options.leafnodes.enabled:
            self._replies = gateway_replies.replies_of(options.gateway.name, server_id)
        answers = Sink() if options.jetstream.enabled else None
        accounts, limits = Accounts(options), setup.limits(options)
        self.router = Router(accounts, limits, jitter, self._replies, answers)
        self._addresses: dict[str, tuple[str, int]] = {}
        self._reached_at: tuple[str, ...] = ()
        self._found_at: dict[str, str] = {}
        """The host by which servers elsewhere find this one, by kind of listener."""
        self._running: RunningNode | None = None
        """None until `start`: what others are told needs the addresses."""

    # Start

    def listening(self, kind: str, host: str, port: int, reached_at: Sequence[str] = ()) -> None:
        """Before `start`: where the edge listens; kind is client, cluster, leafnode, gateway or
        monitor.

        `reached_at` are the hosts by which others find it: addresses, where `host` is "any".
        """
        assert self._running is None, "peers are told of addresses at the start"
        self._addresses[kind] = (host, port)
        if kind == "client":
            self._reached_at = tuple(reached_at)
        else:
            self._found_at[kind] = reached_at[0] if reached_at else ""

    def _identity(self) -> ServerIdentity:
        host, port = self._addresses["client"]
        told = advertised(self._options.client_advertise, port)
        return setup.identity(self._options, self._server_id, *(told or (host, port)))

    def _client_urls(self) -> tuple[str, ...]:
        port = self._addresses["client"][1]
        told = advertised(self._options.client_advertise, port)
        return setup.client_urls(told, self._reached_at, port)

    def start(self, now_ns: int) -> TurnOutputs:
        """Recover. Raises ConfigError, DiskError, Damaged."""
        assert self._running is None, "a node starts once"
        options, router, identity = self._options, self.router, self._identity()
        router.now_ns = now_ns
        kept = options.client.closed_clients_max
        sessions = Sessions(router, identity, router.limits, kept)
        leafs = self._leafs(sessions) if options.leafnodes.enabled else None
        gates = self._gates(sessions) if options.gateway.enabled else None
        links = self._links(sessions) if options.clustered else None
        doors = tuple(door for door in (links, leafs, gates) if door is not None)
        line = LastLine(sessions, tuple(door.close_faulty for door in doors))
        system = router.accounts.system
        name = setup.system_account(options) if system is not None else ""
        outlet = EventOutlet(router, self._server_id, name)
        budget = RequestBudget(options.jetstream.limits.turn_units_max)
        enabled = options.jetstream.enabled
        jetstream = self._jetstream(identity, line, outlet, budget) if enabled else None
        view = jetstream.view if jetstream is not None else None
        engine = jetstream.engine if jetstream is not None else None
        server = ServerParts(
            options,
            identity,
            self._addresses,
            router,
            sessions,
            line,
            Tallies(started_ns=now_ns),
            links,
            leafs,
            gates,
            view,
            budget,
        )
        self._running = RunningNode(
            server,
            jetstream,
            SystemAccount(server, outlet, now_ns),
            LameDuck(options, engine, sessions, identity, self._jitter),
        )
        return self._running.start(now_ns)

    def _links(self, sessions: Sessions) -> "Links":
        return route_links.Links.of(
            self._options,
            self._server_id,
            self._addresses,
            self._client_urls(),
            self._leafnode_url(),
            self._gateway_url(),
            self.router,
            sessions,
            self._jitter,
        )

    def _leafs(self, sessions: Sessions) -> "Leafs":
        settings = self._leaf_settings()
        return leafnodes.Leafs.of(self._options, settings, self.router, sessions, self._jitter)

    def _leaf_settings(self) -> "LeafSettings":
        bound, reached_at = self._addresses.get("leafnode"), self._found_at.get("leafnode", "")
        return leaf_types.LeafSettings.of(self._options, self._server_id, bound, reached_at)

    def _gates(self, sessions: Sessions) -> "Gates":
        assert self._replies is not None
        settings = self._gateway_settings()
        return gateways.Gates.of(settings, self._replies, self.router, sessions, self._jitter)

    def _gateway_settings(self) -> "GatewaySettings":
        block = self._options.gateway
        bound = self._addresses.get("gateway", (block.host, block.port))
        host = self._found_at.get("gateway", "")
        return gateway_types.GatewaySettings.of(self._options, self._server_id, bound, host)

    def _gateway_url(self) -> str:
        """Where other clusters connect."""
        return self._gateway_settings().url if self._options.gateway.enabled else ""

    def _leafnode_url(self) -> str:
        """Where other servers' leaf nodes may come, too."""
        block = self._options.leafnodes
        if not block.listens or block.no_advertise:
            return ""
        return self._leaf_settings().address

    def _jetstream(
        self, identity: ServerIdentity, line: LastLine, outlet: EventOutlet, budget: RequestBudget
    ) -> "JetStream":
        return node_jetstream.JetStream(
            self._options,
            disk=self._disk,
            jitter=self._jitter,
            incarnation=self._incarnation,
            identity=identity,
            router=self.router,
            line=line,
            outlet=outlet,
            budget=budget,
            zones=self._zones,
            new_store=self._new_store,
        )

    # What runs

    def turn(self, inputs: TurnInputs, now_ns: int) -> TurnOutputs:
        """Take everything that happened, answer with everything that is to be done."""
        assert self._running is not None
        return self._running.turn(inputs, now_ns)

    def settle(self, now_ns: int) -> int | None:
        """Behind the outputs of a turn, which waited for nothing of this: when the next one has to
        be, even if nothing arrives. Not asked where it follows at once; such a one takes for due
        what was due at the last time."""
        assert self._running is not None
        return self._running.settle(now_ns)

    @property
    def unfinished(self) -> bool:
        """Whether the last turn had no room for all that waited in it."""
        return self._running is not None and self._running.unfinished

    # Reload

    def try_out(self, options: Options) -> None:
        """Raises ConfigError for accounts, users or imports that would not work, and for hubs if
        this server began without any."""
        if options.leafnodes.enabled and self._running and self._running.server.leafs is None:
            raise ConfigError(
                "config reload not supported for LeafNode: the server began without hubs",
                place="leafnodes",
                remedy="restart it",
            )
        try_out(options, self._jitter)

    def reload(self, options: Options, *, by_claims: bool = False) -> None:
        """Take options that were tried out; what they do is done in this call. `by_claims`: their
        accounts alone are others, those of JWTs."""
        assert self._running is not None
        self._options = options
        self._running.server.identity.renew(self._identity())
        told = (self._client_urls(), self._leafnode_url(), self._gateway_url())
        self._running.reload(options, told, by_claims=by_claims)
        if self._running.server.leafs is not None:
            self._running.reload_leafs(self._leaf_settings())
        if self._running.server.gates is not None:
            self._running.reload_gates(self._gateway_settings())

    @property
    def assets(self) -> int:
        """How many streams and consumers are on this server."""
        return 0 if self.engine is None else len(self.engine.groups.by_name)

    @property
    def sessions(self) -> Sessions:
        """Connections of clients, once it has started."""
        assert self._running is not None
        return self._running.server.sessions

    @property
    def links(self) -> "Links | None":
        """Connections to other servers."""
        return None if self._running is None else self._running.server.links

    @property
    def gates(self) -> "Gates | None":
        """Connections to other clusters."""
        return None if self._running is None else self._running.server.gates

    @property
    def jetstream(self) -> "JetStream | None":
        """JetStream, where it is switched on."""
        return None if self._running is None else self._running.jetstream

    @property
    def engine(self) -> "Engine | None":
        """JetStream below its API."""
        return None if self.jetstream is None else self.jetstream.engine


def try_out(options: Options, jitter: Jitter) -> None:
    """Raises ConfigError for accounts, users, mappings or imports that would not work."""
    Router(Accounts(options), setup.limits(options), jitter)
