"""What connections are secured by, and how that is replaced while the server runs.

Everything is read before anything changes, so that files of no use leave all as it was. Who shakes
hands from then on sees what is new; connections that are open stay, unless keys are pinned and
theirs is not among them any more.
"""

import ssl
from collections.abc import Iterable

from jsctl.broker.options import PORT_OFF, Options
from jsctl.broker.server.connection import TLS_FAILED, Connection
from jsctl.broker.server.tls import (
    HandshakeFailed,
    ServerSide,
    check_pin,
    dialing_context,
    files_digest,
    server_context,
)
from jsctl.broker.tls_options import HandshakeFirst, TlsOptions
from jsctl.broker.turn import ConnKind, LinkDial
from jsctl.dataclass import dataclass, replace


@dataclass(frozen=True, slots=True)
class Certificates:
    """What connections are secured by; None where they are not."""

    client: ServerSide | None
    route: ServerSide | None
    leaf: ServerSide | None
    gateway: ServerSide | None
    monitor: ssl.SSLContext | None
    """The clients' certificate, shown to everybody: as in nats-server, none is asked for."""
    client_files: bytes
    route_files: bytes
    leaf_files: bytes
    gateway_files: bytes
    """Digests of the files."""
    hubs: tuple[str, ...]
    clusters: tuple[str, ...]
    """Keys that are pinned for those that are dialed; none if somebody there may have any."""
    dialed: dict[TlsOptions, ssl.SSLContext]
    """What hubs and other clusters are dialed with, by what of a block makes a context."""

    @staticmethod
    def read(options: Options) -> "Certificates":
        """Read the files. Raises ConfigError for those of no use."""
        tls, cluster = options.tls, options.cluster.tls
        leaf = options.leafnodes.tls if options.leafnodes.listens else None
        gateway = options.gateway.tls
        remotes = [one.tls for one in options.leafnodes.remotes]
        remotes += [gateway, *(one.tls for one in options.gateway.remotes)]
        wanted = {_context_of(one) for one in remotes if one is not None}
        secure = tls is not None and options.monitoring.https_port != PORT_OFF
        return Certificates(
            ServerSide(tls, plain=options.allow_non_tls) if tls else None,
            route_side(cluster) if cluster else None,
            ServerSide(leaf) if leaf else None,
            route_side(gateway) if gateway else None,
            server_context(tls, anyone=True) if tls and secure else None,
            files_digest(tls),
            files_digest(cluster),
            files_digest(leaf),
            files_digest(gateway),
            _pins(options.leafnodes.tls, [one.tls for one in options.leafnodes.remotes]),
            _pins(gateway, [one.tls or gateway for one in options.gateway.others]),
            {one: dialing_context(one) for one in wanted},
        )

    def dialing(self, tls: TlsOptions) -> ssl.SSLContext:
        """To dial a hub or another cluster with: files count as they were when all were read."""
        block = _context_of(tls)
        found = self.dialed.get(block)
        if found is None:  # A hub that wants TLS where none is configured: there are no files.
            found = self.dialed[block] = dialing_context(block)
        return found

    def of(self, kind: ConnKind) -> ServerSide | None:
        """For connections of a kind."""
        sides = {
            ConnKind.CLIENT: self.client,
            ConnKind.ROUTE: self.route,
            ConnKind.LEAF: self.leaf,
            ConnKind.GATEWAY: self.gateway,
        }
        return sides[kind]

    def changes(self, before: "Certificates") -> list[str]:
        """What the log says of files that have other contents now."""
        lines: list[str] = []
        if self.client and before.client and self.client_files != before.client_files:
            lines.append("Reloaded: tls = enabled")
        if self.route and before.route and self.route_files != before.route_files:
            lines.append("Reloaded: cluster")
        if self.leaf and before.leaf and self.leaf_files != before.leaf_files:
            lines.append("Reloaded: leafnodes")
        if self.gateway and before.gateway and self.gateway_files != before.gateway_files:
            lines.append("Reloaded: gateway")
        return lines

    def unpinned(self, connection: Connection) -> bool:
        """Whether a connection that was secured shows a key that is not pinned now."""
        side, transport = self.of(connection.kind), connection.transport
        options = side.options if side is not None else None
        if isinstance(connection.dial, LinkDial):
            # What is pinned for those who connect here is nothing to those that are dialed.
            hub = connection.kind is ConnKind.LEAF
            options = TlsOptions(pinned_certs=self.hubs if hub else self.clusters)
        if options is None or transport is None or not transport.get_extra_info("ssl_object"):
            return False
        try:
            check_pin(transport, options)
        except HandshakeFailed:
            return True
        return False

    def turn_away(self, connections: Iterable[Connection]) -> int:
        """End connections whose keys are not pinned any more; how many that were."""
        gone = [connection for connection in connections if self.unpinned(connection)]
        for connection in gone:
            connection.abort(TLS_FAILED)
        return len(gone)


def _context_of(tls: TlsOptions) -> TlsOptions:
    """What of a block makes a context; the rest is asked of each connection."""
    names = ("cert_file", "key_file", "ca_file", "insecure", "min_version", "ciphers", "curves")
    return replace(TlsOptions(), **{name: getattr(tls, name) for name in names})


def _pins(block: TlsOptions | None, dialed: Iterable[TlsOptions | None]) -> tuple[str, ...]:
    """All keys that one of those that are dialed may have; those of the block count for who has
    none of its own."""
    common = block.pinned_certs if block is not None else ()
    each = [(tls.pinned_certs or common) if tls is not None else () for tls in dialed]
    return tuple({pin for pins in each for pin in pins}) if all(each) else ()


def route_side(options: TlsOptions) -> ServerSide:
    """Between servers the handshake comes before all else, and both show who they are."""
    return ServerSide(replace(options, handshake_first=HandshakeFirst.ALWAYS), mutual=True)


class CurrentContext(ssl.SSLContext):
    """A context of a listener whose handshakes are made by another one, which may be replaced.

    asyncio keeps the context that it was given with the socket, and asks it for each connection.
    """

    current: ssl.SSLContext

    def renew(self, context: ssl.SSLContext) -> None:
        """Handshakes that begin from now on are made by this one."""
        self.current = context

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """One handshake begins."""
        return self.current.wrap_bio(incoming, outgoing, server_side, server_hostname, session)


def current_context(first: ssl.SSLContext) -> CurrentContext:
    """One that begins with a context."""
    made = CurrentContext(ssl.PROTOCOL_TLS_SERVER)
    made.current = first
    return made
