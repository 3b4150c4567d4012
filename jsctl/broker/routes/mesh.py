"""The full mesh of route connections between servers, on the NATS route protocol. Sans-IO.

Theory of operation. An accepting side speaks first (INFO); a dialing side sends CONNECT at once
and its own INFO only after it has read the acceptor's, because that INFO names the slot of the
pool that the connection takes. Either side registers a connection when it has processed the
other's INFO. Between two servers there are `pool_size` pooled links and one dedicated link for
each pinned account; the dialer opens them one after another, each after a PONG proved the last
one accepted. A peer without pooling gets one link.

A dialer names a slot that is free on its side. So when the slot is taken here, the link in it is
dead there, or both sides dialed at once: a nats-server will close the one that it did not
choose. Either way the new link wins. Only between two jsctl brokers that dialed at once the link
dialed by the smaller server id wins, on both sides alike, and nothing has to be dialed again.

This module knows nothing of subscriptions and messages; `LinkAdded` says that a connection may
carry them. Lines on a dedicated link leave the account out and may follow the INFO that names it
in one chunk: parse line by line until `registered`, then by `account_of`.
"""

from collections.abc import Container

from jsctl.broker.errors import ProtocolError
from jsctl.broker.linking import fields
from jsctl.broker.routes import pings, wire
from jsctl.broker.routes.dials import DialSchedule
from jsctl.broker.routes.gossip import Gossip
from jsctl.broker.routes.handshake import (
    connect_refusal,
    hello,
    loses_place,
    may_connect,
    place_refusal,
    refuses_account,
    yields,
)
from jsctl.broker.routes.packing import PackedLinks
from jsctl.broker.routes.state import Link, RoutePeer, link_added, link_facts
from jsctl.broker.routes.types import (
    FIRST_PING_NS,
    HANDSHAKES_MAX,
    ClusterRenamed,
    GatewayTold,
    LinkFacts,
    LinkRemoved,
    MeshOptions,
    MeshOutput,
    PeerDown,
    PeerFacts,
    PeerUp,
)
from jsctl.broker.routes.wire import GOSSIP_DEFAULT, RouteInfo
from jsctl.broker.turn import Accepted, Jitter, LogLevel, LogLine


