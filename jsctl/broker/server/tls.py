"""TLS for clients, routes and monitoring: contexts from the options, handshakes on connections.

NATS servers send INFO in plain text first and shake hands then; `handshake_first` turns that
round, and its `auto` form waits a moment to see what the client does.
"""

import asyncio
import contextlib
import hashlib
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from jsctl.broker.errors import ConfigError
from jsctl.broker.server.connection import Connection
from jsctl.broker.tls_options import HandshakeFirst, TlsOptions
from jsctl.broker.turn import PeerCertificate

NANOSECONDS = 1_000_000_000
HANDSHAKE_BYTE = 0x16
"""The first byte of every TLS client hello; no NATS client begins with it."""
TLS13_SUITES = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
CURVE_NAMES = {
    "X25519": "X25519",
    "CURVEP256": "prime256v1",
    "CURVEP384": "secp384r1",
    "CURVEP521": "secp521r1",
}
"""OpenSSL's names of the curves."""
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


WRONG_NAMES = (62, 64)
"""What OpenSSL says of a certificate that names another host, or another address."""
CLOSED = "connection closed"
ALERT = "alert"
"""The attribute of an error; empty where nothing is to be told."""
T = TypeVar("T")


class HandshakeFailed(Exception):
    """The peer and we did not agree; `args[0]` says why."""


class WrongName(HandshakeFailed):
    """A certificate names somebody else, and is whole."""


class TellingObject(ssl.SSLObject):
    """Keeps what the other side is to be told of a handshake that failed, with the error: asyncio
    closes the socket without it, and who connects would learn nothing but that."""

    unsent: ssl.MemoryBIO

    def do_handshake(self) -> None:
        """See the library."""
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            setattr(error, ALERT, self.unsent.read())
            raise
        if self.server_side and self.session_reused and _expired(self.getpeercert() or {}):
            raise ssl.SSLError("the certificate of the session has expired")


class TellingContext(ssl.SSLContext):
    """Makes such."""

    sslobject_class = TellingObject

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """One handshake begins."""
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(made, TellingObject)
        made.unsent = outgoing
        return made


def server_context(
    options: TlsOptions, *, mutual: bool = False, anyone: bool = False
) -> ssl.SSLContext:
    """For accepting, peers with certificates alone if that is said or `mutual`, unless `anyone`.

    Raises ConfigError that names the file which is of no use.
    """
    context = TellingContext(ssl.PROTOCOL_TLS_SERVER)
    _load(context, options)
    if (options.verify or mutual) and not anyone:
        context.verify_mode = ssl.CERT_REQUIRED
        # Who goes on with a session shows no certificate: it may have expired since. Those of
        # TLS 1.2 are found by a number without a ticket, too, and looked at when they are.
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
    return context


def _expired(certificate: Mapping[str, Any]) -> bool:
    """Of one that was verified once, as the `ssl` module has it; nobody's has not."""
    end = certificate.get("notAfter")
    return end is not None and ssl.cert_time_to_seconds(end) <= datetime.now(UTC).timestamp()


def dialing_context(options: TlsOptions) -> ssl.SSLContext:
    """For connections to other servers; a certificate need not be shown. Raises ConfigError."""
    context = TellingContext(ssl.PROTOCOL_TLS_CLIENT)
    _load(context, options, own=bool(options.cert_file))
    if options.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def files_digest(options: TlsOptions | None) -> bytes:
    """What tells whether the files of a block have other contents. Raises ConfigError."""
    if options is None:
        return b""
    found = hashlib.sha256()
    for name in filter(None, (options.cert_file, options.key_file, options.ca_file)):
        try:
            found.update(hashlib.sha256(Path(name).read_bytes()).digest())
        except OSError as error:
            raise ConfigError(f"cannot be read: {_reason(error)}", place=name) from error
    return found.digest()


