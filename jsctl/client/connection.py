"""A connection made of `Settings`: credentials, TLS, prefixes, quiet reconnects.

The client library is imported when a connection is made, not before: it costs more time than
most commands take. Its exceptions leave this package only as `jsctl.errors`.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from jsctl.errors import JsctlError, NotAllowed, Unreachable, UsageError
from jsctl.settings import Context, Settings

if TYPE_CHECKING:
    import ssl

    from nats.aio.client import Client

Log = Callable[[str], None]
RECONNECT_WAIT_SECONDS = 0.5
NO_SERVERS = "setup failed: nats: no servers available for connection"
CONNECT_TRIES_MAX = 1
"""How often a first connection is tried per server before giving up."""


@asynccontextmanager
async def connect(settings: Settings, log: Log | None = None) -> "AsyncIterator[Client]":
    """A connected client, closed at the end. `log` hears of lost and new connections.

    Raises Unreachable, NotAllowed or UsageError.
    """
    leaving = False

    def report(text: str) -> None:
        if log is not None and not leaving:
            log(text)

    client = await open_client(settings, report)
    try:
        yield client
    finally:
        leaving = True
        if not client.is_closed:
            await client.close()


async def open_client(settings: Settings, log: Log | None = None) -> "Client":
    """A connected client that the caller closes; see `connect`."""
    _block_websockets(settings)
    from nats.aio.client import Client

    client = Client()
    watch = _Watch(log or _silent, trace=settings.trace, tries=2 * len(settings.urls))
    options = _options(settings, watch)
    try:
        await client.connect(**options)  # type: ignore[arg-type] # made by name
    except foreign_errors() as error:
        watch.refused = True
        await client.close()
        if isinstance(error, OSError):
            where = ", ".join(settings.urls)
            raise Unreachable(NO_SERVERS, hints=(f"{where}: {error}",)) from error
        raise translate(error) from error
    watch.connecting = False
    client.options["max_reconnect_attempts"] = -1
    return client


def translate(error: Exception, what: str = "") -> JsctlError:
    """One of `foreign_errors` as one of ours."""
    import nats.errors as theirs

    prefix = f"{what}: " if what else ""
    if isinstance(error, JsctlError):
        return error
    if isinstance(error, theirs.NoRespondersError):
        return Unreachable(f"{prefix}nats: no responders available for request")
    if isinstance(error, theirs.TimeoutError | TimeoutError):
        return Unreachable(f"{prefix}nats: timeout")
    text = str(error)
    if isinstance(error, theirs.AuthorizationError) or "authorization" in text.lower():
        return NotAllowed("setup failed: nats: Authorization Violation")
    if "permissions violation" in text.lower():
        return NotAllowed(f"{prefix}{text}")
    if isinstance(error, theirs.NoServersError):
        return Unreachable(NO_SERVERS)
    return Unreachable(f"{prefix or 'setup failed: '}{text or type(error).__name__}")


def nobody_there(error: Exception) -> bool:
    """Whether a request failed because nobody listens to its subject."""
    from nats.errors import NoRespondersError

    return isinstance(error, NoRespondersError)


def foreign_errors() -> tuple[type[Exception], ...]:
    """What the library raises and `translate` understands."""
    from nats.errors import Error

    return (Error, OSError, TimeoutError, ValueError)


def _block_websockets(settings: Settings) -> None:
    """Keeps the library from importing its websocket client, which is slow, when not needed."""
    if not any(url.startswith(("ws:", "wss:")) for url in settings.urls):
        sys.modules.setdefault("aiohttp", None)  # type: ignore[arg-type] # blocks the import


def _silent(_text: str) -> None:
    """Nobody listens."""


class _Watch:
    """Hears of a connection's fate.

    While it is being made an error raised here ends the attempt: the library itself would try
    for ever when a server refuses the credentials.
    """

    def __init__(self, log: Log, *, trace: bool, tries: int) -> None:
        self.log = log
        self.trace = trace
        self.tries = tries
        self.connecting = True
        self.refused = False
        """The attempt has failed: what comes while it closes must not hide the reason."""

    async def disconnected(self) -> None:
        """The server went away."""
        if not self.connecting:
            self.log(">>> Disconnected, will attempt reconnect")

    async def reconnected(self) -> None:
        """Another server, or the same again."""
        if self.trace:
            self.log(">>> Reconnected")

    async def failed(self, error: Exception) -> None:
        """Something went wrong; ends a hopeless first attempt."""
        if self.trace:
            self.log(f">>> Unexpected NATS error: {error}")
        if self.connecting and not self.refused:
            self.tries -= 1
            if self.tries < 1 or "authorization" in str(error).lower():
                raise error


def _options(settings: Settings, watch: _Watch) -> dict[str, object]:
    context = settings.connection
    if context.socks_proxy:
        raise UsageError("SOCKS5 proxies are not supported")
    callbacks: dict[str, Callable[..., Awaitable[None]]] = {
        "disconnected_cb": watch.disconnected,
        "reconnected_cb": watch.reconnected,
        "error_cb": watch.failed,
    }
    options: dict[str, object] = {
        "servers": [with_scheme(url) for url in settings.urls],
        "name": settings.connection_name or "jsctl",
        "connect_timeout": settings.timeout,
        "max_reconnect_attempts": CONNECT_TRIES_MAX,
        "reconnect_time_wait": RECONNECT_WAIT_SECONDS,
        **callbacks,
        **_credentials(context),
    }
    if context.inbox_prefix:
        options["inbox_prefix"] = context.inbox_prefix.encode()
    tls = _tls(context, settings.urls)
    if tls is not None:
        options["tls"] = tls
        options["tls_handshake_first"] = context.tls_first
    return options


def with_scheme(url: str) -> str:
    """A bare `host:port` is a NATS URL."""
    return url if "://" in url else f"nats://{url}"


def _credentials(context: Context) -> dict[str, object]:
    options: dict[str, object] = {}
    if context.user and context.password:
        options.update(user=context.user, password=context.password)
    elif context.user:
        options["token"] = context.user
    elif context.creds:
        options["user_credentials"] = context.creds.removeprefix("file://")
    elif context.nkey:
        options["nkeys_seed"] = context.nkey.removeprefix("file://")
    elif context.user_jwt:
        options.update(_jwt_callbacks(context.user_jwt, context.user_seed))
    if context.token:
        options["token"] = context.token
    return options


def _jwt_callbacks(jwt: str, seed: str) -> dict[str, object]:
    def token() -> bytes:
        return jwt.encode()

    def sign(nonce: str) -> bytes:
        import base64

        import nkeys  # type: ignore[import-untyped] # has no types

        pair = nkeys.from_seed(seed.encode())
        return base64.b64encode(pair.sign(nonce.encode()))

    return {"user_jwt_cb": token, "signature_cb": sign}


def _tls(context: Context, urls: list[str]) -> "ssl.SSLContext | None":
    wanted = context.cert or context.ca or context.tls_first
    if not wanted and not any(url.startswith(("tls:", "wss:")) for url in urls):
        return None
    import ssl

    try:
        tls = ssl.create_default_context(cafile=context.ca or None)
        if context.cert:
            tls.load_cert_chain(context.cert, context.key or None)
    except OSError as error:
        raise UsageError(f"cannot use the TLS files: {error}") from error
    return tls