class Mesh:
    """All route connections of this server. Feed it events, then `take` what is to be done."""

    def __init__(
        self, options: MeshOptions, jitter: Jitter, known_accounts: Container[str]
    ) -> None:
        self.options = options
        self.cluster = options.cluster
        self._jitter = jitter
        self._known_accounts = known_accounts
        self._links: dict[int, Link] = {}
        self._peers: dict[str, RoutePeer] = {}
        self._dialer = DialSchedule(options, jitter)
        self.packing = PackedLinks(options.compression)
        self._gossip = Gossip(options, self._peers, self._dialer)
        self._out = MeshOutput()
        self._deadline_ns: int | None = None
        self._handshakes = 0
        self._lame_duck = False
        self._urls_touched = False

    # ---- what happened

    def start(self, now_ns: int) -> None:
        """Dial the configured routes. The cluster listener should be open by now."""
        self._dialer.configure(now_ns)
        self._tick(now_ns)

    def opened(self, accepted: Accepted, now_ns: int) -> None:
        """A connection is there: accepted, or the outcome of a dial."""
        purpose = self._dialer.arrived(accepted.dial_token) if accepted.dial_token else None
        if accepted.dial_token and purpose is None:
            self._out.closes.append((accepted.conn, "Route Removed"))
            return
        target, account = purpose or (None, "")
        link = Link(
            conn=accepted.conn,
            host=accepted.remote_host,
            port=accepted.remote_port,
            opened_ns=now_ns,
            target=target,
            account=account,
            authenticated=target is not None or not self.options.user,
            handshake_by_ns=now_ns + self.options.auth_timeout_ns,
            gossip_mode=GOSSIP_DEFAULT if target is None else target.gossip_mode,
            ping_due_ns=now_ns + FIRST_PING_NS,
        )
        self._handshakes += 1
        self._links[link.conn] = link
        if target is None and self._handshakes > HANDSHAKES_MAX:
            self._close(link, "Maximum Connections Exceeded", now_ns)
            return
        self._wake(link.handshake_by_ns)
        if target is None:
            self._hello(link)
            return
        user, password = target.user, target.password
        self._send(link, wire.connect_line(self.options, self.cluster, user, password))
        if not self.options.delays_info:
            self._hello(link)

    def dial_failed(self, token: int, reason: str, now_ns: int) -> None:
        """A dial did not lead to a connection."""
        target = self._dialer.failed(token, reason, now_ns)
        if target is not None:
            where = wire.join_url(target.host, target.port)
            self._log(LogLevel.DEBUG, f"Error trying to connect to route {where}: {reason}")
        self._wake(self._dialer.deadline_ns())

    def closed(self, conn: int, reason: str, now_ns: int) -> None:
        """A connection is gone. The end of a server's last link is its end: `PeerDown`."""
        link = self._links.pop(conn, None)
        if link is not None:
            self._drop(link, reason, now_ns)

    def connect(self, conn: int, body: bytes, now_ns: int) -> None:
        """CONNECT arrived."""
        link = self._links.get(conn)
        if link is None:
            return
        try:
            connect = wire.parse_connect(body)
        except ProtocolError as error:
            self._refuse(link, str(error), "Protocol Violation", now_ns)
            return
        link.user, link.password = connect.user, connect.password
        refusal = connect_refusal(self.options, connect)
        if refusal is None and not self._agree(
            connect.cluster, connect.cluster_dynamic, connect.name, now_ns
        ):
            text = (
                f'Rejecting connection, cluster name "{connect.cluster}"'
                f' does not match "{self.cluster}"'
            )
            refusal = text, "Cluster Name Conflict"
        if refusal is None:
            link.authenticated = True
        else:
            self._refuse(link, *refusal, now_ns)

    def info(self, conn: int, body: bytes, now_ns: int) -> None:
        """INFO arrived: the peer's first one registers the connection, later ones are news."""
        link = self._links.get(conn)
        if link is None:
            return
        try:
            info = wire.parse_info(body)
            anew = self.packing.negotiate(link, info, now_ns, lambda: self._hello(link))
        except ProtocolError as error:
            self._refuse(link, str(error), "Protocol Violation", now_ns)
            return
        if link.peer is not None:
            self._news(link, link.peer, info, now_ns)
        elif not link.authenticated:
            self._refuse(link, "Authorization Violation", "Authentication Failure", now_ns)
        elif not anew:
            self._first_info(link, info, now_ns)
        self._wake(self._dialer.deadline_ns())

    def ping(self, conn: int) -> None:
        """PING arrived."""
        if conn in self._links:
            self._send(self._links[conn], fields.PONG)

    def pong(self, conn: int, now_ns: int) -> None:
        """PONG arrived: the peer lives, and after a handshake, agrees to the link."""
        link = self._links.get(conn)
        if link is None:
            return
        if pings.answered(link, now_ns):
            self.packing.adjust(link)
        if link.peer is None or link.confirmed:
            return
        link.confirmed = True
        if link.target is not None:
            self._dialer.connected(link.target, link.peer.server_id)
            self._fill(link.peer)

    def error(self, conn: int, text: str) -> None:
        """-ERR arrived; the peer closes the connection."""
        link = self._links.get(conn)
        if link is None:
            return
        self._log(LogLevel.ERROR, f"{link.host}:{link.port} - Route Error {text}")
        if link.account and link.target is not None and refuses_account(text):
            link.target.refused.add(link.account)

    def bad(self, conn: int, text: str, reason: str, now_ns: int) -> None:
        """Something arrived that is not the route protocol."""
        link = self._links.get(conn)
        if link is not None:
            self._refuse(link, text or reason, reason, now_ns)

    def tick(self, now_ns: int) -> None:
        """Do what is due: dials, pings, handshakes that take too long."""
        if self._deadline_ns is not None and now_ns >= self._deadline_ns:
            self._tick(now_ns)

    def lame_duck(self) -> None:
        """Tell all peers that this server leaves: they stop telling clients of it."""
        self._lame_duck = self._gossip.leaving = self._urls_touched = True
        self._tell_all()

    def change_options(
        self, options: MeshOptions, known_accounts: Container[str], now_ns: int
    ) -> None:
        """Take changed options, and have links, dials and what peers are told follow them."""
        before, self.options = self.options, options
        self._gossip.options, self._known_accounts = options, known_accounts
        self.packing.change(options.compression)
        if options.cluster != before.cluster:
            self.cluster = options.cluster
        gone = self._dialer.change_options(options, now_ns)
        for link in list(self._links.values()):
            keeps = self.packing.follows(link, before.compression)
            if not link.solicited and not may_connect(options, link.user, link.password):
                self._refuse(link, *fields.UNAUTHORIZED, now_ns)
            elif not keeps or loses_place(link, before, options, gone):
                self._close(link, "Route Removed", now_ns)
        self._urls_touched = True
        self._tell_all()
        self._wake(self._dialer.deadline_ns())

    def stop(self, now_ns: int) -> None:
        """Close everything and dial no more."""
        self._dialer.stopped = True
        for target in self._dialer.targets:
            target.due_ns = None
        for link in list(self._links.values()):
            self._close(link, "Server Shutdown", now_ns)

    # ---- what to do and what is

    @property
    def busy(self) -> bool:
        """Whether `take` has anything."""
        out = self._out
        return bool(
            self._urls_touched
            or self._dialer.dials
            or out.writes
            or out.events
            or out.closes
            or out.logs
        )

    def take(self) -> MeshOutput:
        """Everything to be done since the last call."""
        out, self._out = self._out, MeshOutput()
        out.dials.extend(self._dialer.dials)
        self._dialer.dials.clear()
        if self._urls_touched:
            self._urls_touched = False
            out.events.extend(self._gossip.url_changes())
        return out

    @property
    def deadline_ns(self) -> int | None:
        """When `tick` has something to do."""
        return self._deadline_ns

    def registered(self, conn: int) -> bool:
        """Whether a connection may carry routed traffic."""
        return conn in self._links and self._links[conn].peer is not None

    def connect_urls(self) -> tuple[str, ...]:
        """Client URLs of all servers known, own ones first."""
        return self._gossip.connect_urls()

    def peers(self) -> list[PeerFacts]:
        """The servers connected now."""
        return [peer.facts() for peer in self._peers.values()]

    def links(self) -> list[LinkFacts]:
        """All registered links."""
        return [link_facts(link, link.peer) for link in self._links.values() if link.peer]

    # ---- handshake

    def _first_info(self, link: Link, info: RouteInfo, now_ns: int) -> None:
        if info.server_id == self.options.server_id:
            if link.target is not None:
                self._dialer.met_itself(link.target, link.host)
            self._close(link, "Duplicate Route", now_ns)
            return
        if info.cluster and not self._agree(
            info.cluster, info.cluster_dynamic, info.server_id, now_ns
        ):
            self._log(LogLevel.ERROR, f"Cluster name conflict with {info.server_name!r}")
            self._close(link, "Cluster Name Conflict", now_ns)
            return
        if not link.solicited and info.server_name == self.options.server_name:
            self._log(LogLevel.ERROR, f"Remote server has a duplicate name: {info.server_name!r}")
            self._close(link, "Duplicate Server Name", now_ns)
            return
        if not link.solicited:
            link.account = info.account
            link.index = info.pool_index
        refusal = place_refusal(self.options, self._known_accounts, link, info)
        if refusal:
            if link.target is not None:
                link.target.refused.add(link.account)
            self._refuse(link, refusal, "Protocol Violation", now_ns)
            return
        link.gossip_mode = link.gossip_mode or info.gossip_mode
        self._place(link, info, now_ns)

    def _place(self, link: Link, info: RouteInfo, now_ns: int) -> None:
        """Give the link its place at the peer, or find that the place is taken."""
        peer = self._peers.get(info.server_id)
        if peer is None:
            no_pool = self.options.pool_size < 1 or info.pool_size < 1
            size = 1 if no_pool else max(self.options.pool_size, info.pool_size)
            peer = RoutePeer(info=info, no_pool=no_pool, pool=[None] * size)
        if link.target is not None:
            link.target.server_id = peer.server_id
            if peer.target is None or link.target.explicit:
                peer.target = link.target
        peer.choose_index(link)
        old = peer.at_place_of(link)
        if old is not None and not yields(old, link, peer, self.options.server_id):
            self._close(link, "Duplicate Route", now_ns)
            return
        peer.put(link)
        if old is not None:
            self._close(old, "Duplicate Route", now_ns)
        self._register(link, peer, info, now_ns)

    def _register(self, link: Link, peer: RoutePeer, info: RouteInfo, now_ns: int) -> None:
        link.handshake_by_ns = None
        self._handshakes -= 1
        self._urls_touched = True
        if not link.account:
            peer.info = info
        if link.target is not None:
            if self.options.delays_info:
                self._hello(link)
            self._ping(link, now_ns)
        if peer.server_id not in self._peers:
            self._peers[peer.server_id] = peer
            self._out.events.append(PeerUp(peer.server_id, info.server_name, info.native))
        self._out.events.append(link_added(link, peer, info, self.options.pool_size))
        self._out.writes += self.packing.pack_all(self._gossip.announce(link, peer, info))
        if link.target is not None:
            # Only now, so that a next dial finds this place taken.
            link.target.inflight.discard(link.account)
        self._wake(link.ping_due_ns)

    # ---- news on an established link

    def _news(self, link: Link, peer: RoutePeer, info: RouteInfo, now_ns: int) -> None:
        if info.account_request:
            if info.account:
                self._send(link, wire.account_answer_line(info))
        elif info.gateway:
            told = GatewayTold(info.gateway, info.gateway_urls, peer.server_id)
            self._out.events.append(told)
        elif info.server_id != peer.server_id:
            if info.server_id != self.options.server_id and not self._lame_duck:
                self._gossip.heard(info, now_ns)
        elif info.lame_duck:
            peer.leaving = self._urls_touched = True
        else:
            peer.info = info
            self._urls_touched = True

    def _agree(self, cluster: str, dynamic: bool, name: str, now_ns: int) -> bool:
        """Whether the cluster names match, after a generated one gave way."""
        if cluster == self.cluster:
            return True
        if not self.options.cluster_dynamic or (dynamic and self.cluster >= cluster):
            return False
        self.cluster = cluster
        self._out.events.append(ClusterRenamed(cluster))
        for link in list(self._links.values()):
            if link.peer is not None and link.peer.server_id != name:
                self._close(link, "Cluster Name Conflict", now_ns)
        return True

    # ---- the end of links

    def _refuse(self, link: Link, text: str, reason: str, now_ns: int) -> None:
        self._log(LogLevel.ERROR, f"{link.host}:{link.port} - {text}")
        self._send(link, fields.error_line(text))
        self._close(link, reason, now_ns)

    def _close(self, link: Link, reason: str, now_ns: int) -> None:
        """Close a connection from this side; nothing of it is heard any more."""
        self._out.closes.append((link.conn, reason))
        if self._links.pop(link.conn, None) is not None:
            self._drop(link, reason, now_ns)

    def _drop(self, link: Link, reason: str, now_ns: int) -> None:
        peer, target = link.peer, link.target
        self.packing.forget(link.conn)
        if peer is None:
            self._handshakes -= 1
            if target is not None:
                target.inflight.discard(link.account)
                self._dialer.retry(target, now_ns)
                self._wake(self._dialer.deadline_ns())
            return
        peer.remove(link)
        self._urls_touched = True
        self._out.events.append(LinkRemoved(link.conn, peer.server_id, link.account, reason))
        last = not peer.links()
        if last:
            del self._peers[peer.server_id]
            self._out.events.append(PeerDown(peer.server_id, peer.info.server_name, reason))
        if peer.target is not None:
            if last:
                peer.target.refused.clear()
            if link.solicited and not link.confirmed:
                self._dialer.retry(peer.target, now_ns)
            else:
                self._dialer.soon(peer.target, now_ns)
            self._wake(self._dialer.deadline_ns())

    # ---- time

    def _tick(self, now_ns: int) -> None:
        for target in self._dialer.take_due(now_ns):
            peer = self._peers.get(target.server_id)
            if peer is None:
                self._dialer.dial(target, "")
            elif peer.adopt(target):
                self._fill(peer)
        for link in list(self._links.values()):
            if link.handshake_by_ns is not None:
                if now_ns >= link.handshake_by_ns:
                    self._refuse(link, "Authentication Timeout", "Authentication Timeout", now_ns)
            elif pings.is_due(link, now_ns):
                if pings.is_stale(link, self.options):
                    self._close(link, "Stale Connection", now_ns)
                else:
                    self._ping(link, now_ns)
        waits = [link.handshake_by_ns or link.ping_due_ns for link in self._links.values()]
        self._deadline_ns = min(waits, default=None)
        self._wake(self._dialer.deadline_ns())

    def _ping(self, link: Link, now_ns: int) -> None:
        pings.asked(link, self.options, now_ns)
        self._send(link, fields.PING)

    def _fill(self, peer: RoutePeer) -> None:
        """Dial what the pool and the pinned accounts still miss."""
        target = peer.target
        if target is None or peer.no_pool:
            return
        for account in self.options.pinned:
            if account not in peer.accounts and account not in target.refused:
                self._dialer.dial(target, account)
        if peer.free_index() is not None:
            self._dialer.dial(target, "")

    def _wake(self, at_ns: int | None) -> None:
        if at_ns is not None and (self._deadline_ns is None or at_ns < self._deadline_ns):
            self._deadline_ns = at_ns

    # ---- output

    def _hello(self, link: Link) -> None:
        told, leaves = self.packing.told(link), self._lame_duck
        line = hello(self.options, self.cluster, link, told, self._jitter, lame_duck=leaves)
        self._send(link, line)

    def _tell_all(self) -> None:
        own, leaves = self.options.compression.told, self._lame_duck
        self.tell(wire.info_line(self.options, self.cluster, compression=own, lame_duck=leaves))

    def tell(self, line: bytes) -> None:
        """Say something to every server."""
        for peer in self._peers.values():
            self._send(peer.links()[0], line)

    def _send(self, link: Link, data: bytes) -> None:
        self._out.writes.append((link.conn, self.packing.pack(link.conn, data)))

    def _log(self, level: LogLevel, text: str) -> None:
        self._out.logs.append(LogLine(level, text))
