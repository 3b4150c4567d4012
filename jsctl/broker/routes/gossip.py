"""Who is told of whom: gossip of new servers to peers, and of client URLs to clients."""

from jsctl.broker.linking.fields import split_url
from jsctl.broker.routes import wire
from jsctl.broker.routes.dials import DialSchedule
from jsctl.broker.routes.state import Link, RoutePeer
from jsctl.broker.routes.types import ConnectUrlsChanged, LeafnodeUrlsChanged, MeshOptions
from jsctl.broker.routes.wire import GOSSIP_DEFAULT, GOSSIP_DISABLED, GOSSIP_OVERRIDE, RouteInfo


class Gossip:
    """What the mesh passes on. Reads the mesh's peers; owns nothing but what it last told."""

    def __init__(
        self, options: MeshOptions, peers: dict[str, RoutePeer], dialer: DialSchedule
    ) -> None:
        self.options = options
        self._peers = peers
        self._dialer = dialer
        self.leaving = False
        self._told = self.connect_urls()
        self._told_leafs: tuple[str, ...] = ()

    def announce(self, link: Link, peer: RoutePeer, info: RouteInfo) -> list[tuple[int, bytes]]:
        """Lines that tell the other peers of a new server, or of its first account link."""
        if not link.account:
            if peer.announced:
                return []
            peer.announced = True
        implicit = link.target is not None and not link.target.explicit
        told_not_to = info.gossip_mode == GOSSIP_DISABLED
        if told_not_to or (implicit and link.gossip_mode != GOSSIP_OVERRIDE):
            return []
        url = wire.join_url(link.host, info.port)
        lines = []
        for other in self._peers.values():
            if other is peer or (link.account and other.no_pool):
                continue
            way = other.accounts.get(link.account) or other.links()[0]
            line = wire.gossip_line(info, url, self._mode(link, way), link.account)
            lines.append((way.conn, line))
        return lines

    def heard(self, info: RouteInfo, now_ns: int) -> None:
        """A peer told of another server: dial it, unless its pool is here."""
        address = split_url(info.ip)
        known = self._peers.get(info.server_id)
        if address is None or (known is not None and (info.account or any(known.pool))):
            return
        self._dialer.learn(info.server_id, *address, info.gossip_mode, now_ns)

    def connect_urls(self) -> tuple[str, ...]:
        """Client URLs of all servers known, own ones first unless this one leaves."""
        if self.options.no_advertise:
            return ()
        urls = [] if self.leaving else list(self.options.client_urls)
        for peer in self._peers.values():
            if peer.announced and not peer.leaving:
                urls.extend(peer.info.connect_urls)
        return tuple(dict.fromkeys(urls))

    def url_changes(self) -> list[ConnectUrlsChanged | LeafnodeUrlsChanged]:
        """Events for clients and leaf nodes, where the URLs are not those last told."""
        events: list[ConnectUrlsChanged | LeafnodeUrlsChanged] = []
        urls = self.connect_urls()
        if urls != self._told:
            self._told = urls
            events.append(ConnectUrlsChanged(urls))
        found = [url for peer in self._peers.values() for url in peer.info.leafnode_urls[:1]]
        leafs = tuple(dict.fromkeys(found))
        if leafs != self._told_leafs:
            self._told_leafs = leafs
            events.append(LeafnodeUrlsChanged(leafs))
        return events

    @staticmethod
    def _mode(link: Link, way: Link) -> int:
        """How the receiver may pass the news on.

        What came over a configured route was told to nobody else yet; what a gossiped dialer
        brought along was told to all by the server that it heard of us from.
        """
        configured = link.target is not None and link.target.explicit
        if configured or (link.target is None and _explicit(way)):
            return GOSSIP_OVERRIDE
        return GOSSIP_DISABLED if link.target is None else GOSSIP_DEFAULT


def _explicit(link: Link) -> bool:
    target = link.target or (link.peer.target if link.peer is not None else None)
    return target is not None and target.explicit
