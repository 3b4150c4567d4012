"""Route connections of the node: bytes to the mesh's handshake and to the router's links."""

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from jsctl.broker.conf.units import advertised
from jsctl.broker.errors import ProtocolError
from jsctl.broker.interest.targets import RouteLink
from jsctl.broker.linking.rests import Rests, turn_valve
from jsctl.broker.options import COMPATIBLE_VERSION, Options
from jsctl.broker.protocol.ops import (
    Bad,
    Connect,
    Info,
    Interest,
    NoInterest,
    PeerError,
    Ping,
    Pong,
    Routed,
    RouteOp,
)
from jsctl.broker.protocol.route import LINK_LINE_FACTOR, RouteParser
from jsctl.broker.routes.lane import RouteLane
from jsctl.broker.routes.mesh import Mesh
from jsctl.broker.routes.types import (
    ClusterRenamed,
    ConnectUrlsChanged,
    GatewayTold,
    LeafnodeUrlsChanged,
    LinkAdded,
    LinkRemoved,
    MeshEvent,
    MeshOptions,
    MeshOutput,
    PeerChange,
    PeerDown,
    PeerUp,
    RouteUrl,
)
from jsctl.broker.routing.router import Router
from jsctl.broker.routing.setup import system_account
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.turn import Accepted, ConnKind, Dial, Jitter, LogLevel, LogLine, TurnOutputs
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.broker.linking.compression import Unpacking

PAYLOAD_BYTES_MAX = 1 << 30
"""Of one message: clients of other servers may say as much as `max_payload` lets them there."""
NO_PAYLOAD = -1
"""Before its handshake a peer is a stranger, and has no messages to give."""

Addresses = Mapping[str, tuple[str, int]]
"""Kind of listener -> host and port as bound."""


def mesh_options(
    options: Options,
    server_id: str,
    addresses: Addresses,
    client_urls: tuple[str, ...],
    leafnode_url: str = "",
    gateway_url: str = "",
) -> MeshOptions:
    """The cluster block and what peers are told."""
    cluster = options.cluster
    host, port = addresses.get("cluster", (cluster.host, cluster.port))
    told = advertised(cluster.advertise, port)
    if told is not None:
        host, port = told
    return MeshOptions(
        server_id=server_id,
        server_name=options.server_name or server_id,
        cluster=cluster.name,
        host=host,
        port=port,
        advertised=told is not None,
        version=COMPATIBLE_VERSION,
        domain=options.jetstream.domain,
        jetstream=options.jetstream.enabled,
        max_payload=options.client.payload_bytes_max,
        client_urls=client_urls,
        leafnode_url=leafnode_url,
        gateway_url=gateway_url,
        no_advertise=cluster.no_advertise,
        routes=tuple(RouteUrl(r.host, r.port, r.user, r.password) for r in cluster.routes),
        user=cluster.user,
        password=cluster.password,
        auth_timeout_ns=options.route_login_ns,
        pool_size=cluster.pool_size,
        accounts=cluster.accounts,
        system_account=system_account(options),
        connect_retries=cluster.connect_retries,
        connect_backoff=cluster.connect_backoff,
        ping_interval_ns=cluster.ping_interval_ns,
        ping_max=cluster.pings_out_max,
        compression=cluster.compression,
    )


