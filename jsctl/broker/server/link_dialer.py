"""Connections to hubs and other clusters: opened when the node asks for one, and secured as the
other side wants it.

A hub says INFO in plain text, which tells whether TLS is to follow; the handshake comes before all
else where the remote is configured so, and between clusters. The node hears of a connection when it
is secured, with INFO as the first that came.
"""

import asyncio
import json
import ssl
from collections.abc import Callable
from pathlib import Path

from jsctl.broker.server.connection import NEXT_ADDRESS_S, Connection, Connections
from jsctl.broker.server.tls import HandshakeFailed, by_one_of, shake
from jsctl.broker.tls_options import HandshakeFirst, TlsOptions
from jsctl.broker.turn import LinkDial

NANOSECONDS = 1_000_000_000
CREDENTIALS_BYTES_MAX = 64 * 1024
INFO = b"INFO "


class LinkDialer:
    """Opens such connections; failures are reported to the node, never raised. `context_of` has
    what a `tls` block secures them with."""

    def __init__(
        self, shared: Connections, context_of: Callable[[TlsOptions], ssl.SSLContext]
    ) -> None:
        self._shared = shared
        self._context_of = context_of

    async def dial(self, wanted: LinkDial) -> None:
        """Connect once; `accepted` or `dial_failed` carries the token."""
        try:
            credentials = _read(wanted.credentials) if wanted.credentials else ""
            await by_one_of(
                list(dict.fromkeys((wanted.tls_name, wanted.host))),
                lambda name: self._open(wanted, credentials, name),
            )
        except (OSError, ValueError, HandshakeFailed) as error:
            # A name that no resolver takes is a ValueError; hubs tell names of other hubs.
            reason = getattr(error, "strerror", None) or str(error) or "i/o timeout"
            self._failed(wanted, reason)
        except Exception:
            self._failed(wanted, "internal error")
            raise

    async def _open(self, wanted: LinkDial, credentials: str, name: str) -> None:
        """Have a connection that is announced, if TLS is wanted with whose certificate has a
        name."""
        async with asyncio.timeout(wanted.timeout_ns / NANOSECONDS):
            connection = await self._connect(wanted, credentials)
        try:
            secured = await self._prepare(connection, wanted, name)
        except Exception:
            connection.abort("TLS Handshake Failure")
            raise
        if secured:
            connection.announce(tls=True)
        else:
            connection.announce_plain()

    async def _connect(self, wanted: LinkDial, credentials: str) -> Connection:
        loop = asyncio.get_running_loop()
        connection = Connection(
            self._shared,
            wanted.kind,
            wanted,
            first_line=loop.create_future(),
            credentials=credentials,
        )
        await loop.create_connection(
            lambda: connection, wanted.host, wanted.port, happy_eyeballs_delay=NEXT_ADDRESS_S
        )
        return connection

    async def _prepare(self, connection: Connection, wanted: LinkDial, name: str) -> bool:
        """Wait for INFO, and shake hands if either side wants that; whether it did."""
        tls = wanted.tls
        first = tls is not None and tls.handshake_first is not HandshakeFirst.NEVER
        if first:
            await self._secure(connection, name, tls or TlsOptions())
        assert connection.first_line is not None
        async with asyncio.timeout(wanted.first_info_ns / NANOSECONDS):
            line = await connection.first_line
        if connection.gone:
            raise HandshakeFailed("connection closed")
        if not first and (tls is not None or _requires_tls(line)):
            await self._secure(connection, name, tls or TlsOptions(), line + b"\n")
            return True
        return first

    async def _secure(
        self, connection: Connection, name: str, tls: TlsOptions, first_line: bytes = b""
    ) -> None:
        context = self._context_of(tls)
        if connection.gone:
            raise HandshakeFailed("connection closed")
        connection.hold_writes()
        await shake(connection, context, tls, server_side=False, name=name, first_line=first_line)

    def _failed(self, wanted: LinkDial, reason: str) -> None:
        self._shared.turns.inputs.dial_failed.append((wanted, reason))
        self._shared.turns.wake()


def _requires_tls(line: bytes) -> bool:
    """Whether an INFO asks for it; what is none is for the node to refuse."""
    if not line.startswith(INFO):
        return False
    try:
        found = json.loads(line[len(INFO) :])
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("tls_required") is True


def _read(path: str) -> str:
    """A credentials file. Raises OSError."""
    with Path(path).expanduser().open(encoding="utf-8", errors="replace") as file:
        return file.read(CREDENTIALS_BYTES_MAX)