def _load(context: ssl.SSLContext, options: TlsOptions, *, own: bool = True) -> None:
    context.minimum_version = VERSIONS[options.min_version]

    def refuse() -> str:
        """OpenSSL would ask the terminal for a password: nobody is served until somebody says it,
        in a reload neither."""
        remedy = "store it without a password"
        raise ConfigError("the private key is encrypted", place=options.key_file, remedy=remedy)

    try:
        if own:
            context.load_cert_chain(options.cert_file, options.key_file, password=refuse)
    except (OSError, ssl.SSLError) as error:
        where = f"{options.cert_file}, {options.key_file}"
        raise ConfigError(
            f"error parsing X509 certificate/key pair: {_reason(error)}",
            place=where,
            remedy="give a PEM certificate and its key",
        ) from error
    try:
        if options.ca_file:
            context.load_verify_locations(options.ca_file)
        else:
            context.load_default_certs()
        if options.curves:
            context.set_ecdh_curve(CURVE_NAMES[options.curves[0]])
        if options.ciphers:
            choose_ciphers(context, options.ciphers)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"cannot use the CA file or ciphers: {_reason(error)}", place=options.ca_file
        ) from error


def _reason(error: OSError) -> str:
    return error.strerror or getattr(error, "reason", "") or str(error)


def choose_ciphers(context: ssl.SSLContext, names: tuple[str, ...]) -> None:
    """Allow only these suites, in Go's names; those of TLS 1.3 are always allowed. Where no other
    is named, TLS 1.2 has none to speak with.

    Raises ConfigError for a suite that OpenSSL does not have or that is insecure.
    """
    wanted = {name: _openssl_name(name) for name in names if "_WITH_" in name}
    strange = [name for name in names if name not in wanted and name not in TLS13_SUITES]
    if wanted:
        context.set_ciphers(":".join(wanted.values()))
        allowed = {str(suite["name"]) for suite in context.get_ciphers()}
        strange += [name for name, ours in wanted.items() if ours not in allowed]
    else:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if strange:
        raise ConfigError(
            f"unrecognized or insecure cipher {strange[0]}",
            place="tls.cipher_suites",
            remedy="use ECDHE suites with GCM or CHACHA20",
        )


