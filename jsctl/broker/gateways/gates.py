"""Gateways of the node: the door between the turn's words and the connections of other clusters."""

from dataclasses import field

from jsctl.broker.gateways import wire
from jsctl.broker.gateways.connections import GateConnections
from jsctl.broker.gateways.gate import Gate, GateStage
from jsctl.broker.gateways.lane import GatewayLane
from jsctl.broker.gateways.remotes import RemoteClusters
from jsctl.broker.gateways.types import (
    FIRST_PING_NS,
    HANDSHAKES_MAX,
    PING_INTERVAL_MAX_NS,
    ClusterServer,
    GatewayFacts,
    GatewayOutput,
    GatewaySettings,
)
from jsctl.broker.interest.links import GatewayLink
from jsctl.broker.linking import fields
from jsctl.broker.linking.door import LinkDoor, refuse_bad
from jsctl.broker.linking.rests import Rests, turn_valve
from jsctl.broker.protocol.ops import (
    Bad,
    Connect,
    Info,
    Ok,
    PeerError,
    Ping,
    Pong,
    RouteOp,
)
from jsctl.broker.protocol.route import LINK_LINE_FACTOR, GatewayParser
from jsctl.broker.routing.gateway_replies import GatewayReplies
from jsctl.broker.routing.gateways import GatewayRouting
from jsctl.broker.routing.limits import RoutingLimits
from jsctl.broker.routing.router import Router
from jsctl.broker.sessions.keepalive import KeepAlive, Probe
from jsctl.broker.sessions.listing import of_links, pending_bytes
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.turn import Accepted, ConnKind, Dial, Jitter, LogLevel, LogLine, TurnOutputs
from jsctl.dataclass import dataclass, replace

MEASURE_NS = 1_000_000_000
"""How often the round trips to other clusters are looked at, where there are several."""
NO_PAYLOAD = -1
"""Before its handshake the other side is a stranger, and has no messages to give."""


