"""The dashboard in a browser: a guarded server around `textual-serve`.

Each page runs a dashboard of its own in a child process. Three things keep strangers out, and
each answers with 403: the `Host` has to be ours (against names that are pointed here), the
`Origin` has to be the page's own (against other pages that the operator visits), and a random
token, given once in the address, has to have been swapped for a cookie. Everything that the page
needs comes from here; the content security policy forbids anything else.

A server that listens everywhere is found at every address of its machine. It takes them all for
its own: an address in numbers cannot be pointed elsewhere, as a name can.

Behind a proxy browsers know one address, the proxy's, which has to be told: nothing that a request
says about it is believed. The `Host` may be that address or ours, as proxies pass on either.
"""

import hmac
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp_jinja2
import jinja2
from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.server import Server

from jsctl.errors import UsageError

SESSIONS_MAX = 8
"""Every open page is a process; more than so many are refused with 503."""
DRIVER = "jsctl.dashboard.driver:PageDriver"
"""How they end with this server; a name, since only they load Textual."""
TOKEN_BYTES = 32
COOKIE_S = 12 * 3600
STRICT: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
PORT_MAX = 65535
PORTS = {"http": 80, "https": 443}
"""Those that browsers leave out of `Host` and `Origin`."""
HOST = re.compile(r"(\[[0-9a-f:.]+\]|[\w.-]+)(?::([0-9]{1,5}))?", re.ASCII)
"""Of a request: a name or an address, and a port."""
ELSEWHERE = ("192.0.2.1", 9)
"""An address for documentation, which is looked for and sent nothing."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    address = numeric(host)
    return address.is_loopback if address else host.lower() == "localhost"


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; raises UsageError."""
    if not 0 <= port <= PORT_MAX:
        raise UsageError(f"--web-port must be between 0 and {PORT_MAX}, got {port}")
    try:
        name = host.encode("idna").decode()
    except UnicodeError:
        raise UsageError(f"cannot serve on {host}:{port}: no name of a machine") from None
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((name, port))
    except OSError as error:
        listener.close()
        raise UsageError(f"cannot serve on {host}:{port}: {error.strerror}") from None
    return listener


