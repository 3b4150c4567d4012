"""A connection made of `Settings`: credentials, TLS, prefixes, quiet reconnects.

The client library is imported when a connection is made, not before: it costs more time than
most commands take. Its exceptions leave this package only as `jsctl.errors`.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from jsctl.client.addresses import checked_url, is_websocket, proxy_of, shown_url, shown_urls
from jsctl.client.failures import NO_SERVERS, foreign_errors, translate
from jsctl.client.refusals import Refusals, bare, is_login, sentence_of
from jsctl.errors import JsctlError, Unreachable, UsageError
from jsctl.settings import Settings

if TYPE_CHECKING:
    from jsctl.client.library import NatsClient

Log = Callable[[str], None]
RECONNECT_WAIT_SECONDS = 0.5
CONNECT_TRIES_MAX = 1
"""How often a first connection is tried per server before giving up."""


@asynccontextmanager
async def connect(
    settings: Settings, log: Log | None = None, *, what: str = "", tls_name: str = ""
) -> "AsyncIterator[NatsClient]":
    """A connected client, closed at the end. `log` hears of lost and new connections.

    What the server refuses meanwhile ends the body, as a timeout would. `what` is said in front
    of the reason when no connection can be made. `tls_name` is the name that the certificate
    has to have, unless it is the one in the URL. Raises Unreachable, NotAllowed or UsageError.
    """
    leaving = False

    def report(text: str) -> None:
        if log is not None and not leaving:
            log(text)

    client = await open_client(settings, report, what=what, tls_name=tls_name)
    try:
        with _only_ours():
            async with client.refusals.scope():
                yield client
    finally:
        leaving = True
        if not client.is_closed:
            await client.close()


@contextmanager
def _only_ours() -> Iterator[None]:
    """The library's own errors that nobody translated."""
    from nats.errors import Error

    try:
        yield
    except Error as error:
        raise translate(error) from error


async def open_client(
    settings: Settings, log: Log | None = None, *, what: str = "", tls_name: str = ""
) -> "NatsClient":
    """A connected client that the caller closes; see `connect`."""
    from jsctl.client.login import login_of, tls_of

    login, tls = login_of(settings.connection), tls_of(settings.connection, settings.urls)
    _block_websockets(settings)
    _load_jetstream_late()
    from jsctl.client.library import NatsClient, let_cancellations_through

    let_cancellations_through()
    client = NatsClient(
        login, Refusals(), tls_wanted=tls is not None, proxy=proxy_of(settings.connection)
    )
    watch = _Watch(log or _silent, client, settings)
    options = _options(settings, watch)
    if tls is not None:
        options.update(tls=tls, tls_handshake_first=settings.connection.tls_first)
        if tls_name:
            options["tls_hostname"] = tls_name
    try:
        await client.connect(**options)  # type: ignore[arg-type] # made by name
    except foreign_errors() as error:
        watch.refused = True
        await client.close()
        raise _not_connected(error, settings, f"{what}: " if what else "") from error
    watch.connecting = False
    if settings.trace and log is not None and (url := client.connected_url):
        log(f">>> Connected to {shown_url(url.geturl())} ({url.netloc.rpartition('@')[2]})")
    client.options["max_reconnect_attempts"] = -1
    return client


def _not_connected(error: Exception, settings: Settings, prefix: str) -> JsctlError:
    """Why there is no connection."""
    from socket import gaierror
    from ssl import SSLError
    from urllib.parse import urlsplit

    where = shown_urls(settings.urls)
    if isinstance(error, SSLError):
        why = getattr(error, "verify_message", "")
        hint = "--tlsca names the authority of the server's certificate"
        if error.reason == "WRONG_VERSION_NUMBER":
            hint = "no TLS is spoken there"
        return Unreachable(
            f"{prefix}nats: tls error: {why or error.reason}", hints=(f"{where}: {hint}",)
        )
    if isinstance(error, gaierror) and len(settings.urls) == 1:
        url = settings.urls[0]
        host = urlsplit(url if "//" in url else f"//{url}").hostname
        return Unreachable(f"{prefix}dial tcp: lookup {host}: no such host")
    if isinstance(error, OSError) and not isinstance(error, TimeoutError):
        return Unreachable(prefix + NO_SERVERS, hints=(f"{where}: {error}",))
    found = translate(error)
    return type(found)(f"{prefix}{found}", hints=found.hints)


def _block_websockets(settings: Settings) -> None:
    """Keeps the library from importing its websocket client, which is slow, when not needed.

    Raises UsageError for URLs of both kinds: the library tries one of them.
    """
    kinds = {is_websocket(url) for url in settings.urls}
    if len(kinds) > 1:
        raise UsageError(
            "nats: mixing of websocket and non websocket URLs is not allowed",
            hints=(shown_urls(settings.urls),),
        )
    if True in kinds:
        _load_websockets()
    else:
        sys.modules.setdefault("aiohttp", None)  # type: ignore[arg-type] # blocks the import


def _load_websockets() -> None:
    """Also for the library that was loaded without, as when a command copies from one server to
    another. Raises UsageError."""
    if sys.modules.get("aiohttp", True) is None:
        del sys.modules["aiohttp"]
    try:
        found = {name: import_module(name) for name in ("aiohttp", "multidict")}
    except ImportError as error:
        raise UsageError("a websocket needs aiohttp: pip install 'jsctl[web]'") from error
    if transport := sys.modules.get("nats.aio.transport"):
        vars(transport).update(found)


