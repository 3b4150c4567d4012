"""Listening sockets: bound early, so that the port is known and ours, opened when ready; and the
addresses by which other machines reach them.
"""

import asyncio
import errno
import resource
import socket
import ssl
import time
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address

from jsctl.broker.conf.units import ANY_HOSTS, host_text
from jsctl.broker.errors import ConfigError
from jsctl.broker.machine import descriptor_max
from jsctl.broker.options import ANY_HOST, ANY_PORT, PORT_OFF, Options
from jsctl.broker.server.logfile import ServerLog
from jsctl.broker.turn import LogLevel

REFUSED_S = 10.0
"""How often the log is told of connections that were turned away."""
REASONS = {errno.EADDRINUSE: "bind: address already in use"}


class GuardedSocket(socket.socket):
    """Turns away who would have one of the last files that the process may open: see
    `machine.descriptor_max`. `refused` is called for each."""

    def __init__(
        self, family: socket.AddressFamily, descriptor_max: int, refused: Callable[[], None]
    ) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self._descriptor_max = descriptor_max
        self._refused = refused

    def accept(self) -> tuple[socket.socket, object]:
        """See the library. Raises ConnectionAbortedError, behind which the loop looks at the others
        first."""
        connection, address = super().accept()
        if connection.fileno() <= self._descriptor_max:
            return connection, address
        connection.close()
        self._refused()
        raise ConnectionAbortedError


class TurnedAway:
    """Tells the log now and then how many connections were turned away, as they would have been
    too many files."""

    def __init__(self, log: ServerLog) -> None:
        self._log = log
        self._count = 0
        self._told_s = -REFUSED_S

    def add(self) -> None:
        """One more."""
        self._count += 1
        now_s = time.monotonic()
        if now_s - self._told_s < REFUSED_S:
            return
        self._told_s = now_s
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        text = (
            f"Turned away connections: {self._count}; of the {limit} files that this process may"
            " have open the last ones are kept for the store, raise that limit (ulimit -n)"
        )
        self._count = 0
        self._log.line(LogLevel.ERROR, text)


class Listener:
    """One bound address. IPv4's and IPv6's "any" are one socket where the machine can.

    It takes no connection whose file descriptor is above `descriptor_max`, but calls `refused`.
    """

    def __init__(
        self,
        host: str,
        port: int,
        backlog: int,
        descriptor_max: int,
        refused: Callable[[], None],
    ) -> None:
        """Bind. Raises ConfigError that names host and port."""
        self.host = host
        self.port = max(0, port)
        self._backlog = backlog
        self._server: asyncio.Server | None = None
        try:
            family, address = _resolved(host, self.port)
            self._socket = GuardedSocket(family, descriptor_max, refused)
            _bind(self._socket, address, self.port, chosen=port != ANY_PORT)
        except OSError as error:
            raise self._error(error) from error
        self.port = self._socket.getsockname()[1]

    async def open(
        self,
        protocol: Callable[[], asyncio.BaseProtocol],
        context: ssl.SSLContext | None = None,
        handshake_s: float | None = None,
    ) -> None:
        """Accept connections, with `context` by TLS, whose handshakes have so long, and whose peers
        so long to agree to an end. Raises ConfigError if somebody else was quicker."""
        loop = asyncio.get_running_loop()
        tls_s = handshake_s if context is not None else None
        try:
            self._server = await loop.create_server(
                protocol,
                sock=self._socket,
                backlog=self._backlog,
                ssl=context,
                ssl_handshake_timeout=tls_s,
                ssl_shutdown_timeout=tls_s,
            )
        except OSError as error:
            raise self._error(error) from error

    def close(self) -> None:
        """Accept no more; open connections stay."""
        if self._server is not None:
            self._server.close()
        self._socket.close()

    def _error(self, error: OSError) -> ConfigError:
        where = host_text(self.host, self.port)
        reason = REASONS.get(error.errno or 0, error.strerror or str(error))
        return ConfigError(
            f'Error listening on port: {where}, "listen tcp {where}: {reason}"',
            remedy="choose another port, or -1 for any free one",
        )


def bind_all(options: Options, refused: Callable[[], None]) -> dict[str, Listener]:
    """Take every port that the options ask for, by kind: client, monitor, cluster,
    leafnode, gateway. Connections that are a file too many are turned away, and `refused` is
    called for each; those of other servers of the cluster may have half of what others must leave.

    Raises ConfigError for the first one that cannot be had, and keeps none then.
    """
    monitoring = options.monitoring
    wanted = {"client": (options.listen.host, options.listen.port)}
    for port in (monitoring.port, monitoring.https_port):
        if port != PORT_OFF:
            wanted["monitor"] = (monitoring.host or options.listen.host, port)
    if options.clustered:
        wanted["cluster"] = (options.cluster.host, options.cluster.port)
    if options.leafnodes.listens:
        wanted["leafnode"] = (options.leafnodes.host, options.leafnodes.port)
    if options.gateway.enabled:
        wanted["gateway"] = (options.gateway.host, options.gateway.port)
    found: dict[str, Listener] = {}
    try:
        for kind, (host, port) in wanted.items():
            most = descriptor_max(2 if kind == "cluster" else 1)
            found[kind] = Listener(host, port, options.edge.accept_backlog, most, refused)
    except ConfigError:
        for listener in found.values():
            listener.close()
        raise
    return found


def _resolved(host: str, port: int) -> tuple[socket.AddressFamily, str]:
    """Where to bind. Raises OSError."""
    if host in (ANY_HOST, "", "::") and socket.has_dualstack_ipv6():
        return socket.AF_INET6, "::"
    # As bytes: text would have the codec of international names loaded.
    name = host.encode() if host.isascii() else host
    try:
        found = socket.getaddrinfo(name or ANY_HOST, port, type=socket.SOCK_STREAM)
    except UnicodeError:  # of that codec
        raise OSError(errno.EINVAL, "no such host") from None
    return found[0][0], str(found[0][4][0])


def _bind(bound: socket.socket, address: str, port: int, *, chosen: bool) -> None:
    """Bind a socket, which does not listen yet. Raises OSError, and closes it then.

    Its connections inherit the permission to share the port with those of the next life, which
    asks for the port while they still end: each listener needs it, whoever chose the port.
    """
    try:
        if chosen:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if bound.family == socket.AF_INET6:
            only = 0 if address == "::" else 1
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
        bound.setblocking(False)
        bound.bind((address, port))
        if not chosen:
            # Only now: before, the kernel could choose a port that somebody has bound and does
            # not listen on yet.
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    except OSError:
        bound.close()
        raise


def reached_at(host: str) -> tuple[str, ...]:
    """The hosts that a listener at `host` has for others: those of all interfaces for "any"."""
    if host not in ANY_HOSTS:
        return (host,)
    import ifaddr  # loaded late: it brings a foreign function interface along

    found: list[str] = []
    for adapter in ifaddr.get_adapters():
        for one in adapter.ips:
            address = ip_address(one.ip if isinstance(one.ip, str) else one.ip[0])
            if _is_global_unicast(address):
                found.append(str(address))
    return tuple(dict.fromkeys(found))


def _is_global_unicast(address: IPv4Address | IPv6Address) -> bool:
    """Whether others can use it; private networks count, as nats-server tells them, too."""
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address == IPv4Address("255.255.255.255")
    )
