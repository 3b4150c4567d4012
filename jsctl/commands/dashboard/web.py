"""Serving the dashboard to browsers: arguments in, a server that runs until it is interrupted."""

import asyncio
import contextlib
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from jsctl.api.times import format_duration
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError
from jsctl.settings import GLOBAL_FLAGS

if TYPE_CHECKING:
    from jsctl.dashboard.options import DashboardOptions

MISSING = "the dashboard in a browser needs textual-serve: pip install 'jsctl[web]'"
SYSTEM_USER, SYSTEM_PASSWORD = "JSCTL_SYSTEM_USER", "JSCTL_SYSTEM_PASSWORD"


def serve(call: Call, options: "DashboardOptions") -> int:
    """Prints the address and serves."""
    try:
        from jsctl.dashboard.web import GuardedServer, bind, is_loopback, public_origin
    except ModuleNotFoundError:
        raise UsageError(MISSING) from None
    host, url = call.text("web-host"), call.text("web-url")
    public = public_origin(url) if url else ""
    if not is_loopback(host) and not call.flag("insecure"):
        raise UsageError(
            f"--web-host {host} can be reached from other machines, without encryption",
            hints=("put a proxy with TLS in front of 127.0.0.1 (--web-url), or add --insecure",),
        )
    flags, environment = child_of(call, options)
    command = shlex.join([*_program(), "dashboard", *flags])
    listener = bind(host, call.integer("web-port"))
    server = GuardedServer(command, listener, host, environment, public)
    if public:
        call.output.log(f"Listening for the proxy at {server.own}")
    call.output.log("Open this address in a browser; ctrl+c ends it:")
    call.output.print(server.address)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(server.run())
    return 0


def child_of(call: Call, options: "DashboardOptions") -> tuple[list[str], dict[str, str]]:
    """Flags and environment of the dashboards behind the pages.

    What may be secret goes into the environment: command lines can be seen by everybody.
    """
    flags, environment = _global_flags(call.settings.given)
    environment["JSCTL_DASHBOARD_WEB"] = "1"
    for name, variable in (("system-user", SYSTEM_USER), ("system-password", SYSTEM_PASSWORD)):
        if call.given(name):
            environment[variable] = call.text(name)
    if options.system_context:
        flags += ["--system-context", options.system_context]
    if options.read_only or not call.flag("allow-actions"):
        flags.append("--read-only")
    if call.flag("ascii"):
        flags.append("--ascii")
    flags += ["--theme", options.theme]
    flags += ["--refresh", format_duration(round(options.refresh_s * 1e9))]
    return flags, environment


def _global_flags(given: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    flags: list[str] = []
    environment: dict[str, str] = {}
    for flag in GLOBAL_FLAGS:
        value = given.get(flag.key)
        if value is None or flag.key == "render":
            continue
        if flag.env:
            environment[flag.env] = value
        elif flag.metavar:
            flags += [f"--{flag.name}", value]
        elif value == "true":
            flags.append(f"--{flag.name}")
    return flags, environment


def _program() -> list[str]:
    """The command that started us, to be started again."""
    script = Path(sys.argv[0])
    if script.name == "jsctl" and os.access(script, os.X_OK):
        return [str(script)]
    return [sys.executable, "-m", "jsctl"]