@dataclass(slots=True)
class Links:
    """The connections to other servers."""

    mesh: Mesh
    router: Router
    sessions: Sessions
    _lane: RouteLane
    urls: tuple[str, ...] | None = None
    """Client URLs of the cluster changed to these."""
    leafnode_urls: tuple[str, ...] | None = None
    """Where leaf nodes may connect at the other servers changed to this."""
    gateways_told: list[GatewayTold] = field(default_factory=list)
    """What other servers told of other clusters."""
    servers_changed: bool = False
    """Servers of the cluster came or went."""
    native: dict[str, str] = field(default_factory=dict)
    """Server id -> name of peers that are brokers."""
    _parsers: dict[int, RouteParser] = field(default_factory=dict)
    _links: dict[int, RouteLink] = field(default_factory=dict)
    _made: MeshOutput = field(default_factory=MeshOutput)
    _peers: list[tuple[str, PeerChange]] = field(default_factory=list)
    _rests: Rests = field(default_factory=Rests)
    _told: bool = False
    """Another server has told something, perhaps of one that is to be dialed."""

    @staticmethod
    def of(
        options: Options,
        server_id: str,
        addresses: Addresses,
        client_urls: tuple[str, ...],
        leafnode_url: str,
        gateway_url: str,
        router: Router,
        sessions: Sessions,
        jitter: Jitter,
    ) -> "Links":
        """A server's connections, as it is configured."""
        made = mesh_options(options, server_id, addresses, client_urls, leafnode_url, gateway_url)
        router.routes.pinned = frozenset(made.pinned)
        names = {account.name for account in router.accounts}
        lane = RouteLane(router, sessions.twin.table)
        return Links(Mesh(made, jitter, names), router, sessions, lane)

    def change_options(
        self,
        options: Options,
        server_id: str,
        addresses: Addresses,
        client_urls: tuple[str, ...],
        leafnode_url: str,
        gateway_url: str,
        now_ns: int,
    ) -> None:
        """Take a changed configuration. Links that have another place then are made anew."""
        self._lane.forget()
        made = mesh_options(options, server_id, addresses, client_urls, leafnode_url, gateway_url)
        names = {account.name for account in self.router.accounts}
        self.mesh.change_options(made, names, now_ns)
        self.follow()
        self.router.routes.pin(made.pinned)

    @property
    def has_peers(self) -> bool:
        """Whether `take_peers` has something."""
        return bool(self._peers)

    def take_peers(self) -> list[tuple[str, PeerChange]]:
        """(name, True) for each broker that was linked, (name, False) for each server gone."""
        taken, self._peers = self._peers, []
        return taken

    @property
    def kind(self) -> ConnKind:
        """Of these connections."""
        return ConnKind.ROUTE

    def owns(self, conn: int) -> bool:
        """Whether a connection is a route."""
        return conn in self._parsers

    def opened(self, accepted: Accepted, now_ns: int) -> None:
        """A connection to or from another server."""
        line_max = self.router.limits.control_line_bytes_max * LINK_LINE_FACTOR
        self._parsers[accepted.conn] = RouteParser(line_max, NO_PAYLOAD)
        self.mesh.opened(accepted, now_ns)
        self.follow()

    def closed(self, conn: int, reason: str, now_ns: int) -> None:
        """A connection is gone."""
        while conn in self._rests.left:
            self._read(conn, b"", now_ns)
        if self._parsers.pop(conn, None) is not None:
            self.mesh.closed(conn, reason, now_ns)
            self.follow()

    def close_faulty(self, conn: int) -> None:
        """What a connection asked for met a bug: end it, if it is a route."""
        if self.owns(conn):
            text = "Internal Server Error"
            self.mesh.bad(conn, text, "Internal Error", self.router.now_ns)

    def pending(self, conn: int, unsent_bytes: int) -> None:
        """What the edge still has to send crossed a watermark."""
        link = self._links.get(conn)
        if link is not None:
            self.sessions.pending(link, unsent_bytes)

    def feed(self, conn: int, chunk: bytes, now_ns: int) -> None:
        """Bytes came from another server.

        Until a link has its account, lines are read one at a time: what they mean depends on it.
        """
        way_in = self.mesh.packing.way_in(conn)
        if way_in is None:
            rested = conn in self._rests.left
            self._read(conn, chunk, now_ns)
            if (conn in self._rests.left) is not rested:
                turn_valve(conn, self._made, opens=rested)
        else:
            self._unpack(conn, way_in, chunk, now_ns)

    def _unpack(self, conn: int, way_in: "Unpacking", chunk: bytes, now_ns: int) -> None:
        """Open what came, as much as one turn is for."""

        def read(data: bytes) -> bool:
            self._read(conn, data, now_ns)
            return conn in self._parsers and conn not in self._rests.left

        if conn in self._rests.left:
            self._read(conn, b"", now_ns)
        try:
            if conn in self._rests.left:
                way_in.hold(chunk, conn, self._made)
            else:
                way_in.open(chunk, read, conn, self._made)
        except ProtocolError as error:
            self.mesh.bad(conn, str(error), "Read Error", now_ns)
        self.follow()

    def _read(self, conn: int, chunk: bytes, now_ns: int) -> None:
        chunk = self._rests.take(conn, chunk)
        parser = self._parsers.get(conn)
        if parser is None:
            return
        packing, start = self.mesh.packing, 0
        packed = packing.way_in(conn) is not None
        while start < len(chunk) and conn not in self._links:
            end = chunk.find(b"\n", start) + 1 or len(chunk)
            self._take(conn, parser.feed(chunk[start:end]), now_ns)
            start = end
            if conn not in self._parsers:
                return
            way_in = packing.way_in(conn)
            if way_in is not None and not packed:
                self._unpack(conn, way_in, chunk[start:], now_ns)
                return
        link = self._links.get(conn)
        if start < len(chunk) and link is not None:

            def take(ops: list[RouteOp]) -> bool:
                self._take(conn, ops, now_ns)
                return conn in self._links

            self._rests.keep(conn, self._lane.feed(link, parser, chunk[start:], take))

    def _take(self, conn: int, ops: list[RouteOp], now_ns: int) -> None:
        routed: list[RouteOp] = []
        link = self._links.get(conn)
        for op in ops:
            if isinstance(op, Routed | Interest | NoInterest):
                routed.append(op)
                continue
            if routed and link is not None:
                self.router.route_ops(link, routed)
                routed = []
            self._handshake(conn, op, now_ns)
        if routed and link is not None:
            self.router.route_ops(link, routed)
        self.follow()

    def _handshake(self, conn: int, op: RouteOp, now_ns: int) -> None:
        match op:
            case Ping():
                self.mesh.ping(conn)
            case Pong():
                self.mesh.pong(conn, now_ns)
            case Info():
                self._told = True
                self.mesh.info(conn, op.body, now_ns)
            case Connect():
                self.mesh.connect(conn, op.body, now_ns)
            case PeerError():
                self.mesh.error(conn, op.text.decode("utf-8", "replace"))
            case Bad():
                self.mesh.bad(conn, op.text.decode("utf-8", "replace"), op.reason, now_ns)

    def dial_failed(self, dial: Dial, reason: str, now_ns: int) -> None:
        """A dial did not lead to a connection."""
        self.mesh.dial_failed(dial.token, reason, now_ns)

    def deadline_ns(self) -> int | None:
        """When `tick` has something to do."""
        return self.router.now_ns if self.unread() else self.mesh.deadline_ns

    def unread(self) -> list[int]:
        """Connections of which not all is opened or carried out yet."""
        left, packed = self._rests.left, self.mesh.packing.unread()
        return list({*left, *packed}) if left else packed

    @property
    def expecting(self) -> bool:
        """Whether something that came is still to be opened or carried out, or to be followed by a
        dial."""
        return self._told or bool(self.unread())

    def tick(self, now_ns: int) -> None:
        """Dials, pings, handshakes that take too long."""
        self._told = False
        self.mesh.tick(now_ns)
        self.follow()

    def follow(self) -> None:
        """Take what the mesh wants done, and act on what it reports."""
        if not self.mesh.busy:
            return
        made, out = self.mesh.take(), self._made
        out.writes += made.writes
        out.closes += made.closes
        out.dials += made.dials
        out.logs += made.logs
        for conn, _ in made.closes:
            self._parsers.pop(conn, None)
        for event in made.events:
            self._follow_one(event)

    def _follow_one(self, event: MeshEvent) -> None:
        match event:
            case LinkAdded():
                self._added(event)
            case LinkRemoved():
                self._remove(event)
            case PeerUp() | PeerDown():
                self._peer(event)
            case ConnectUrlsChanged():
                self.urls = event.urls
            case LeafnodeUrlsChanged():
                self.leafnode_urls = event.urls
            case GatewayTold():
                self._gateway_told(event)
            case ClusterRenamed():
                pass

    def _gateway_told(self, event: GatewayTold) -> None:
        if self.mesh.options.gateway_url:
            self.gateways_told.append(event)
            return
        text = (
            f"Received information about gateway {event.gateway!r} from {event.teller}, but gateway"
            " is not configured"
        )
        self._made.logs.append(LogLine(LogLevel.ERROR, text))

    def _remove(self, event: LinkRemoved) -> None:
        gone = self._links.pop(event.conn, None)
        if gone is not None:
            more = f" - Remote: {gone.name}" if gone.name else ""
            text = f"rid:{gone.number} - Router connection closed: {event.reason}{more}"
            self._made.logs.append(LogLine(LogLevel.INFO, text))
            self.router.remove_route(gone)
            self.sessions.release_route(gone)
        if event.server_id in self.native:
            self._peers.append((self.native[event.server_id], PeerChange.BROKEN))

    def _peer(self, event: PeerUp | PeerDown) -> None:
        self.servers_changed = True
        if isinstance(event, PeerUp):
            if event.native:
                self.native[event.server_id] = event.name
                self._peers.append((event.name, PeerChange.LINKED))
            return
        self.native.pop(event.server_id, None)
        # The links of a server that lost its power may be noticed to be gone when its next process
        # has links already: it has the same name, and is there.
        if event.name not in self.native.values():
            self._peers.append((event.name, PeerChange.GONE))

    def _added(self, event: LinkAdded) -> None:
        link = RouteLink(
            event.conn,
            event.server_id,
            event.account or None,
            event.pool_index,
            max(event.pool_size, 1),
            name=event.name,
            traces=event.traces,
            serves=event.serves,
        )
        self._links[event.conn] = link
        parser = self._parsers.get(event.conn)
        if parser is not None:
            parser.account = event.account.encode()
            parser.payload_max = PAYLOAD_BYTES_MAX
        self.router.add_route(link)

    def emit(self, outputs: TurnOutputs) -> None:
        """Put writes, closes and dials of this turn into the outputs.

        What the handshake has to say goes before routed traffic of the same connection.
        """
        self.follow()
        made, self._made = self._made, MeshOutput()
        outputs.writes = self.mesh.packing.pack_all(outputs.writes)
        outputs.writes[:0] = made.writes
        outputs.pauses += made.pauses
        outputs.resumes += made.resumes
        outputs.closes += made.closes
        outputs.dials += made.dials
        outputs.logs += made.logs