class _LateModule(ModuleType):
    """A module whose code runs when one of its names is first asked for."""

    def __getattr__(self, name: str) -> object:
        spec = self.__spec__
        if name.startswith("__") or spec is None or spec.loader is None:
            raise AttributeError(name)
        if name == "api":  # the names of headers: the first message with some asks for them
            return import_module(f"{self.__name__}.{name}")
        self.__class__ = ModuleType  # type: ignore[assignment] # from now on as any other
        spec.loader.exec_module(self)
        return getattr(self, name)


def _load_jetstream_late() -> None:
    """The library's own JetStream client, half of its weight, waits until somebody uses it."""
    if "nats" in sys.modules:
        return
    package = find_spec("nats")
    places = package.submodule_search_locations if package is not None else None
    spec = PathFinder.find_spec("nats.js", places)
    if spec is None or spec.submodule_search_locations is None:
        return
    module = _LateModule("nats.js")
    module.__spec__, module.__path__ = spec, spec.submodule_search_locations
    sys.modules["nats.js"] = module
    with _quick_metadata(Path(spec.submodule_search_locations[0]).parents[1]):
        import nats

    nats.js = module  # what the import itself would have done


def load_headers() -> None:
    """What the first message with headers makes the library load, for those who measure time."""
    import_module("nats.js.api")


@contextmanager
def _quick_metadata(packages: Path) -> Iterator[None]:
    """The library looks its own version up, and what does that takes as long as half of it.

    Meanwhile the version is that of the library's folder of metadata. Where the websocket client is
    loaded, too, nothing is changed: what it wants of that module is not known here.
    """
    name = "importlib.metadata"
    if name in sys.modules or sys.modules.get("aiohttp", True) is not None:
        yield
        return

    def version(distribution: str) -> str:
        start = distribution.replace("-", "_") + "-"
        for path in packages.glob(f"{start}*.dist-info"):
            return path.name.removeprefix(start).removesuffix(".dist-info")
        sys.modules.pop(name, None)
        return import_module(name).version(distribution)  # type: ignore[no-any-return] # a str

    stand_in = ModuleType(name)
    stand_in.version = version  # type: ignore[attr-defined] # the one name that is asked for
    sys.modules[name] = stand_in
    try:
        yield
    finally:
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]


def _silent(_text: str) -> None:
    """Nobody listens."""


class _Watch:
    """Hears of a connection's fate.

    While it is being made an error raised here ends the attempt: the library itself would try
    each server twice, half a second later, and for ever when one refuses the credentials.
    """

    def __init__(self, log: Log, client: "NatsClient", settings: Settings) -> None:
        self.log = log
        self.client = client
        self.refusals = client.refusals
        self.trace = settings.trace
        self.servers = len(settings.urls)
        self.connecting = True
        self.refused = False
        """The attempt has failed: what comes while it closes must not hide the reason."""

    async def disconnected(self) -> None:
        """The server went away."""
        if not self.connecting and self.refusals.ended is None:
            self.log(">>> Disconnected, will attempt reconnect")

    async def reconnected(self) -> None:
        """Another server, or the same again."""
        if self.trace:
            self.log(">>> Reconnected")

    async def failed(self, error: Exception) -> None:
        """Something went wrong; ends a hopeless first attempt, and hopeless further ones."""
        text = sentence_of(str(error))
        if self.connecting:
            if self.trace:
                self.log(f">>> Unexpected NATS error: {error}")
            self._give_up(error)
        elif is_login(text) and self.refusals.hear(text):
            return
        elif self.trace or worth_a_word(error):
            self.log(f">>> Unexpected NATS error: {text}")

    def _give_up(self, error: Exception) -> None:
        """While connecting: raises what another try cannot cure, and the last server's error. Told
        of twice, the end of a connection is still that of one server."""
        from nats.errors import SecureConnWantedError

        if self.refused:
            return
        hopeless = isinstance(error, SecureConnWantedError) or isinstance(
            error.__cause__, JsctlError
        )
        if self.client.tried >= self.servers or hopeless or is_login(str(error)):
            raise error


def worth_a_word(error: Exception) -> bool:
    """Whether people should hear of it: refusals and lost messages, not broken connections."""
    from nats.errors import SlowConsumerError

    return isinstance(error, SlowConsumerError) or bare(str(error)).startswith("permissions")


def _options(settings: Settings, watch: _Watch) -> dict[str, object]:
    callbacks: dict[str, Callable[..., Awaitable[None]]] = {
        "disconnected_cb": watch.disconnected,
        "reconnected_cb": watch.reconnected,
        "error_cb": watch.failed,
    }
    options: dict[str, object] = {
        "servers": [checked_url(url) for url in settings.urls],
        "name": settings.connection_name or "jsctl",
        "connect_timeout": settings.timeout,
        "max_reconnect_attempts": CONNECT_TRIES_MAX,
        "reconnect_time_wait": RECONNECT_WAIT_SECONDS,
        **callbacks,
    }
    prefix = settings.connection.inbox_prefix
    if prefix:
        if prefix.endswith(".") or set(prefix) & set("*> \t\r\n") or "" in prefix.split("."):
            raise UsageError(
                f'nats: invalid custom prefix "{prefix}"',
                hints=("--inbox-prefix takes a subject without wildcards",),
            )
        options["inbox_prefix"] = prefix.encode()
    return options
