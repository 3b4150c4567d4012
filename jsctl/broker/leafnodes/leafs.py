"""Leaf nodes and hubs of the node: the door between the turn's words and their connections."""

from collections import deque
from dataclasses import field, replace

from jsctl.broker.accounts.accounts import Account
from jsctl.broker.compression_options import AUTO, Compression
from jsctl.broker.errors import ProtocolError
from jsctl.broker.interest.outbound import Outbound
from jsctl.broker.interest.targets import LeafLink
from jsctl.broker.leafnodes import accepted, dialed
from jsctl.broker.leafnodes.connections import LeafConnections
from jsctl.broker.leafnodes.lane import LeafLane
from jsctl.broker.leafnodes.leaf import Leaf, LeafStage
from jsctl.broker.leafnodes.remotes import Remote, Remotes
from jsctl.broker.leafnodes.types import (
    FIRST_PING_NS,
    HANDSHAKES_MAX,
    VIOLATION_DELAY_NS,
    WAITING_BYTES_MAX,
    LeafEvent,
    LeafFacts,
    LeafOutput,
    LeafSettings,
)
from jsctl.broker.linking import fields
from jsctl.broker.linking.compression import Unpacking, packed
from jsctl.broker.linking.door import LinkDoor, refuse_bad
from jsctl.broker.linking.rests import turn_valve
from jsctl.broker.options import Options
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
from jsctl.broker.protocol.route import LINE_FACTOR, LeafParser
from jsctl.broker.routing.leafs import TOO_MANY, LeafRouting, Offence
from jsctl.broker.routing.limits import LINE_BYTES_MAX, RoutingLimits
from jsctl.broker.routing.router import SLOW_CONSUMER, Router
from jsctl.broker.routing.setup import system_account
from jsctl.broker.sessions.keepalive import KeepAlive, Probe
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.sessions.standing import EXPIRED, vouching_over
from jsctl.broker.turn import (
    WRITE_DEADLINE,
    Accepted,
    ConnKind,
    Dial,
    Jitter,
    LogLevel,
    LogLine,
    TurnOutputs,
)
from jsctl.dataclass import dataclass

NO_PAYLOAD = -1
"""Before its handshake the other side is a stranger, and has no messages to give."""


