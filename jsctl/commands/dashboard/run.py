"""Runs the dashboard on a terminal, once, or for browsers."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from jsctl.client.addresses import bare_url
from jsctl.commands.toolkit.grammar.values import is_count
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError
from jsctl.settings import ContextStore, Settings, load

if TYPE_CHECKING:
    from jsctl.dashboard.connection.poller import MakePoller, Poller, Show
    from jsctl.dashboard.options import DashboardOptions

MISSING = "the dashboard needs Textual: pip install 'jsctl[dashboard]'"
FORMS = ("text", "json", "svg")


def dashboard(call: Call) -> int:
    """The command."""
    try:
        import textual  # noqa: F401 - only to see whether it is there
    except ModuleNotFoundError:
        raise UsageError(MISSING) from None
    options = options_of(call)
    check_theme(options.theme)
    if call.flag("web"):
        from jsctl.commands.dashboard.web import serve

        return serve(call, options)
    if call.flag("once"):
        return _once(call, options)
    if not options.web and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the dashboard needs a terminal", hints=("try --once or --web",))
    return _interactive(call, options)


def options_of(call: Call) -> "DashboardOptions":
    """Flags over environment over configuration file."""
    from jsctl.dashboard.look.glyphs import ASCII, wants_ascii
    from jsctl.dashboard.options import FILE, DashboardOptions, load_file, refresh_of

    path = ContextStore.default(call.environ).root / FILE
    options = load_file(path, DashboardOptions())
    if call.given("refresh"):
        options = replace(options, refresh_s=refresh_of(call.text("refresh"), "--refresh"))
    if call.given("theme"):
        options = replace(options, theme=call.text("theme"))
    if call.flag("read-only"):
        options = replace(options, read_only=True)
    if call.given("system-context"):
        options = replace(options, system_context=call.text("system-context"))
    encoding = sys.stdout.encoding or ""
    if call.flag("ascii") or wants_ascii(call.environ, encoding):
        options = replace(options, glyphs=ASCII)
    if call.environ.get("JSCTL_DASHBOARD_WEB"):
        options = replace(options, web=True)
    return options


def check_theme(name: str) -> None:
    """Raises UsageError for a theme that does not exist."""
    from textual.theme import BUILTIN_THEMES

    from jsctl.dashboard.look.palette import PALETTES

    known = [*(palette.name for palette in PALETTES), *sorted(BUILTIN_THEMES)]
    if name not in known:
        raise UsageError(f'unknown theme "{name}"', hints=(f"known: {', '.join(known)}",))


def system_settings(call: Call, options: "DashboardOptions") -> Settings | None:
    """How to reach the system account, if that was said.

    The contexts of `nats` may name one too, in the key `system_context`.
    """
    user = call.text("system-user") or call.environ.get("JSCTL_SYSTEM_USER", "")
    if user:
        password = call.text("system-password") or call.environ.get("JSCTL_SYSTEM_PASSWORD", "")
        # What a URL says of who one is would count more.
        url = ",".join(map(bare_url, call.settings.urls))
        plain = replace(call.settings.connection, url=url, user=user, password=password, token="")
        none = replace(plain, creds="", nkey="", user_jwt="", user_seed="")
        return replace(call.settings, connection=none)
    name = options.system_context or str(call.settings.connection.extra.get("system_context", ""))
    if not name:
        return None
    return settings_of(call, name)


def settings_of(call: Call, context: str) -> Settings:
    """Those of another context; what the environment says of a connection is not for it."""
    kept = {key: value for key, value in call.environ.items() if not key.startswith("NATS_")}
    return load({"context": context}, kept)


def make_poller(call: Call, options: "DashboardOptions") -> "MakePoller":
    """Makes pollers by the name of a context; the empty name is the command line's."""
    from jsctl.dashboard.connection.link import Dialer
    from jsctl.dashboard.connection.poller import Poller

    def make(context: str, show: "Show") -> "Poller":
        settings = call.settings
        system = None
        if context:
            settings = settings_of(call, context)
            linked = str(settings.connection.extra.get("system_context", ""))
            system = settings_of(call, linked) if linked else None
        else:
            system = system_settings(call, options)
        url = "".join(map(bare_url, settings.urls[:1]))
        name = settings.context_name or url.removeprefix("nats://")
        return Poller(Dialer(settings, system), name, show, options.refresh_s)

    return make


def _interactive(call: Call, options: "DashboardOptions") -> int:
    from jsctl.dashboard.app import Dashboard

    names = ContextStore.default(call.environ).names
    app = Dashboard(options, make_poller(call, options), names)
    code = app.run()
    if app.failure is not None:
        raise app.failure
    return code or app.return_code or 0


def _once(call: Call, options: "DashboardOptions") -> int:
    import asyncio

    from jsctl.dashboard.once import document_of, picture_of

    form = call.settings.render or call.text("output")
    if form == "table":
        form = "text"
    if form not in FORMS:
        raise UsageError(f"--output must be one of {', '.join(FORMS)}, got '{form}'")
    width, height = size_of(call.text("size"))
    make = make_poller(call, options)

    async def ask() -> str:
        snapshot = await make("", lambda _snapshot: None).once()
        if form == "json":
            return document_of(snapshot)
        return await picture_of(snapshot, options, form, width, height)

    sys.stdout.write(asyncio.run(ask()))
    return 0


def size_of(text: str) -> tuple[int, int]:
    """Columns and rows of `120x40`; raises UsageError."""
    width, _, height = text.lower().replace("×", "x").partition("x")
    if not (is_count(width) and is_count(height)):
        raise UsageError(f"--size must be like 120x40, got '{text}'")
    if not (20 <= int(width) <= 1000 and 5 <= int(height) <= 500):
        raise UsageError(f"--size must be between 20x5 and 1000x500, got '{text}'")
    return int(width), int(height)
