"""Route connections that are compressed: what two servers agree on, and what follows of it.

The dialing side says in an INFO of its own how it compresses, and does so from then on; the other
side answers with one that is compressed. Both begin anew after that, with the INFO that counts.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.compression_options import AUTO, LEVELS, Compression, agreed
from jsctl.broker.routes.state import Link
from jsctl.broker.routes.wire import RouteInfo

if TYPE_CHECKING:
    from jsctl.broker.linking import compression
else:
    compression = lazy.module("jsctl.broker.linking.compression", optional=True)


class PackedLinks:
    """All of them, by their connections."""

    def __init__(self, own: Compression) -> None:
        self._own = own
        self._links: dict[int, Link] = {}

    def negotiate(self, link: Link, info: RouteInfo, now_ns: int, say: Callable[[], None]) -> bool:
        """Settle by a first INFO how a connection is compressed; True if it is, and another one is
        to follow. `say` gives that of this server. Raises ProtocolError if it cannot be."""
        if link.compression or not link.authenticated:
            return False
        link.compression = agreed(self._own, info.compression, now_ns - link.opened_ns)
        if link.compression not in LEVELS:
            return False
        if link.solicited:
            say()
        link.unpacking = compression.Unpacking()
        self._links[link.conn] = link
        if not link.solicited:
            say()
        return True

    def told(self, link: Link) -> str:
        """What the other side is told of it."""
        if not link.compression:
            return self._own.told
        chosen = self._own.mode == AUTO and link.compression in LEVELS
        return AUTO if chosen else link.compression

    def adjust(self, link: Link) -> None:
        """The round trip is known anew."""
        if self._own.mode == AUTO and link.unpacking is not None:
            link.compression = self._own.level(link.rtt_ns)

    def change(self, own: Compression) -> None:
        """Connections that come later follow another configuration."""
        self._own = own

    def follows(self, link: Link, before: Compression) -> bool:
        """Whether a connection can go on as it is configured now."""
        if link.peer is None or before == self._own:
            return True
        found = self._own.after(link.compression, link.rtt_ns)
        if link.unpacking is not None:
            link.compression = found or link.compression
        return bool(found)

    def forget(self, conn: int) -> None:
        """A connection is gone."""
        self._links.pop(conn, None)

    def pack(self, conn: int, data: bytes) -> bytes:
        """What is written at once, as the other side gets it."""
        link = self._links.get(conn)
        return data if link is None else compression.packed(link.compression, data)

    def pack_all(self, writes: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """What routed traffic becomes."""
        if not self._links:
            return writes
        return [(conn, self.pack(conn, data)) for conn, data in writes]

    def way_in(self, conn: int) -> "compression.Unpacking | None":
        """That of a connection which is compressed."""
        link = self._links.get(conn)
        return None if link is None else link.unpacking

    def unread(self) -> list[int]:
        """Connections of which not all is opened yet."""
        ways = [(conn, link.unpacking) for conn, link in self._links.items()]
        return [conn for conn, way in ways if way is not None and way.waiting]