def numeric(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is written as; None for a name."""
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None


def shown(host: str) -> str:
    """As an address line has it: in small letters, IPv6 in its shortest form and in brackets."""
    address = numeric(host)
    if address is None:
        return host.lower()
    return f"[{address}]" if address.version == 6 else str(address)


def origin_of(host: str, port: int, scheme: str = "http") -> str:
    """What browsers call the pages of a host."""
    return f"{scheme}://{host}" if port == PORTS[scheme] else f"{scheme}://{host}:{port}"


def public_origin(url: str) -> str:
    """What browsers call the pages behind a proxy; raises UsageError."""
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode()
    except ValueError:
        raise UsageError(f"--web-url '{url}' is no address of a page") from None
    if parts.scheme not in PORTS or not HOST.fullmatch(shown(host)) or "@" in parts.netloc:
        raise UsageError(f"--web-url '{url}' is no address of a page: say https://HOST[:PORT]")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise UsageError(f"--web-url '{url}' has a path: the dashboard needs a host to itself")
    return origin_of(shown(host), PORTS[parts.scheme] if port is None else port, parts.scheme)


def reachable() -> str:
    """An address of this machine: the one that it has on its way to others."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect(ELSEWHERE)
        except OSError:
            return "localhost"
        return str(way.getsockname()[0])


class Guard:
    """Who may come in: to the `host` that was asked for, and to the address that it is.

    With a `public` origin, that of a proxy, pages are that origin's only.
    """

    def __init__(
        self,
        host: str,
        address: IPv4Address | IPv6Address,
        port: int,
        token: str,
        public: str = "",
    ) -> None:
        self.names = {shown(host), shown(str(address))}
        if address.is_loopback or address.is_unspecified:
            self.names.add("localhost")
        if address.is_unspecified:
            self.names.add(socket.gethostname().lower())
        self.everywhere = address.is_unspecified
        self.port = port
        self.cookie = f"jsctl_{port}"
        self.token = token
        self.public = public
        self.encrypted = public.startswith("https:")

    def origin(self, request: web.Request) -> str:
        """Of the pages that a request belongs to; nothing if its `Host` is not ours."""
        found = HOST.fullmatch(request.headers.get("Host", "").lower())
        if found is None:
            return ""
        if self.public and self._is_public(found[1], found[2]):
            return self.public
        if int(found[2] or PORTS["http"]) != self.port:
            return ""
        ours = found[1] in self.names or (self.everywhere and numeric(found[1]) is not None)
        return (self.public or origin_of(found[1], self.port)) if ours else ""

    def _is_public(self, name: str, port: str | None) -> bool:
        scheme = urlsplit(self.public).scheme
        return origin_of(name, int(port or PORTS[scheme]), scheme) == self.public

    def refusal(self, request: web.Request) -> str:
        """Why not, or nothing."""
        own = self.origin(request)
        if not own:
            return "this host name is not served here"
        origin = request.headers.get("Origin")
        if origin is not None and origin != own:
            return "this page may not be used by other pages"
        if request.path == "/ws" and origin is None:
            return "a page has to say where it is from"
        if not self._knows(request):
            return "open the address that `jsctl dashboard --web` printed"
        return ""

    def _knows(self, request: web.Request) -> bool:
        given = request.cookies.get(self.cookie, "")
        if request.path == "/" and "token" in request.query:
            given = request.query["token"]
        return hmac.compare_digest(given.encode(), self.token.encode())

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuses, swaps the token for a cookie, or lets the request pass."""
        problem = self.refusal(request)
        if problem:
            return web.Response(status=403, text=f"403: {problem}\n", headers=STRICT)
        if request.path == "/" and "token" in request.query:
            left = {key: value for key, value in request.query.items() if key != "token"}
            away = web.HTTPSeeOther(str(request.rel_url.with_query(left)), headers=STRICT)
            away.set_cookie(
                self.cookie,
                self.token,
                httponly=True,
                samesite="Strict",
                max_age=COOKIE_S,
                secure=self.encrypted,
            )
            raise away
        response = await handler(request)
        if not response.prepared:
            response.headers.update(STRICT)
            response.headers["Content-Security-Policy"] = _policy(self.origin(request))
        return response


def _policy(origin: str) -> str:
    return (
        "default-src 'none'; script-src 'self'; "
        f"style-src 'self' 'unsafe-inline'; connect-src 'self' {_socket(origin)}; "
        "img-src 'self' data:; font-src 'self' data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


def _socket(origin: str) -> str:
    return f"ws{origin.removeprefix('http')}"


class Service(AppService):
    """A dashboard in a child process, with an environment that may hold credentials."""

    extra: Mapping[str, str] = {}

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        driver = {"TEXTUAL_DRIVER": DRIVER}
        return {**super()._build_environment(width, height), **driver, **self.extra}


class GuardedServer(Server):
    """Runs `command` for every page that the guard lets in."""

    def __init__(
        self,
        command: str,
        listener: socket.socket,
        host: str,
        environment: Mapping[str, str],
        public: str = "",
    ) -> None:
        bound, port = listener.getsockname()[:2]
        address = ip_address(bound)
        place = reachable() if address.is_unspecified else shown(host)
        self.own = origin_of(place, port)
        super().__init__(command, host, port, "jsctl dashboard", public or self.own)
        self.listener = listener
        self.environment = environment
        self.sessions = 0
        self.guard = Guard(host, address, port, secrets.token_urlsafe(TOKEN_BYTES), public)
        self.page = Path(str(files("jsctl.dashboard").joinpath("page")))

    @property
    def address(self) -> str:
        """What to open; it lets its owner in, so it is shown once and logged nowhere."""
        return f"{self.public_url}/?token={self.guard.token}"

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self.guard.check])
        aiohttp_jinja2.setup(app, loader=jinja2.FileSystemLoader(self.page), autoescape=True)
        app.add_routes(
            [
                web.get("/", self.handle_index, name="index"),
                web.get("/ws", self.handle_websocket, name="websocket"),
                web.get("/download/{key}", self.handle_download, name="download"),
                web.static("/static", self.statics_path, name="static"),
                web.static("/page", self.page, name="page"),
            ]
        )
        return app

    @aiohttp_jinja2.template("app_index.html")
    async def handle_index(self, request: web.Request) -> dict[str, Any]:
        """The page; it goes on where it was opened, as its cookie is for that place alone."""
        place = f"{_socket(self.guard.origin(request))}/ws"
        letters = _whole(request, "fontsize", 16, least=1)
        return {"name": self.title, "socket": place, "font_size": letters}

    async def handle_websocket(self, request: web.Request) -> Any:
        """One dashboard for one page, as long as there is room."""
        if self.sessions >= SESSIONS_MAX:
            return web.Response(status=503, text="503: too many open pages\n")
        self.sessions += 1
        try:
            return await self._run(request)
        finally:
            self.sessions -= 1

    async def _run(self, request: web.Request) -> web.WebSocketResponse:
        page = web.WebSocketResponse(heartbeat=15)
        await page.prepare(request)
        service = Service(
            self.command,
            write_bytes=page.send_bytes,
            write_str=page.send_str,
            close=page.close,  # type: ignore[arg-type] # its result is not looked at
            download_manager=self.download_manager,
        )
        service.extra = self.environment
        await service.start(_whole(request, "width", 80), _whole(request, "height", 24))
        try:
            await self._process_messages(page, service)
        finally:
            await service.stop()
        return page

    async def run(self) -> None:
        """Serves until it is cancelled."""
        import asyncio

        runner = web.AppRunner(await self._make_app(), access_log=None)
        await runner.setup()
        try:
            await web.SockSite(runner, self.listener).start()
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()


def _whole(request: web.Request, key: str, default: int, least: int = 20) -> int:
    """What a page asks for: cells of the terminal, or pixels of its letters."""
    text = request.query.get(key, "")
    return max(least, min(1000, int(text))) if text.isdecimal() else default