@dataclass(slots=True)
class Gates(LinkDoor[Gate]):
    """The connections to and from other clusters."""

    router: Router
    routing: GatewayRouting
    sessions: Sessions
    connections: GateConnections
    _lane: GatewayLane
    _rests: Rests = field(default_factory=Rests)
    _measure_ns: int = 0
    """When round trips are looked at again."""
    _stirred: bool = False
    """Something was said after which another time may be due."""

    @staticmethod
    def of(
        settings: GatewaySettings,
        replies: GatewayReplies,
        router: Router,
        sessions: Sessions,
        jitter: Jitter,
    ) -> "Gates":
        """A server's, as it is configured."""

        def switch(account: str, begins: bool) -> bytes:
            return wire.switch_line(settings.name, account, begins=begins)

        routing = GatewayRouting(router, replies, switch)
        connections = GateConnections(settings, router, routing, RemoteClusters(settings, jitter))
        lane = GatewayLane(router, sessions.twin.table)
        return Gates(router, routing, sessions, connections, lane)

    def start(self, now_ns: int) -> None:
        """Dial the configured clusters."""
        self.connections.remotes.configure(now_ns)
        self.tick(now_ns)

    def change_options(self, settings: GatewaySettings) -> None:
        """Accounts, limits or certificates have changed; see `conf/reload.py` for what else may."""
        self.connections.change_settings(settings)
        self._lane.forget()

    def told_by_routes(self, gateway: str, urls: tuple[str, ...], now_ns: int) -> None:
        """Another server of this cluster tells of another cluster."""
        self._stirred = True
        self.connections.heard(gateway, urls, now_ns)

    def cluster_changed(self, servers: tuple[ClusterServer, ...]) -> None:
        """Other servers of this cluster came or went."""
        self.connections.cluster_changed(servers)

    def take_lines(self) -> list[bytes]:
        """What the other servers of this cluster are to be told."""
        lines, self.connections.for_routes = self.connections.for_routes, []
        return lines

    @property
    def kind(self) -> ConnKind:
        """Of these connections."""
        return ConnKind.GATEWAY

    # ---- what happened

    def owns(self, conn: int) -> bool:
        """Whether a connection is one of those."""
        return conn in self.connections.by_conn

    def opened(self, made: Accepted, now_ns: int) -> None:
        """A connection of another cluster's server, or one to it."""
        connections, limits = self.connections, self._limits()
        remote = None
        if made.dial_token:
            remote = connections.remotes.arrived(made.dial_token, made.conn)
            if remote is None:
                connections.out.closes.append((made.conn, "Gateway Removed"))
                return
        gate = Gate(
            made.conn,
            made.remote_host,
            made.remote_port,
            self.sessions.new_id(),
            now_ns,
            GatewayParser(limits.control_line_bytes_max * LINK_LINE_FACTOR, NO_PAYLOAD),
            KeepAlive(limits),
            GateStage.CONNECT if remote is None else GateStage.INFO,
            remote,
        )
        gate.last_in_ns = now_ns
        gate.alive.await_login(now_ns)
        connections.by_conn[gate.conn] = gate
        connections.handshakes += 1
        if remote is not None:
            text = f'Creating outbound gateway connection to "{remote.name}"'
            connections.log(LogLevel.INFO, gate, text)
        elif connections.handshakes > HANDSHAKES_MAX:
            connections.close(gate, "Maximum Connections Exceeded")
        else:
            connections.greet(gate)

    def _limits(self) -> RoutingLimits:
        limits, block = self.router.limits, self.connections.settings.block
        interval_ns = min(limits.ping_interval_ns, PING_INTERVAL_MAX_NS)
        return replace(
            limits,
            ping_interval_ns=interval_ns,
            first_ping_ns=FIRST_PING_NS,
            auth_timeout_ns=block.login_ns,
        )

    def closed(self, conn: int, reason: str, now_ns: int) -> None:
        """A connection is gone."""
        gate = self.connections.by_conn.get(conn)
        while gate is not None and conn in self._rests.left:
            self._read(gate, b"")
        if gate is not None:
            self.connections.forget(gate, reason)

    def close_faulty(self, conn: int) -> None:
        """What a connection asked for met a bug: end it, if it is one of those."""
        gate = self.connections.by_conn.get(conn)
        if gate is not None:
            self.connections.refuse(gate, "Internal Server Error", "Internal Error")

    def pending(self, conn: int, unsent_bytes: int) -> None:
        """What the edge still has to send crossed a watermark."""
        gate = self.connections.by_conn.get(conn)
        if gate is not None and gate.link is not None:
            self.sessions.pending(gate.link, unsent_bytes)

    def dial_failed(self, dial: Dial, reason: str, now_ns: int) -> None:
        """A dial did not lead to a connection."""
        connections = self.connections
        remotes = connections.remotes
        name = next((one.name for one in remotes.clusters.values() if one.token == dial.token), "")
        remote = remotes.failed(dial.token, now_ns, wanted=connections.is_wanted(name))
        if remote is None or remote.untried:
            return
        level = LogLevel.ERROR if remotes.is_reported(remote) else LogLevel.DEBUG
        kind = "implicit" if remote.is_implicit else "explicit"
        text = (
            f'Error connecting to {kind} gateway "{remote.name}" ({dial.host}:{dial.port})'
            f" (attempt {remote.attempts}): {reason}"
        )
        connections.out.logs.append(LogLine(level, text))

    def feed(self, conn: int, chunk: bytes, now_ns: int) -> None:
        """Bytes came. Until a connection is linked, lines are read one at a time: what they mean
        depends on it."""
        gate = self.connections.by_conn.get(conn)
        if gate is None:
            return
        if chunk:
            gate.last_in_ns = now_ns
        rested = conn in self._rests.left
        self._read(gate, chunk)
        if (conn in self._rests.left) is not rested:
            turn_valve(conn, self.connections.out, opens=rested)

    def _read(self, gate: Gate, chunk: bytes) -> None:
        chunk, start = self._rests.take(gate.conn, chunk), 0
        while start < len(chunk) and gate.stage is not GateStage.LINKED:
            end = chunk.find(b"\n", start) + 1 or len(chunk)
            self._take(gate, gate.parser.feed(chunk[start:end]))
            start = end
            if gate.closing:
                return
        link = gate.link
        if start < len(chunk) and link is not None:
            words = (link, gate.parser, chunk[start:], lambda ops: self._take(gate, ops))
            self._rests.keep(gate.conn, self._lane.feed(*words))

    def unread(self) -> list[int]:
        """Connections of which not all is carried out yet; nothing between clusters is
        compressed."""
        return list(self._rests.left)

    def _route(self, gate: Gate, ops: list[RouteOp]) -> bool:
        if gate.link is None:
            self.connections.refuse(gate, "Authorization Violation", "Protocol Violation")
            return False
        wrong = self.routing.take(gate.link, ops)
        if wrong:
            self.connections.refuse(gate, wrong, "Protocol Violation")
        return not wrong

    def _handshake(self, gate: Gate, op: RouteOp) -> None:
        connections, now_ns = self.connections, self.router.now_ns
        self._stirred = True
        match op:
            case Ping():
                connections.send(gate, fields.PONG)
            case Pong():
                gate.alive.pong(now_ns)
                if gate.link is not None:
                    gate.link.rtt_ns = gate.alive.rtt_ns
            case Info():
                connections.info(gate, op.body, now_ns)
                self._measure_ns = now_ns  # It may be linked now.
            case Connect():
                if gate.stage is GateStage.CONNECT:
                    connections.connect(gate, op.body)
                else:
                    connections.refuse(gate, "Unknown Protocol Operation", "Protocol Violation")
            case PeerError():
                text = op.text.decode("utf-8", "replace")
                connections.log(LogLevel.ERROR, gate, f"Gateway Error {text}")
            case Bad():
                stranger = gate.stage is GateStage.CONNECT
                refuse_bad(connections, gate, op, stranger=stranger)
            case _:
                assert isinstance(op, Ok)

    # ---- time

    def tick(self, now_ns: int) -> None:
        """Dials, pings, handshakes that take too long, replies that are old."""
        self.connections.remotes.tick(now_ns)
        self.routing.replies.tick(now_ns)
        for gate in list(self.connections.by_conn.values()):
            if now_ns >= gate.alive.deadline_ns:
                self._due(gate, now_ns)
        if now_ns >= self._measure_ns:
            self._measure(now_ns)

    def _measure(self, now_ns: int) -> None:
        """Queue groups are served in the nearest cluster: where there are several, whoever was sent
        something is asked how far it is, and one that has not answered is at least as far."""
        found = [gate for gate in self.connections.linked() if gate.outbound]
        if len(found) < 2:
            self._measure_ns = now_ns + PING_INTERVAL_MAX_NS
            return
        self._measure_ns = now_ns + MEASURE_NS
        for gate in found:
            link, alive = gate.link, gate.alive
            assert link is not None, "linked ones have one"
            if alive.asked_ns:
                link.rtt_ns = max(link.rtt_ns, now_ns - alive.asked_ns)
            elif link.out_messages != gate.measured or link.rtt_ns >= MEASURE_NS:
                gate.measured = link.out_messages
                alive.pinged(now_ns)
                self.connections.send(gate, fields.PING)

    def _due(self, gate: Gate, now_ns: int) -> None:
        connections = self.connections
        if gate.stage is not GateStage.LINKED:
            connections.refuse(gate, "Authentication Timeout", "Authentication Timeout")
            return
        probe = gate.alive.due(now_ns, 0)
        if probe is Probe.GIVE_UP:
            connections.stale += 1
            connections.refuse(gate, "Stale Connection", "Stale Connection")
        elif probe is Probe.PING:
            connections.send(gate, fields.PING)

    def deadline_ns(self) -> int | None:
        """When `tick` has something to do."""
        if self._rests.left:
            return self.router.now_ns
        due = [self._measure_ns]
        due += [gate.alive.deadline_ns for gate in self.connections.by_conn.values()]
        more = (self.connections.remotes.deadline_ns(), self.routing.replies.deadline_ns())
        return min([*due, *(at for at in more if at is not None)], default=None)

    # ---- what to do and what is

    def facts(self, *, subscriptions: bool = False) -> list[GatewayFacts]:
        """All linked connections; with what the other cluster listens to, if that is wanted."""
        linked = self.connections.linked()
        return [self._facts(gate, gate.link, subscriptions) for gate in linked if gate.link]

    def _facts(self, gate: Gate, link: GatewayLink, subscriptions: bool) -> GatewayFacts:
        heard = self.routing.heard_of(link)
        remote = self.connections.remotes.clusters.get(gate.gateway)
        return GatewayFacts(
            conn=gate.conn,
            gate_id=gate.gate_id,
            gateway=gate.gateway,
            server_id=gate.server_id,
            server_name=gate.server_name,
            outbound=gate.outbound,
            configured=remote is not None and not remote.is_implicit,
            host=gate.host,
            port=gate.port,
            opened_ns=gate.opened_ns,
            last_ns=gate.last_in_ns,
            rtt_ns=gate.alive.rtt_ns,
            pending_bytes=pending_bytes(link),
            in_msgs=link.in_messages,
            in_bytes=link.in_bytes,
            out_msgs=link.out_messages,
            out_bytes=link.payload_bytes_out,
            accounts=self.routing.accounts_of(link) if subscriptions else (),
            subscription_count=len(heard),
            subscriptions=of_links(heard) if subscriptions else (),
        )

    def links(self) -> list[GatewayLink]:
        """The linked ones, for those who count messages."""
        return [gate.link for gate in self.connections.linked() if gate.link is not None]

    def take_stirred(self) -> bool:
        """Whether `deadline_ns` may have moved since the last call."""
        stirred, self._stirred = self._stirred, False
        return stirred or bool(self._rests.left)

    def emit(self, outputs: TurnOutputs) -> None:
        """Put writes, closes and dials of this turn into the outputs.

        What the handshake has to say goes before routed traffic of the same connection.
        """
        connections = self.connections
        made, connections.out = connections.out, GatewayOutput()
        outputs.writes[:0] = made.writes
        outputs.pauses += made.pauses
        outputs.resumes += made.resumes
        outputs.closes += made.closes
        outputs.dials += connections.remotes.dials
        connections.remotes.dials = []
        outputs.logs += made.logs
        for link in connections.gone:
            self.sessions.release_route(link)
        connections.gone.clear()