def _openssl_name(name: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 -> ECDHE-RSA-AES128-GCM-SHA256."""
    plain = name.removeprefix("TLS_").replace("_WITH_", "_").replace("AES_", "AES")
    plain = plain.replace("_CBC_", "_").replace("_", "-")
    return plain.replace("-POLY1305-SHA256", "-POLY1305")


class ServerSide:
    """Secures accepted connections by one `tls` block."""

    def __init__(self, options: TlsOptions, *, mutual: bool = False, plain: bool = False) -> None:
        self.options = options
        self.context = server_context(options, mutual=mutual)
        self._plain = plain
        """Clients that do not want TLS are welcome, too."""

    async def welcome(self, connection: Connection) -> None:
        """Announce and secure a new connection. Raises HandshakeFailed."""
        first = self.options.handshake_first
        if first is HandshakeFirst.AUTO:
            wait_s = self.options.handshake_first_wait_ns / NANOSECONDS
            first = HandshakeFirst.NEVER
            if await first_byte(connection, wait_s) == HANDSHAKE_BYTE:
                first = HandshakeFirst.ALWAYS
        if first is HandshakeFirst.ALWAYS:
            connection.hold_writes()
            await self._shake(connection)
            connection.announce(tls=True)
            return
        await connection.spoken(tls=not self._plain)
        if connection.gone:
            return
        wait_s = self.options.timeout_ns / NANOSECONDS
        if self._plain and await first_byte(connection, wait_s) != HANDSHAKE_BYTE:
            connection.release_writes()
            connection.resume_reading()
            return
        await self._shake(connection)

    async def _shake(self, connection: Connection) -> None:
        await shake(connection, self.context, self.options, server_side=True)


async def shake(
    connection: Connection,
    context: ssl.SSLContext,
    options: TlsOptions,
    *,
    server_side: bool,
    name: str | None = None,
    first_line: bytes = b"",
) -> None:
    """Put TLS under a connection on which the peer has said nothing but its `first_line`.

    Raises HandshakeFailed and leaves it to be aborted. What else came in plain text may be
    anybody's, and would be taken for what the peer says afterwards.
    """
    if connection.transport is None:
        raise HandshakeFailed(CLOSED)
    if connection.early() != first_line:
        raise HandshakeFailed("data came before the handshake")
    with duplicate(connection.transport) as way:
        try:
            transport = await asyncio.get_running_loop().start_tls(
                connection.transport,
                connection,
                context,
                server_side=server_side,
                server_hostname=name,
                ssl_handshake_timeout=options.timeout_ns / NANOSECONDS,
            )
        except (ssl.SSLError, OSError) as error:
            with contextlib.suppress(OSError):
                way.send(getattr(error, ALERT, b""))
            wrong = getattr(error, "verify_code", 0) in WRONG_NAMES
            # What led to the error holds the error, by what asyncio waits for in there.
            cause = error.with_traceback(None)
            raise (WrongName if wrong else HandshakeFailed)(_reason(error)) from cause
    if transport is None:
        raise HandshakeFailed(CLOSED)
    check_pin(transport, options)
    connection.attach(transport)
    connection.release_writes()


async def by_one_of(names: Sequence[str], dial: Callable[[str], Awaitable[T]]) -> T:
    """Dial somebody whose certificate may have each of these names: servers tell of others as
    numbers. Raises what `dial` raises, WrongName for the last one only."""
    for name in names[:-1]:
        with contextlib.suppress(WrongName):
            return await dial(name)
    return await dial(names[-1])


def check_pin(transport: asyncio.Transport, options: TlsOptions) -> None:
    """Raise HandshakeFailed unless the peer's key is among the pinned ones, if there are any."""
    if not options.pinned_certs:
        return
    found = transport.get_extra_info("ssl_object")
    certificate = found.getpeercert(binary_form=True) if found is not None else None
    if certificate is None:
        raise HandshakeFailed("pinned certificates: the peer has shown none")
    if hashlib.sha256(public_key(certificate)).hexdigest() not in options.pinned_certs:
        raise HandshakeFailed("certificate not pinned")


def peer_certificate(found: Mapping[str, Any]) -> PeerCertificate:
    """What a certificate says of its owner, as the `ssl` module has it."""
    names = found.get("subjectAltName", ())
    kinds = ("email", "DNS", "URI")
    emails, hosts, uris = (
        tuple([value for kind, value in names if kind == wanted]) for wanted in kinds
    )
    return PeerCertificate(emails, hosts, uris, found.get("subject", ()))


def public_key(certificate: bytes) -> bytes:
    """The SubjectPublicKeyInfo of a DER certificate: the sixth part of its signed body,
    the seventh where a version is given."""
    body = _contents(_contents(certificate, 0)[0], 0)[0]
    at, parts = 0, []
    while at < len(body):
        start = at
        _, at = _contents(body, at)
        parts.append(body[start:at])
    return parts[6] if parts[0][0] == 0xA0 else parts[5]


def _contents(data: bytes, at: int) -> tuple[bytes, int]:
    """The content of the DER element at an offset, and where the next one begins."""
    length, start = data[at + 1], at + 2
    if length & 0x80:
        size = length & 0x7F
        length = int.from_bytes(data[start : start + size], "big")
        start += size
    return (data[start : start + length], start + length)


def _resolve(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


def duplicate(transport: asyncio.Transport) -> socket.socket:
    """The socket of a transport once more, which stays open when that is closed. Raises
    HandshakeFailed where the process may open no more files."""
    original = transport.get_extra_info("socket")
    try:
        made = socket.socket(fileno=os.dup(original.fileno()))
    except OSError as error:
        raise HandshakeFailed(_reason(error)) from error
    made.setblocking(False)
    return made


async def first_byte(connection: Connection, wait_s: float | None) -> int | None:
    """Look at the first byte without taking it; None if nothing comes in time.

    Works on a duplicate of the socket, so that the transport, which is paused, is not disturbed.
    Raises HandshakeFailed if the peer has gone.
    """
    if connection.transport is None:
        raise HandshakeFailed(CLOSED)
    with duplicate(connection.transport) as peek:
        loop = asyncio.get_running_loop()
        readable = connection.sign()
        loop.add_reader(peek.fileno(), _resolve, readable)
        try:
            async with asyncio.timeout(wait_s):
                await readable
            if connection.gone:
                raise HandshakeFailed(CLOSED)
            found = peek.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return None
        except OSError as error:
            raise HandshakeFailed(_reason(error)) from error
        finally:
            loop.remove_reader(peek.fileno())
    if not found:
        raise HandshakeFailed(CLOSED)
    return found[0]
