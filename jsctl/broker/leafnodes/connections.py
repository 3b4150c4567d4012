"""All connections of leaf nodes and hubs: how one is linked, and how one ends."""

from collections import deque
from dataclasses import field

from jsctl.broker.accounts.accounts import Account
from jsctl.broker.compression_options import Compression, agreed
from jsctl.broker.errors import ProtocolError
from jsctl.broker.interest.kinds import LEAF
from jsctl.broker.interest.targets import LeafLink
from jsctl.broker.leafnodes.domains import barrier
from jsctl.broker.leafnodes.leaf import Leaf, LeafPeer, LeafStage
from jsctl.broker.leafnodes.remotes import Remotes
from jsctl.broker.leafnodes.types import (
    LOOP_DELAY_NS,
    LeafEvent,
    LeafFacts,
    LeafOutput,
    LeafSettings,
)
from jsctl.broker.linking import fields
from jsctl.broker.linking.compression import packed
from jsctl.broker.linking.link_counts import LinkTraffic
from jsctl.broker.routing.leafs import LeafRouting
from jsctl.broker.routing.router import Router
from jsctl.broker.turn import LogLevel, LogLine
from jsctl.dataclass import dataclass

SECOND_NS = 1_000_000_000
PAYLOAD_EXCESS = 64 * 1024
"""A message between servers may be larger than a client's by its headers for them."""


