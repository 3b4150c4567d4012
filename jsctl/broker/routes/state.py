"""What the mesh remembers: links, the servers behind them, and the addresses to dial."""

from dataclasses import field
from typing import TYPE_CHECKING

from jsctl.broker.routes.types import LinkAdded, LinkFacts, PeerFacts
from jsctl.broker.routes.wire import GOSSIP_DEFAULT, RouteInfo
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.broker.linking.compression import Unpacking


@dataclass(slots=True, eq=False)
class RouteAddress:
    """An address worth dialing: configured (explicit) or learned from gossip."""

    host: str
    port: int
    user: str
    password: str
    explicit: bool
    server_id: str = ""
    """Who answered there last."""
    gossip_mode: int = GOSSIP_DEFAULT
    retries_left: int = 0
    """Implicit only: dials that may still fail."""
    due_ns: int | None = None
    """When to look at it again; None while there is nothing to do."""
    pause_ns: int = 0
    """The last pause, for growing ones."""
    connected_once: bool = False
    inflight: set[str] = field(default_factory=set)
    """Accounts ("" for the pool) of dials that are not registered yet."""
    refused: set[str] = field(default_factory=set)
    """Accounts that the peer does not give a link of their own."""
    own: set[str] = field(default_factory=set)
    """Of the addresses of the host, those that are this server's."""


@dataclass(slots=True, eq=False)
class Link:
    """One route connection, from the first byte to the last."""

    conn: int
    host: str
    port: int
    opened_ns: int
    target: RouteAddress | None = None
    """Set on connections that this side dialed."""
    account: str = ""
    """Dedicated to this account; known from the start on dialed links."""
    authenticated: bool = False
    user: str = ""
    password: str = ""
    """What the peer said in CONNECT; it is asked for again when the cluster's changes."""
    handshake_by_ns: int | None = None
    peer: "RoutePeer | None" = None
    """Set once registered."""
    index: int = 0
    confirmed: bool = False
    """A PONG came after registration: the peer agrees."""
    gossip_mode: int = GOSSIP_DEFAULT
    compression: str = ""
    """How this side compresses, or why it does not; empty until that is settled."""
    unpacking: "Unpacking | None" = None
    """The way in of a connection that is compressed."""
    pings_out: int = 0
    ping_sent_ns: int = 0
    ping_due_ns: int = 0
    rtt_ns: int = 0

    @property
    def solicited(self) -> bool:
        """Whether this side dialed."""
        return self.target is not None


@dataclass(slots=True, eq=False)
class RoutePeer:
    """A server with at least one registered link."""

    info: RouteInfo
    no_pool: bool
    pool: list[Link | None]
    accounts: dict[str, Link] = field(default_factory=dict)
    target: RouteAddress | None = None
    """Where to dial what is missing; None when only the peer dials."""
    announced: bool = False
    """Its first plain link was registered: gossip and client URLs went out."""
    leaving: bool = False
    """It is in lame duck mode; its client URLs are no longer told."""

    @property
    def server_id(self) -> str:
        """The peer's server id."""
        return self.info.server_id

    def links(self) -> list[Link]:
        """All registered links; pool first."""
        return [link for link in self.pool if link is not None] + list(self.accounts.values())

    def free_index(self) -> int | None:
        """The first empty slot of the pool."""
        return next((i for i, link in enumerate(self.pool) if link is None), None)

    def adopt(self, target: RouteAddress) -> bool:
        """Dial what is missing at this address, if there is no other; whether it is the one.

        A nats-server is told of the pool and of each account on their own and dials only what it
        was told of: who dialed us for an account alone leaves the pool to us.
        """
        if self.target is None and not any(self.pool):
            self.target = target
        return self.target is target

    def choose_index(self, link: Link) -> None:
        """Set a pool link's slot: the dialer's choice, which on this side is the first free."""
        if self.no_pool:
            link.index = 0
        elif not link.account:
            if link.solicited:
                index = self.free_index()
                link.index = len(self.pool) - 1 if index is None else index
            self.pool.extend([None] * (link.index + 1 - len(self.pool)))

    def at_place_of(self, link: Link) -> Link | None:
        """Who has the place that a link claims."""
        return self.accounts.get(link.account) if link.account else self.pool[link.index]

    def put(self, link: Link) -> None:
        """Give a link its place."""
        link.peer = self
        if link.account:
            self.accounts[link.account] = link
        else:
            self.pool[link.index] = link

    def remove(self, link: Link) -> None:
        """Free a link's place, unless another has taken it."""
        if self.at_place_of(link) is not link:
            return
        if link.account:
            del self.accounts[link.account]
        else:
            self.pool[link.index] = None

    def facts(self) -> PeerFacts:
        """A copy for reports."""
        return PeerFacts(
            server_id=self.server_id,
            name=self.info.server_name,
            native=self.info.native,
            jetstream=self.info.jetstream,
            domain=self.info.domain,
            version=self.info.version,
            connect_urls=() if self.leaving else self.info.connect_urls,
            conns=[link.conn for link in self.links()],
            gateway_url=self.info.gateway_url,
        )


def link_added(link: Link, peer: RoutePeer, info: RouteInfo, pool_size: int) -> LinkAdded:
    """The event of a link that was registered; `pool_size` is this server's own."""
    return LinkAdded(
        conn=link.conn,
        server_id=peer.server_id,
        name=info.server_name,
        account=link.account,
        pool_index=link.index,
        pool_size=1 if peer.no_pool else pool_size,
        solicited=link.solicited,
        traces=info.traces,
        serves=info.native and info.jetstream,
    )


def link_facts(link: Link, peer: RoutePeer) -> LinkFacts:
    """A copy of a registered link for reports."""
    target = link.target or peer.target
    return LinkFacts(
        conn=link.conn,
        server_id=peer.server_id,
        name=peer.info.server_name,
        account=link.account,
        solicited=target is not None,
        configured=target is not None and target.explicit,
        host=link.host,
        port=link.port,
        opened_ns=link.opened_ns,
        rtt_ns=link.rtt_ns,
        compression=link.compression,
    )
