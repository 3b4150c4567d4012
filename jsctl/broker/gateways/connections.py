"""All connections to and from other clusters: how one is linked, and how one ends."""

import hmac
from dataclasses import field

from jsctl.broker.errors import ProtocolError
from jsctl.broker.gateways import wire
from jsctl.broker.gateways.gate import Gate, GateStage
from jsctl.broker.gateways.remotes import RemoteCluster, RemoteClusters
from jsctl.broker.gateways.types import ClusterServer, GatewayOutput, GatewaySettings
from jsctl.broker.gateways.wire import GatewayInfo
from jsctl.broker.interest.links import GatewayLink
from jsctl.broker.linking import fields
from jsctl.broker.routing.gateway_replies import mark
from jsctl.broker.routing.gateways import GatewayRouting
from jsctl.broker.routing.router import Router
from jsctl.broker.turn import LogLevel, LogLine
from jsctl.dataclass import dataclass

PAYLOAD_BYTES_MAX = 1 << 30
"""Of one message: clients of other servers may say as much as `max_payload` lets them there."""
DUPLICATE_NAME = "Duplicate Server Name"


@dataclass(slots=True)
class GateConnections:
    """See the module. `servers` are the others of this cluster."""

    settings: GatewaySettings
    router: Router
    routing: GatewayRouting
    remotes: RemoteClusters
    servers: tuple[ClusterServer, ...] = ()
    by_conn: dict[int, Gate] = field(default_factory=dict)
    out: GatewayOutput = field(default_factory=GatewayOutput)
    for_routes: list[bytes] = field(default_factory=list)
    """Lines that the other servers of this cluster are to be told."""
    gone: list[GatewayLink] = field(default_factory=list)
    """Links that ended: nobody need wait for them."""
    handshakes: int = 0
    stale: int = 0
    """Connections closed as they did not answer."""

    def change_settings(self, settings: GatewaySettings) -> None:
        """What is told and dialed from now on."""
        self.settings = settings
        self.remotes.change_settings(settings)

    def linked(self) -> list[Gate]:
        """Those that carry messages."""
        return [gate for gate in self.by_conn.values() if gate.stage is GateStage.LINKED]

    def urls(self) -> tuple[str, ...]:
        """Where this cluster is reached, here first."""
        others = [server.url for server in self.servers if server.url]
        return tuple(dict.fromkeys((self.settings.url, *others)))

    def is_wanted(self, name: str) -> bool:
        """Whether a cluster has a connection to here."""
        return any(gate.gateway == name and not gate.outbound for gate in self.linked())

    # ---- words

    def bare(self) -> frozenset[str]:
        """Clusters of which all servers that are linked are brokers without JetStream."""
        linked = self.linked()
        others = {gate.gateway for gate in linked if not gate.bare}
        return frozenset(gate.gateway for gate in linked) - others

    def serving(self) -> frozenset[str]:
        """Clusters in which a broker with JetStream is linked."""
        return frozenset(one.gateway for one in self.linked() if one.link and one.link.serves)

    def send(self, gate: Gate, data: bytes) -> None:
        """Say something."""
        if not gate.closing:
            self.out.writes.append((gate.conn, data))

    def log(self, level: LogLevel, gate: Gate, text: str) -> None:
        """Tell the operator something of a connection."""
        self.out.logs.append(LogLine(level, f"{gate.label} - {text}"))

    def greet(self, gate: Gate) -> None:
        """Speak first, as the side that was dialed does."""
        self.log(LogLevel.INFO, gate, "Processing inbound gateway connection")
        self.send(gate, wire.info_line(self.settings, self.urls()))

    def cluster_changed(self, servers: tuple[ClusterServer, ...]) -> None:
        """Other servers of this cluster came or went: they are told of other clusters, and those of
        where this one is reached."""
        before = self.urls()
        self.servers = servers
        for gate in self.linked():
            if gate.remote is not None:
                self._tell_routes(gate.remote)
            elif self.urls() != before:
                self.send(gate, wire.info_line(self.settings, self.urls()))

    def _tell_routes(self, remote: RemoteCluster) -> None:
        if remote.urls:
            self.for_routes.append(wire.route_line(self.settings, remote.name, remote.addresses))

    # ---- handshake

    def connect(self, gate: Gate, body: bytes) -> None:
        """CONNECT arrived."""
        try:
            said = wire.parse_connect(body)
        except ProtocolError as error:
            self.refuse(gate, str(error), "Protocol Violation")
            return
        block = self.settings.block
        if not said.gateway:
            text = "attempted to connect to gateway port"
            self.refuse(gate, text, "Wrong Port")
        elif block.user and not (
            _same(said.user, block.user) and _same(said.password, block.password)
        ):
            self.refuse(gate, *fields.UNAUTHORIZED)
        elif said.gateway == self.settings.name or not self._is_known(said.gateway):
            self.log(LogLevel.ERROR, gate, f'Rejecting connection from gateway "{said.gateway}"')
            text = f'Connection to gateway "{self.settings.name}" rejected'
            self.refuse(gate, text, "Wrong Gateway")
        else:
            gate.gateway, gate.stage = said.gateway, GateStage.INFO

    def _is_known(self, name: str) -> bool:
        return not self.settings.block.reject_unknown or name in self.remotes.clusters

    def info(self, gate: Gate, body: bytes, now_ns: int) -> None:
        """INFO arrived."""
        try:
            told = wire.parse_info(body)
        except ProtocolError as error:
            self.refuse(gate, str(error), "Protocol Violation")
            return
        if gate.stage is GateStage.CONNECT:
            self.refuse(gate, *fields.UNAUTHORIZED)
        elif gate.stage is GateStage.INFO:
            if gate.remote is not None:
                self._first_dialed(gate, gate.remote, told, now_ns)
            else:
                self._first_accepted(gate, told, now_ns)
        elif gate.remote is not None:
            self._news(gate, gate.remote, told, now_ns)

    def _first_dialed(
        self, gate: Gate, remote: RemoteCluster, told: GatewayInfo, now_ns: int
    ) -> None:
        if not told.gateway:
            text = f'Attempt to connect to gateway "{remote.name}" using wrong port'
            self.refuse(gate, text, "Wrong Port")
            return
        if told.gateway != remote.name:
            self._misnamed(gate, remote, told)
            return
        if self._has_name(gate, told.server_name):
            return
        url = remote.current
        assert url is not None
        block = self.settings.block
        user, password = (url.user, url.password) if url.user else (block.user, block.password)
        secured = self.remotes.tls_of(remote) is not None
        self.send(gate, wire.connect_line(self.settings, user, password, secured=secured))
        self.send(gate, wire.info_line(self.settings, self.urls()))
        if told.urls:
            remote.renew(told.urls)
        self.remotes.connected(remote)
        self._link(gate, told, now_ns)
        text = f'Outbound gateway connection to "{remote.name}" ({told.server_id}) registered'
        self.log(LogLevel.INFO, gate, text)
        self._tell_routes(remote)

    def _misnamed(self, gate: Gate, remote: RemoteCluster, told: GatewayInfo) -> None:
        text = f'Failing connection to gateway "{remote.name}", remote gateway name is'
        self.log(LogLevel.ERROR, gate, f'{text} "{told.gateway}"')
        text = (
            f'Connection from "{self.settings.name}" rejected, wanted to connect to'
            f' "{remote.name}", this is "{told.gateway}"'
        )
        self.send(gate, fields.error_line(text))
        self.close(gate, "Wrong Gateway")

    def _first_accepted(self, gate: Gate, told: GatewayInfo, now_ns: int) -> None:
        if told.gateway != gate.gateway or not told.server_id:
            self.refuse(gate, "gateway name does not match CONNECT", "Wrong Gateway")
            return
        if self._has_name(gate, told.server_name):
            return
        self._link(gate, told, now_ns)
        text = f'Inbound gateway connection from "{told.gateway}" ({told.server_id}) registered'
        self.log(LogLevel.INFO, gate, text)
        self._learn(told.gateway, told.urls, now_ns)
        for remote in self.remotes.clusters.values():
            self._gossip(gate, remote)

    def _has_name(self, gate: Gate, name: str) -> bool:
        """Whether a server of this cluster has the name; the other one is closed then."""
        names = {self.settings.server_name, *(server.name for server in self.servers)}
        if name not in names:
            return False
        self.log(LogLevel.ERROR, gate, f'Remote server has a duplicate name: "{name}"')
        self.close(gate, DUPLICATE_NAME)
        return True

    def _news(self, gate: Gate, remote: RemoteCluster, told: GatewayInfo, now_ns: int) -> None:
        """A later INFO of a server that was dialed: of another cluster, or of its own."""
        if told.command in (wire.SUBS_BEGIN, wire.SUBS_END):
            self._switched(gate, told)
        elif told.gateway == remote.name and not told.command:
            if told.urls:
                remote.renew(told.urls)
            self._tell_routes(remote)
        elif told.command == wire.GOSSIP:
            self.heard(told.gateway, told.urls, now_ns)
        else:
            text = f'Received unknown command {told.command} from gateway "{remote.name}"'
            self.log(LogLevel.WARNING, gate, text)

    def _switched(self, gate: Gate, told: GatewayInfo) -> None:
        """All interest of an account is about to be told, or has been."""
        if not told.account:
            word = "start" if told.command == wire.SUBS_BEGIN else "complete"
            text = f"Account absent from receive-all-subscriptions-{word} command"
            self.refuse(gate, text, "Protocol Violation")
        elif gate.link is not None:
            self.routing.begun(gate.link, told.account)

    def heard(self, gateway: str, urls: tuple[str, ...], now_ns: int) -> None:
        """Somebody told of a cluster."""
        if self._is_known(gateway):
            self._learn(gateway, urls, now_ns)

    def _learn(self, gateway: str, urls: tuple[str, ...], now_ns: int) -> None:
        """A cluster may be new. Who came before it is told, too: he and the new one may have come
        to different servers at the same moment, and would not hear of each other."""
        fresh = self.remotes.learn(gateway, urls, now_ns)
        if fresh is not None:
            for gate in self.linked():
                if not gate.outbound:
                    self._gossip(gate, fresh)

    def _gossip(self, gate: Gate, remote: RemoteCluster) -> None:
        if gate.gateway != remote.name and remote.urls:
            line = wire.gossip_line(self.settings.server_id, remote.name, remote.addresses)
            self.send(gate, line)

    def _link(self, gate: Gate, told: GatewayInfo, now_ns: int) -> None:
        gate.stage, gate.gateway = GateStage.LINKED, told.gateway
        gate.server_id, gate.server_name = told.server_id, told.server_name or told.server_id
        gate.bare = told.bare
        self.handshakes -= 1
        link = GatewayLink(
            gate.conn,
            gate.gate_id,
            told.server_id,
            told.gateway,
            mark(told.gateway),
            self.routing.replies.replying,
            outbound=gate.outbound,
            name=gate.server_name,
            headers=told.headers and self.settings.headers,
            traces=told.traces,
            serves=told.serves,
        )
        gate.link = link
        gate.parser.payload_max = PAYLOAD_BYTES_MAX
        gate.alive.begin(now_ns, self.router.jitter)
        self.routing.add(link)

    # ---- the end

    def refuse(self, gate: Gate, text: str, reason: str) -> None:
        """Say what is wrong, and close."""
        self.log(LogLevel.ERROR, gate, text)
        self.send(gate, fields.error_line(text))
        self.close(gate, reason)

    def close(self, gate: Gate, reason: str) -> None:
        """Close a connection from this side; nothing of it is heard any more."""
        if gate.closing:
            return
        gate.closing = True
        self.out.closes.append((gate.conn, reason))
        self.forget(gate, reason)

    def forget(self, gate: Gate, reason: str) -> None:
        """A connection is gone."""
        if self.by_conn.pop(gate.conn, None) is None:
            return
        link, gate.closing = gate.link, True
        if link is None:
            self.handshakes -= 1
        else:
            link.closing = reason
            self.routing.drop(link)
            self.gone.append(link)
        level = LogLevel.INFO if link is not None else LogLevel.DEBUG
        more = f" - Remote: {gate.server_name}" if gate.server_name else ""
        self.log(level, gate, f"Gateway connection closed: {reason}{more}")
        if gate.remote is not None:
            wanted = self.is_wanted(gate.remote.name)
            now_ns = self.router.now_ns
            self.remotes.closed(gate.remote, now_ns, linked=link is not None, wanted=wanted)


def _same(given: str, expected: str) -> bool:
    """Compared in a time that tells nothing; also what is no UTF-8 may be given."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())