@dataclass(slots=True)
class Leafs(LinkDoor[Leaf]):
    """The connections of leaf nodes and hubs."""

    router: Router
    routing: LeafRouting
    sessions: Sessions
    connections: LeafConnections
    _lane: LeafLane
    _made: LeafOutput = field(default_factory=LeafOutput)

    @staticmethod
    def of(
        options: Options, settings: LeafSettings, router: Router, sessions: Sessions, jitter: Jitter
    ) -> "Leafs":
        """A server's, as it is configured."""
        routing = LeafRouting(router)
        router.watchers.append(routing)
        router.remapped.append(routing.remapped)
        name = system_account(options) if options.has_system_account else ""
        remotes = Remotes(settings, jitter, name)
        closed: deque[LeafFacts] = deque(maxlen=options.client.closed_clients_max)
        connections = LeafConnections(settings, router, routing, remotes, name, closed=closed)
        return Leafs(router, routing, sessions, connections, LeafLane(router, sessions.twin.table))

    def start(self, options: Options, now_ns: int) -> None:
        """Dial the configured hubs."""
        self.connections.remotes.configure(options.leafnodes, now_ns)
        self.tick(now_ns)

    def change_options(self, options: Options, settings: LeafSettings, now_ns: int) -> None:
        """Take a changed configuration: remotes that are not in it, or switched off, go, and so
        does who belongs to an account that is gone. What else a leaf node may do here was settled
        when it logged in, as in nats-server."""
        connections = self.connections
        connections.settings = connections.remotes.settings = settings
        self._lane.forget()
        gone = set(connections.remotes.configure(options.leafnodes, now_ns))
        for leaf in list(connections.by_conn.values()):
            if leaf.remote in gone or self._is_astray(leaf) or not self._compress_as(leaf):
                connections.close(leaf, "Client Closed")
            elif leaf.link is not None:
                connections.limit(leaf)
        self.routing.forget_gone()
        self.tick(now_ns)

    def _is_astray(self, leaf: Leaf) -> bool:
        """Whether the account of a connection is gone: it would be nothing to one of the same name
        that comes later. Who is logging in has to be who it was, with the same password."""
        if leaf.check is not None:
            return not accepted.checked_again(self.connections, leaf, leaf.check)
        if not accepted.still_vouched(self.connections, leaf):
            return True
        account = leaf.account
        return account is not None and self.router.accounts.get(account.name) is not account

    def tell_urls(self, urls: tuple[str, ...]) -> None:
        """Where leaf nodes may connect at the other servers of the cluster has changed."""
        self.connections.follow_urls(urls)
        for leaf in self.connections.linked():
            accepted.tell_again(self.connections, leaf)

    @property
    def kind(self) -> ConnKind:
        """Of these connections."""
        return ConnKind.LEAF

    # ---- what happened

    def owns(self, conn: int) -> bool:
        """Whether a connection is one of those."""
        return conn in self.connections.by_conn

    def opened(self, made: Accepted, now_ns: int) -> None:
        """A connection of a leaf node, or one to a hub."""
        connections, limits = self.connections, self._limits()
        remote = None
        if made.dial_token:
            remote = connections.remotes.arrived(made.dial_token, made.conn)
            if remote is None:
                connections.out.closes.append((made.conn, "Client Closed"))
                return
        leaf = Leaf(
            made.conn,
            made.remote_host,
            made.remote_port,
            self.sessions.new_id(),
            now_ns,
            LeafParser(
                min(limits.control_line_bytes_max * LINE_FACTOR, LINE_BYTES_MAX), NO_PAYLOAD
            ),
            KeepAlive(limits),
            LeafStage.CONNECT if remote is None else LeafStage.INFO,
            remote,
            made.credentials,
            own=self._compression(remote),
        )
        connections.by_conn[leaf.conn] = leaf
        connections.handshakes += 1
        more = "" if remote is None else f" for account: {remote.account}"
        connections.log(LogLevel.INFO, leaf, f"Leafnode connection created{more}")
        leaf.alive.await_login(now_ns)
        if remote is not None:
            leaf.alive.deadline_ns = now_ns + remote.options.first_info_ns
        elif connections.handshakes > HANDSHAKES_MAX:
            connections.close(leaf, "Maximum Connections Exceeded")
        else:
            accepted.greet(connections, leaf)

    def _limits(self) -> RoutingLimits:
        login_ns = self.connections.settings.login_ns
        limits = self.router.limits
        return replace(limits, first_ping_ns=FIRST_PING_NS, auth_timeout_ns=login_ns)

    def dial_failed(self, dial: Dial, reason: str, now_ns: int) -> None:
        """A dial did not lead to a connection."""
        remotes = self.connections.remotes
        remote = remotes.failed(dial.token, now_ns)
        if remote is None:
            return
        level = LogLevel.ERROR if remotes.is_reported(remote) else LogLevel.DEBUG
        text = (
            f'Error trying to connect as leafnode to remote server "{dial.host}:{dial.port}"'
            f" (attempt {remote.attempts}): {reason}"
        )
        self.connections.out.logs.append(LogLine(level, text))

    def closed(self, conn: int, reason: str, now_ns: int) -> None:
        """A connection is gone."""
        leaf = self.connections.by_conn.get(conn)
        if leaf is not None:
            while leaf.rest and not leaf.closing:
                self._read(leaf, b"")
            if reason == WRITE_DEADLINE and leaf.account is not None:
                self._note_slow(leaf.account)
            self.connections.forget(leaf, reason or "Client Closed")

    def close_faulty(self, conn: int) -> None:
        """What a connection asked for met a bug: end it."""
        leaf = self.connections.by_conn.get(conn)
        if leaf is not None:
            self.connections.refuse(leaf, "Internal Server Error", "Internal Error")

    def kick(self, leaf_id: int, reason: str) -> bool:
        """Close a linked connection as an operator wants it; False if there is none."""
        found = [one for one in self.connections.linked() if one.leaf_id == leaf_id]
        for leaf in found:
            self.connections.close(leaf, reason)
        return bool(found)

    def make_room(self, account: Account) -> None:
        """Close the youngest of an account that has too many."""
        for leaf in self.connections.of_account(account)[::-1][: account.leafs_over()]:
            self.connections.turn_away(leaf)

    def pending(self, conn: int, unsent_bytes: int) -> None:
        """What the edge still has to send crossed a watermark."""
        leaf = self.connections.by_conn.get(conn)
        if leaf is not None and leaf.link is not None:
            self.sessions.pending(leaf.link, unsent_bytes)

    def verified(self, conn: int, ok: bool) -> None:
        """A password was checked."""
        leaf = self.connections.by_conn.get(conn)
        if leaf is None or leaf.check is None:
            return
        accepted.verified(self.connections, leaf, ok)
        held, leaf.held = leaf.held, []
        for chunk in held:  # It has been unpacked.
            if not leaf.closing:
                self._read(leaf, chunk)

    def feed(self, conn: int, chunk: bytes, now_ns: int) -> None:
        """Bytes came. Until a connection is linked, lines are read one at a time: what they mean
        depends on it."""
        leaf = self.connections.by_conn.get(conn)
        if leaf is None:
            return
        if chunk:
            leaf.last_in_ns = now_ns
        if leaf.unpacking is None:
            rested = bool(leaf.rest)
            self._read(leaf, chunk)
            if bool(leaf.rest) is not rested:
                turn_valve(conn, self.connections.out, opens=rested)
        else:
            self._unpack(leaf, leaf.unpacking, chunk)

    def unread(self) -> list[int]:
        """Connections of which not all is opened or carried out yet."""
        return [
            leaf.conn
            for leaf in self.connections.by_conn.values()
            if leaf.rest or (leaf.unpacking is not None and leaf.unpacking.waiting)
        ]

    def _unpack(self, leaf: Leaf, unpacking: Unpacking, chunk: bytes = b"") -> None:
        """Open what came, as much as one turn is for; meanwhile no more is read."""

        def read(data: bytes) -> bool:
            self._read(leaf, data)
            return not (leaf.closing or leaf.rest)

        if leaf.rest:
            self._read(leaf, b"")
        try:
            if leaf.rest:
                unpacking.hold(chunk, leaf.conn, self.connections.out)
            elif not leaf.closing:
                unpacking.open(chunk, read, leaf.conn, self.connections.out)
        except ProtocolError as error:
            self.connections.log(LogLevel.ERROR, leaf, str(error))
            self.connections.close(leaf, "Read Error")

    def _read(self, leaf: Leaf, chunk: bytes) -> None:
        chunk, leaf.rest = leaf.rest + chunk, b""
        start, before = 0, leaf.unpacking
        while start < len(chunk) and leaf.stage is not LeafStage.LINKED:
            if leaf.stage is LeafStage.PASSWORD:
                self._hold(leaf, chunk[start:])
                return
            end = chunk.find(b"\n", start) + 1 or len(chunk)
            self._take(leaf, leaf.parser.feed(chunk[start:end]))
            start = end
            if leaf.closing:
                return
            if leaf.unpacking is not before:
                assert leaf.unpacking is not None
                self._unpack(leaf, leaf.unpacking, chunk[start:])
                return
        link = leaf.link
        if start < len(chunk) and link is not None:
            words = (link, leaf.parser, chunk[start:], lambda ops: self._take(leaf, ops))
            leaf.rest = self._lane.feed(*words)

    def _hold(self, leaf: Leaf, chunk: bytes) -> None:
        leaf.held.append(chunk)
        if sum(map(len, leaf.held)) > WAITING_BYTES_MAX:
            self.connections.close(leaf, "Protocol Violation")

    def _route(self, leaf: Leaf, ops: list[RouteOp]) -> bool:
        connections, link = self.connections, leaf.link
        if link is None:
            text = "Authorization Violation"
            connections.refuse(leaf, text, "Protocol Violation")
            return False
        was_crowded = link in self.routing.crowded
        found = self.routing.take(link, ops)
        if not was_crowded and link in self.routing.crowded:
            connections.log(LogLevel.ERROR, leaf, TOO_MANY.decode())
        if found is None:
            return True
        offence, subject = found
        if offence is Offence.LOOP:
            connections.loop(leaf, tell=True)
            return False
        action = "Publish" if offence is Offence.PUBLISHED else "Subscription"
        shown = subject.decode(errors="replace")
        line = f'{action} Violation on "{shown}" - Check other side configuration'
        connections.log(LogLevel.ERROR, leaf, line)
        text = f'Permissions Violation for {action} to "{shown}"'
        connections.send(leaf, fields.error_line(text))
        connections.close(leaf, "Protocol Violation", VIOLATION_DELAY_NS)
        return False

    def _handshake(self, leaf: Leaf, op: RouteOp) -> None:
        connections = self.connections
        match op:
            case Ping():
                connections.send(leaf, fields.PONG)
            case Pong():
                leaf.alive.pong(self.router.now_ns)
                self._adjust(leaf)
            case Info():
                if leaf.remote is not None:
                    dialed.info(connections, leaf, leaf.remote, op.body)
                    self._follow(leaf)
                else:
                    accepted.info(connections, leaf, op.body)
            case Connect():
                if leaf.stage is LeafStage.CONNECT:
                    accepted.connect(connections, leaf, op.body)
                else:
                    connections.refuse(leaf, "Unknown Protocol Operation", "Protocol Violation")
            case PeerError():
                dialed.error(connections, leaf, op.text.decode("utf-8", "replace"))
            case Bad():
                stranger = leaf.stage is LeafStage.CONNECT
                refuse_bad(connections, leaf, op, stranger=stranger)
            case _:
                assert isinstance(op, Ok)

    def _adjust(self, leaf: Leaf) -> None:
        """The round trip is known anew."""
        own = self._compression(leaf.remote)
        if leaf.level and own.mode == AUTO:
            leaf.agreed = own.level(leaf.alive.rtt_ns)

    def _compression(self, remote: Remote | None) -> Compression:
        settings = self.connections.settings
        return settings.compression if remote is None else remote.options.compression

    def _compress_as(self, leaf: Leaf) -> bool:
        """Follow a changed configuration; False when a connection has to be made anew."""
        own, before = self._compression(leaf.remote), leaf.own
        leaf.own = own
        if leaf.link is None or before == own:
            return True
        found = own.after(leaf.compression, leaf.alive.rtt_ns)
        if leaf.level:
            leaf.agreed = found
        return bool(found)

    def _follow(self, leaf: Leaf) -> None:
        if leaf.link is not None:
            self._lane.forget(leaf.link)

    # ---- time

    def tick(self, now_ns: int) -> None:
        """Dials, pings, handshakes that take too long."""
        self.connections.remotes.tick(now_ns)
        for leaf in list(self.connections.by_conn.values()):
            if now_ns >= leaf.alive.deadline_ns:
                self._due(leaf, now_ns)

    def _due(self, leaf: Leaf, now_ns: int) -> None:
        connections = self.connections
        if leaf.stage in (LeafStage.CONNECT, LeafStage.PASSWORD):
            text = "Authentication Timeout"
            connections.refuse(leaf, text, text)
        elif leaf.stage is not LeafStage.LINKED:
            dialed.disappointed(connections, leaf)
        elif leaf.identity is not None and vouching_over(leaf.identity, now_ns):
            connections.refuse(leaf, "User Authentication Expired", EXPIRED)
        else:
            # A hub is pinged in any case: that it is silent may mean that it is gone.
            probe = leaf.alive.due(now_ns, 0 if leaf.is_hub else leaf.last_in_ns)
            if probe is Probe.GIVE_UP:
                connections.stale += 1
                connections.refuse(leaf, "Stale Connection", "Stale Connection")
            elif probe is Probe.PING:
                connections.send(leaf, fields.PING)

    def deadline_ns(self) -> int | None:
        """When `tick` has something to do."""
        if self.unread():
            return self.router.now_ns
        due = [leaf.alive.deadline_ns for leaf in self.connections.by_conn.values()]
        dial_ns = self.connections.remotes.deadline_ns()
        if dial_ns is not None:
            due.append(dial_ns)
        return min(due, default=None)

    # ---- what to do and what is

    def facts(self, account: str = "", *, subscriptions: bool = False) -> list[LeafFacts]:
        """Linked connections, of one account if it is named; with their subscriptions, if these are
        wanted."""
        return [
            leaf.facts(subscriptions=subscriptions)
            for leaf in self.connections.linked()
            if not account or (leaf.account is not None and leaf.account.name == account)
        ]

    def _compressed(self) -> list[Leaf]:
        leafs = self.connections.by_conn.values()
        return [leaf for leaf in leafs if leaf.unpacking is not None]

    def links(self) -> list[LeafLink]:
        """The sending sides of linked connections."""
        return list(self.routing)

    @property
    def expecting(self) -> bool:
        """Whether `take_events` has something."""
        return bool(self.connections.events) or bool(self.unread())

    def take_events(self) -> list[LeafEvent]:
        """Who was linked and who is gone since the last call."""
        events, self.connections.events = self.connections.events, []
        return events

    def emit(self, outputs: TurnOutputs) -> None:
        """Put writes, closes, dials and password checks of this turn into the outputs.

        What the handshake has to say goes before routed traffic of the same connection.
        """
        connections = self.connections
        for slow in self.sessions.slow_links:
            self._close_slow(slow)
        self.sessions.slow_links.clear()
        made, connections.out = connections.out, LeafOutput()
        if levels := {leaf.conn: leaf.level for leaf in self._compressed()}:
            outputs.writes = [
                (conn, packed(levels[conn], data) if conn in levels else data)
                for conn, data in outputs.writes
            ]
        outputs.writes[:0] = made.writes
        outputs.pauses += made.pauses
        outputs.resumes += made.resumes
        outputs.closes += made.closes
        outputs.verifies += made.verifies
        outputs.dials += [*made.dials, *connections.remotes.dials]
        connections.remotes.dials.clear()
        outputs.logs += made.logs
        for link in connections.gone:
            self._release(link)
        connections.gone.clear()

    def _close_slow(self, link: Outbound) -> None:
        leaf = self.connections.by_conn.get(link.conn)
        if leaf is not None:
            assert leaf.account is not None
            self._note_slow(leaf.account)
            self.connections.close(leaf, SLOW_CONSUMER)

    def _note_slow(self, account: Account) -> None:
        account.slow_consumers += 1
        self.connections.slow += 1

    def _release(self, link: LeafLink) -> None:
        self._lane.forget(link)
        self.sessions.release_route(link)
