"""Connections to other servers of the cluster: opened when the node asks for one, each within its
time."""

import asyncio
import contextlib
import socket
import ssl

from jsctl.broker.conf.units import is_address
from jsctl.broker.options import ClusterOptions
from jsctl.broker.server.connection import NEXT_ADDRESS_S, Connection, Connections
from jsctl.broker.server.tls import HandshakeFailed, by_one_of, dialing_context, shake
from jsctl.broker.turn import ONLY_OWN, ConnKind, Dial

NANOSECONDS = 1_000_000_000
LOOPBACK = {"127.0.0.1", "::1"}
"""One `localhost`: where this server is behind one address, nobody else is behind the other."""


class RouteDialer:
    """Opens route connections; failures are reported to the node, never raised."""

    def __init__(self, shared: Connections, options: ClusterOptions) -> None:
        self._shared = shared
        self._options = options
        self._context = dialing_context(options.tls) if options.tls else None

    async def dial(self, wanted: Dial) -> None:
        """Connect once; `accepted` or `dial_failed` carries the token."""
        try:
            await by_one_of(self._names(wanted.host), lambda name: self._open(wanted, name))
        except HandshakeFailed as error:
            self._failed(wanted, f"TLS handshake: {error}")
        except (OSError, ValueError) as error:
            # A name that no resolver takes is a ValueError; peers tell names of other servers.
            reason = getattr(error, "strerror", None) or str(error)
            self._failed(wanted, reason or "i/o timeout")
        except Exception:
            self._failed(wanted, "TLS handshake")
            raise

    def _names(self, host: str) -> list[str]:
        """Whose certificate may be shown there: others tell of servers as numbers, and those may
        have certificates for one name, as all that are configured have."""
        known = [route.host for route in self._options.routes]
        names = [name for name in known if not is_address(name)]
        if not is_address(host) or not names:
            return [host]
        return [host, names[0]] if host in known else [names[0], host]

    async def _open(self, wanted: Dial, name: str) -> None:
        async with asyncio.timeout(self._options.dial_timeout_ns / NANOSECONDS):
            connection = await self._connect(wanted)
        if self._context is None:
            connection.announce_plain()
            return
        try:
            await self._secure(connection, self._context, name)
        except Exception:
            connection.abort("TLS Handshake Failure")
            raise

    async def _connect(self, wanted: Dial) -> Connection:
        connection = Connection(self._shared, ConnKind.ROUTE, wanted)
        hosts = await _others(wanted) if wanted.own else [wanted.host]
        loop = asyncio.get_running_loop()
        for host in hosts[:-1]:
            with contextlib.suppress(OSError):
                async with asyncio.timeout(NEXT_ADDRESS_S):
                    await loop.create_connection(lambda: connection, host, wanted.port)
                    return connection
        await loop.create_connection(
            lambda: connection, hosts[-1], wanted.port, happy_eyeballs_delay=NEXT_ADDRESS_S
        )
        return connection

    async def _secure(self, connection: Connection, context: ssl.SSLContext, name: str) -> None:
        """Between servers the handshake comes before all else."""
        tls = self._options.tls
        assert tls is not None
        if connection.gone:
            raise HandshakeFailed("connection closed")
        connection.hold_writes()
        await shake(connection, context, tls, server_side=False, name=name)
        connection.announce(tls=True)

    def _failed(self, wanted: Dial, reason: str) -> None:
        self._shared.turns.inputs.dial_failed.append((wanted, reason))
        self._shared.turns.wake()


async def _others(wanted: Dial) -> list[str]:
    """Where a host is that stands for several servers, this one among them. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(wanted.host, wanted.port, type=socket.SOCK_STREAM)
    hosts = dict.fromkeys(str(address[0]) for *_, address in found)
    own = {*wanted.own} | (LOOPBACK if LOOPBACK & {*wanted.own} else set())
    others = [host for host in hosts if host not in own]
    if not others:
        raise OSError(ONLY_OWN)
    return others
