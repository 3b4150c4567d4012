"""What the command palette offers; the line below each entry is its command line."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SystemCommand
from textual.screen import Screen

from jsctl.dashboard.actions.catalog import ACTIONS
from jsctl.dashboard.look.words import clean
from jsctl.dashboard.model.snapshot import Consumer, Server, Stream
from jsctl.dashboard.screens.acting import name_of, start_action
from jsctl.dashboard.screens.main import TABS, MainScreen
from jsctl.dashboard.screens.opening import view_of
from jsctl.dashboard.screens.view import View

if TYPE_CHECKING:
    from jsctl.dashboard.app import Dashboard

ASSETS_MAX = 200
"""So many streams and consumers are offered by name."""
PLACES = {
    "overview": "jsctl dashboard --once",
    "tab-streams": "jsctl stream report",
    "tab-consumers": "jsctl consumer report STREAM",
    "tab-servers": "jsctl server list",
    "tab-raft": "jsctl server report jetstream",
    "tab-kv": "jsctl stream ls --all",
    "tab-objects": "jsctl stream ls --all",
    "tab-events": "jsctl subscribe '$JS.EVENT.>'",
}


def commands_of(app: "Dashboard", screen: Screen[object]) -> Iterable[SystemCommand]:
    """Places, actions, contexts, themes."""
    yield from _places(app)
    if isinstance(screen, View):
        yield from _actions(app, screen)
    for name in app.contexts():
        yield entry(
            f"Context: {name}", f"jsctl dashboard --context {name}", partial(app.connect, name)
        )
    for name in sorted(app.available_themes):
        yield entry(
            f"Theme: {name}",
            f"jsctl dashboard --theme {name}",
            partial(setattr, app, "theme", name),
        )
    yield entry("Freeze the picture", "space", app.action_freeze)
    yield entry("Help: keys", "?", app.action_help)
    yield entry("Screenshot", "jsctl dashboard --once -o svg", lambda: app.deliver_screenshot())
    yield entry("Quit", "q", app.exit)


def entry(title: str, command: str, run: Callable[[], object]) -> SystemCommand:
    """An entry of foreign text: no markup in it, and nothing that a terminal obeys."""
    return SystemCommand(_shown(title), _shown(command), run)


def _shown(text: str) -> str:
    return clean(text).replace("[", "\\[")


def _places(app: "Dashboard") -> Iterable[SystemCommand]:
    for tab in TABS:
        yield entry(f"Go: {tab.title}", PLACES[tab.name], partial(_go, app, tab.name))
    for row in app.snapshot.streams[:ASSETS_MAX]:
        yield entry(
            f"Open stream {row.name}", f"jsctl stream info {row.name}", partial(_open, app, row)
        )
    for server in app.snapshot.servers:
        yield entry(
            f"Open server {server.name}",
            f"jsctl server info {server.name}",
            partial(_open, app, server),
        )


def _go(app: "Dashboard", name: str) -> None:
    while len(app.screen_stack) > 1:
        app.pop_screen()
    if isinstance(app.screen, MainScreen):
        app.screen.action_tab(name)


def _open(app: "Dashboard", row: object) -> None:
    view = view_of(row)
    if view is not None:
        app.push_screen(view)


def _actions(app: "Dashboard", view: View) -> Iterable[SystemCommand]:
    """On what is selected, then on the streams."""
    if app.read_only:
        return
    selected = view.target()
    targets = [selected] if selected is not None else []
    targets += [row for row in app.snapshot.streams[:ASSETS_MAX] if row != selected]
    for target in targets:
        words = {Stream: "Stream", Consumer: "Consumer", Server: "Server"}
        kind = words.get(type(target), "Meta")
        for action in ACTIONS:
            if action.local and app.options.web:
                continue
            if action.fits(target, app.snapshot):
                yield entry(
                    f"{kind}: {action.label.lower()} {name_of(target)}",
                    action.command(target),
                    partial(start_action, app, action, target),
                )
