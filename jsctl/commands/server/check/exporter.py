"""`server check exporter`: a page for Prometheus; checks are made when it is asked for.

HTTP is served by threads; checks run one after the other in the loop, which keeps the connections
of those that reuse one.
"""

import asyncio
import ssl
import sys
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, cast

from jsctl.commands.server.check.properties import CHECKS, values_of
from jsctl.commands.server.check.run import NOT_CONNECTED, Body, carried_out, critical_if_it_fails
from jsctl.commands.toolkit.content.yaml_problems import yaml_problem
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError, UsageError
from jsctl.render.reports.server.check import CheckResult, nagios, prometheus
from jsctl.settings import load

if TYPE_CHECKING:
    from jsctl.client.library import NatsClient

Page = Callable[[], str]
PAGE = "/metrics"
CONTENT = "text/plain; version=0.0.4; charset=utf-8"
SILENT_S = 30
"""A peer that sends nothing for so long is given up."""
ALONE = frozenset({"credential", "connection"})
"""Kinds that have no use for a connection that is there already."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A check as it was configured; `call` carries it out."""

    name: str
    kind: str
    call: Call
    reuse: bool = False
    trouble: str = ""
    """Why it cannot be made."""


async def exporter(call: Call) -> None:
    """Serves until it is interrupted."""
    checks = Checks(call, plans_of(call, Path(call.text("config"))))
    loop = asyncio.get_running_loop()

    def page() -> str:
        return asyncio.run_coroutine_threadsafe(checks.page(), loop).result()

    server = _listening(call, page)
    scheme = "https" if call.given("https-certificate") else "http"
    where = f"{scheme}://0.0.0.0:{server.server_address[1]}{PAGE}"
    call.output.log(f"Prometheus exporter listening on {where}")
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        await checks.close()


def plans_of(call: Call, path: Path) -> list[Plan]:
    """What a configuration asks for. Raises UsageError for a file that is none."""
    import yaml

    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"could not read {path}: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: {yaml_problem(error)}") from None
    if not isinstance(document, dict) or not isinstance(document.get("checks", []), list):
        raise UsageError(f"{path}: expected a document with a list of checks")
    rows = document.get("checks") or []
    plans = [_plan(call, path, row, str(document.get("context") or "")) for row in rows]
    names = [(plan.kind, plan.name) for plan in plans]
    for kind, name in names:
        if names.count((kind, name)) > 1:
            raise UsageError(f"{path}: two checks of kind {kind} have the name '{name}'")
    return plans


def _plan(call: Call, path: Path, row: object, context: str) -> Plan:
    if not isinstance(row, dict):
        raise UsageError(f"{path}: a check has a name and a kind")
    name, kind = str(row.get("name") or ""), str(row.get("kind") or "")
    if kind not in CHECKS:
        raise UsageError(f"{path}: unknown check kind '{kind}'; known: {', '.join(sorted(CHECKS))}")
    properties = row.get("properties") or {}
    trouble = ""
    settings, values = call.settings, {}
    try:
        if not isinstance(properties, dict):
            raise UsageError("expected names and values")
        values = values_of(kind, properties)
    except UsageError as error:
        trouble = f"invalid properties: {error}"
    try:
        if wanted := str(row.get("context") or context):
            # Flags and the environment say nothing of a context that was named here.
            plain = {key: text for key, text in call.environ.items() if "NATS_" not in key}
            settings = load({"context": wanted}, plain)
    except JsctlError as error:
        trouble = trouble or f"could not load context: {error}"
    own = Call(values, {}, settings, call.output, call.prompts)
    return Plan(name, kind, own, bool(row.get("reuse_connection")) and kind not in ALONE, trouble)


class Checks:
    """All that is configured, and the connections that are kept."""

    def __init__(self, call: Call, plans: list[Plan]) -> None:
        self._call = call
        self._plans = plans
        self._clients: dict[int, NatsClient] = {}
        self._turn = asyncio.Lock()

    async def page(self) -> str:
        """Makes all checks, one after the other, and tells of each in the log."""
        async with self._turn:
            results = [await self._made(at, plan) for at, plan in enumerate(self._plans)]
        return prometheus(results, self._call.text("namespace"))

    async def close(self) -> None:
        """Ends the connections."""
        for client in self._clients.values():
            await client.close()

    async def _made(self, at: int, plan: Plan) -> CheckResult:
        result = CheckResult(plan.kind, plan.name)
        if plan.trouble:
            result.critical(plan.trouble)
        else:
            body = _body_of(plan.kind)
            await carried_out(plan.call, result, self._on_kept(at, body) if plan.reuse else body)
        self._call.output.log(nagios(result))
        return result

    def _on_kept(self, at: int, body: Body) -> Body:
        """The check, on a connection that stays for the next time."""

        async def run(call: Call, result: CheckResult) -> None:
            from jsctl.client.connection import open_client

            client = self._clients.get(at)
            if client is None or client.is_closed:
                with critical_if_it_fails(result, NOT_CONNECTED):
                    client = self._clients[at] = await open_client(call.settings)
                call.keep(client)
            async with client.refusals.scope():
                await body(call, result)

        return run


def _body_of(kind: str) -> Body:
    return cast(Body, import_module(f"jsctl.commands.server.check.{kind}").body)


def _listening(call: Call, page: "Page") -> ThreadingHTTPServer:
    """Raises UsageError for certificates, and JsctlError for a port, that cannot be used."""
    port, certificate, key = (call.text(one) for one in ("port", "https-certificate", "https-key"))
    if bool(certificate) != bool(key):
        raise UsageError("--https-certificate and --https-key are given together")
    try:
        server = _Server(("", int(port)), _handler_of(page))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise JsctlError(f"cannot listen on port {port}: {reason.lower()}") from None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

        def refuse() -> str:
            """Nobody may be there whom OpenSSL could ask at the terminal."""
            raise ValueError("the private key is encrypted")

        try:
            context.load_cert_chain(certificate, key, password=refuse)
        except (OSError, ValueError) as error:
            server.server_close()
            raise UsageError(f"{certificate} and {key} cannot be used: {error}") from None
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    return server


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Who breaks off, or speaks something else than TLS, is nothing to tell of."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # any


def _handler_of(page: Page) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = SILENT_S
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != PAGE:
                self._answer(HTTPStatus.NOT_FOUND, "404 page not found\n")
                return
            try:
                self._answer(HTTPStatus.OK, page())
            except (RuntimeError, CancelledError):
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, "the exporter ends\n")

        def _answer(self, status: HTTPStatus, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", CONTENT)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):  # who asked has gone
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Requests are not told; what the checks found is."""

    return Handler
