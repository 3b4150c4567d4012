"""What the command palette offers; the line below each entry is its command line."""

from collections.abc import Iterable, Sequence

from textual.message import Message

from jsctl.dashboard.actions.catalog import ACTIONS
from jsctl.dashboard.actions.plans import Target, name_of
from jsctl.dashboard.frame import Frame
from jsctl.dashboard.model.snapshot import Consumer, Server, Snapshot, Stream
from jsctl.dashboard.screens.main import TABS
from jsctl.dashboard.screens.requests import (
    ActionRequested,
    ContextWanted,
    RowOpened,
    TabWanted,
    ThemeWanted,
)
from jsctl.dataclass import dataclass

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
KINDS = {Stream: "Stream", Consumer: "Consumer", Server: "Server"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the palette, and what is asked for when it is chosen."""

    title: str
    command: str
    wanted: Message


def place_entries(snapshot: Snapshot) -> Iterable[Entry]:
    """Tabs, streams, servers."""
    for tab in TABS:
        yield Entry(f"Go: {tab.title}", PLACES[tab.name], TabWanted(tab.name))
    for row in snapshot.streams[:ASSETS_MAX]:
        yield Entry(f"Open stream {row.name}", f"jsctl stream info {row.name}", RowOpened(row))
    for server in snapshot.servers:
        yield Entry(
            f"Open server {server.name}", f"jsctl server info {server.name}", RowOpened(server)
        )


def action_entries(frame: Frame, selected: Target | None) -> Iterable[Entry]:
    """On what is selected, then on the streams."""
    if frame.read_only:
        return
    targets = [selected] if selected is not None else []
    targets += [row for row in frame.snapshot.streams[:ASSETS_MAX] if row != selected]
    for target in targets:
        kind = KINDS.get(type(target), "Meta")
        for action in ACTIONS:
            if action.local and frame.web:
                continue
            if action.fits(target, frame.snapshot):
                yield Entry(
                    f"{kind}: {action.label.lower()} {name_of(target)}",
                    action.command(target),
                    ActionRequested(action, target),
                )


def setting_entries(contexts: Sequence[str], themes: Iterable[str]) -> Iterable[Entry]:
    """Other connections, other colours."""
    for name in contexts:
        yield Entry(f"Context: {name}", f"jsctl dashboard --context {name}", ContextWanted(name))
    for name in sorted(themes):
        yield Entry(f"Theme: {name}", f"jsctl dashboard --theme {name}", ThemeWanted(name))