@dataclass(slots=True)
class LeafConnections:
    """See the module. `urls` is where leaf nodes may connect in this cluster."""

    settings: LeafSettings
    router: Router
    routing: LeafRouting
    remotes: Remotes
    system_account: str
    urls: tuple[str, ...] = ()
    by_conn: dict[int, Leaf] = field(default_factory=dict)
    out: LeafOutput = field(default_factory=LeafOutput)
    events: list[LeafEvent] = field(default_factory=list)
    gone: list[LeafLink] = field(default_factory=list)
    """Links that ended: nobody need wait for them."""
    closed: deque[LeafFacts] = field(default_factory=deque)
    """Those that ended, for monitoring."""
    traffic: dict[str, LinkTraffic] = field(default_factory=dict)
    """What they carried, by account."""
    handshakes: int = 0
    slow: int = 0
    stale: int = 0
    """LeafConnections closed as they did not keep up, or did not answer."""

    def linked(self) -> list[Leaf]:
        """Those that carry messages."""
        return [leaf for leaf in self.by_conn.values() if leaf.stage is LeafStage.LINKED]

    def of_account(self, account: Account) -> list[Leaf]:
        """Those of them that belong to an account."""
        return [leaf for leaf in self.linked() if leaf.account is account]

    def traffic_of(self, account: Account) -> LinkTraffic:
        """What the connections of an account have carried since the start."""
        total = self.traffic.get(account.name, LinkTraffic())
        for leaf in self.of_account(account):
            assert leaf.link is not None
            total = total.plus(leaf.link)
        return total

    # ---- words

    def send(self, leaf: Leaf, data: bytes) -> None:
        """Say something."""
        if not leaf.closing:
            data = packed(leaf.level, data) if leaf.unpacking is not None else data
            self.out.writes.append((leaf.conn, data))

    def agree(self, leaf: Leaf, own: Compression, other: str) -> bool:
        """Settle how a connection is compressed, if it is; False if it cannot be."""
        try:
            leaf.agreed = agreed(own, other, self.router.now_ns - leaf.opened_ns)
        except ProtocolError as error:
            self.refuse(leaf, str(error), "Protocol Violation")
            return False
        return True

    def log(self, level: LogLevel, leaf: Leaf, text: str) -> None:
        """Tell the operator something of a connection."""
        self.out.logs.append(LogLine(level, f"{leaf.label} - {text}"))

    def follow_urls(self, urls: tuple[str, ...]) -> None:
        """Where leaf nodes may connect at the other servers of the cluster."""
        self.urls = urls

    def own_urls(self) -> tuple[str, ...]:
        """Where leaf nodes may connect in this cluster, here first."""
        settings = self.settings
        own = (settings.address,) if settings.address and not settings.no_advertise else ()
        return tuple(dict.fromkeys((*own, *self.urls)))

    # ---- linked

    def link(self, leaf: Leaf, account: Account, now_ns: int) -> None:
        """Have a connection carry messages of an account: the other side is told of interest."""
        settings, system = self.settings, account.name == self.system_account
        leaf.account, leaf.stage = account, LeafStage.LINKED
        self.handshakes -= 1
        name = f"{leaf.server_name}/{leaf.cluster}" if leaf.cluster else leaf.server_name
        leaf.barrier = barrier(
            settings, leaf.domain, name, remote_jetstream=leaf.jetstream, system=system
        )
        for note in leaf.barrier.notes:
            self.log(LogLevel.INFO, leaf, note)
        if leaf.barrier.warning:
            self.log(LogLevel.WARNING, leaf, leaf.barrier.warning)
        link = LeafPeer(leaf, account, self.settings, isolated=self._isolated(leaf))
        leaf.link = link
        self.limit(leaf)
        account.leafs += 1
        leaf.alive.begin(now_ns, self.router.jitter)
        self.routing.add(link)
        self.events.append(LeafEvent(leaf.facts(), connected=True))

    def limit(self, leaf: Leaf) -> None:
        """Say how large a message of a linked connection may be, as it is configured now."""
        leaf.parser.payload_max = self.settings.max_payload + PAYLOAD_EXCESS

    def _isolated(self, leaf: Leaf) -> bool:
        asked = leaf.said is not None and leaf.said.isolate
        wanted = leaf.remote is not None and leaf.remote.options.isolated
        return self.settings.isolated or asked or wanted

    def has_cluster(self, account: Account, cluster: str) -> bool:
        """Whether a leaf node of that cluster hangs on this server already: it would hear
        everything twice."""
        return any(
            leaf.cluster == cluster and leaf.link is not None and leaf.link.kind is LEAF
            for leaf in self.of_account(account)
        )

    def is_full(self, account: Account) -> bool:
        """Whether an account may have no more leaf nodes."""
        return account.leafs_over(1) > 0

    # ---- the end

    def turn_away(self, leaf: Leaf) -> None:
        """Close a connection that its account has no room for."""
        text = "maximum account active connections exceeded"
        self.refuse(leaf, text, "Maximum Account Connections Exceeded")

    def refuse(self, leaf: Leaf, text: str, reason: str, delay_ns: int = 0) -> None:
        """Say what is wrong, and close."""
        self.log(LogLevel.ERROR, leaf, text)
        self.send(leaf, fields.error_line(text))
        self.close(leaf, reason, delay_ns)

    def close(self, leaf: Leaf, reason: str, delay_ns: int = 0) -> None:
        """Close a connection from this side; nothing of it is heard any more. A hub is dialed again
        after its pause and `delay_ns`."""
        if leaf.closing:
            return
        if leaf.remote is not None:
            leaf.remote.delay_ns = max(leaf.remote.delay_ns, delay_ns)
        leaf.closing = True
        self.out.closes.append((leaf.conn, reason))
        self.forget(leaf, reason)

    def forget(self, leaf: Leaf, reason: str) -> None:
        """A connection is gone."""
        if self.by_conn.pop(leaf.conn, None) is None:
            return
        now_ns = self.router.now_ns
        link, leaf.closing = leaf.link, True
        if link is None:
            self.handshakes -= 1
        else:
            assert leaf.account is not None
            facts = leaf.facts(now_ns, reason)
            leaf.account.leafs -= 1
            link.closing = reason
            self.routing.drop(link)
            self.gone.append(link)
            self.closed.append(facts)
            before = self.traffic.get(facts.account, LinkTraffic())
            self.traffic[facts.account] = before.plus(link)
            self.events.append(LeafEvent(facts, connected=False))
        level = LogLevel.INFO if link is not None else LogLevel.DEBUG
        more = f" - Remote: {leaf.server_name}" if leaf.server_name else ""
        self.log(level, leaf, f"Leafnode connection closed: {reason}{more}")
        if leaf.remote is not None:
            self.remotes.closed(leaf.remote, now_ns)

    def loop(self, leaf: Leaf, *, tell: bool) -> None:
        """What is sent over a connection comes back: end it, and leave the hub alone."""
        name = leaf.account.name if leaf.account is not None else ""
        text = (
            f'Loop detected for leafnode account="{name}". Delaying attempt to reconnect for'
            f" {LOOP_DELAY_NS // SECOND_NS}s"
        )
        if tell:
            self.refuse(leaf, text, "Protocol Violation", LOOP_DELAY_NS)
        else:
            self.log(LogLevel.ERROR, leaf, text)
            self.close(leaf, "Protocol Violation", LOOP_DELAY_NS)
