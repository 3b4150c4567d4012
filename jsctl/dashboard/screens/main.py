"""The eight tabs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import ContentSwitcher

from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import short, short_bytes
from jsctl.dashboard.model.advisories import CATEGORIES, belongs
from jsctl.dashboard.model.snapshot import Consumer, Event, Kind, Server, Snapshot, Stream
from jsctl.dashboard.screens.host import Host
from jsctl.dashboard.screens.requests import RaftWatched
from jsctl.dashboard.screens.sources import SourcesScreen
from jsctl.dashboard.screens.view import View
from jsctl.dashboard.tables.consumers import CONSUMERS, CONSUMERS_WIDE
from jsctl.dashboard.tables.events import EVENTS
from jsctl.dashboard.tables.groups import GROUPS
from jsctl.dashboard.tables.servers import SERVERS, SERVERS_WIDE
from jsctl.dashboard.tables.stores import BUCKETS, OBJECTS
from jsctl.dashboard.tables.streams import STREAMS, STREAMS_WIDE
from jsctl.dashboard.widgets.bars import Tab, TabBar
from jsctl.dashboard.widgets.grid import Grid, GridColumn
from jsctl.dashboard.widgets.panels import Cards, Panel, Strip1, meta_lines, meta_summary

TABS = (
    Tab("1", "Overview", "screen.tab('overview')", "overview"),
    Tab("2", "Streams", "screen.tab('tab-streams')", "tab-streams"),
    Tab("3", "Consumers", "screen.tab('tab-consumers')", "tab-consumers", "Cons"),
    Tab("4", "Servers", "screen.tab('tab-servers')", "tab-servers"),
    Tab("5", "RAFT", "screen.tab('tab-raft')", "tab-raft"),
    Tab("6", "KV", "screen.tab('tab-kv')", "tab-kv"),
    Tab("7", "Objects", "screen.tab('tab-objects')", "tab-objects", "Obj"),
    Tab("8", "Events", "screen.tab('tab-events')", "tab-events"),
)
ROOMY = 38
"""From so many rows on there is room for seven events."""
FRAME = 3
"""Rows of a table that are not data: border and header."""


def stream_grid(id: str, title: str, *, wide: bool) -> Grid[Stream]:
    """A table of streams."""
    return Grid(
        STREAMS_WIDE if wide else STREAMS,
        lambda row: row.key,
        title=title,
        searched=lambda row: f"{row.name} {' '.join(row.subjects)} {row.why}",
        is_aged=lambda row: row.stale_ns > 0,
        id=id,
    )


def store_grid(id: str, title: str, columns: Sequence[GridColumn[Stream]]) -> Grid[Stream]:
    """A table of buckets or object stores."""
    return Grid(columns, lambda row: row.key, title=title, id=id)


def consumer_grid(id: str, title: str, *, wide: bool) -> Grid[Consumer]:
    """A table of consumers."""
    return Grid(
        CONSUMERS_WIDE if wide else CONSUMERS,
        lambda row: row.key,
        title=title,
        searched=lambda row: f"{row.stream} {row.name} {' '.join(row.filters)} {row.why}",
        order="health" if wide else "",
        is_aged=lambda row: row.stale_ns > 0,
        id=id,
    )


def event_grid(id: str) -> Grid[Event]:
    """A table of events that follows its end."""
    return Grid(
        EVENTS,
        lambda row: str(row.serial),
        title="Events & advisories",
        searched=lambda row: f"{row.what} {row.who} {row.said}",
        order="",
        header=False,
        follow=True,
        id=id,
    )


class MainScreen(View):
    """Overview, streams, consumers, servers, raft groups, buckets, objects, events."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(tab.key, tab.action, tab.title, show=False, id=f"tab-{tab.key}") for tab in TABS),
        Binding("f", "category", "Filter events", show=False, id="events-filter"),
        Binding("m", "sources", "Mirrors", show=False, id="mirrors"),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.category = CATEGORIES[0]

    def body(self) -> ComposeResult:
        """One pane a tab."""
        yield TabBar(TABS, "overview")
        with ContentSwitcher(initial="overview"):
            with Vertical(id="overview", classes="pane"):
                yield Cards()
                yield Strip1(id="strip")
                with Horizontal(id="overview-first"):
                    yield self._server_grid("servers", wide=False)
                    yield Panel("RAFT meta group", meta_lines, id="meta")
                with Horizontal(id="overview-second"):
                    yield stream_grid("streams", "Streams", wide=False)
                    yield consumer_grid("consumers", "Consumers by lag", wide=False)
                yield event_grid("events")
            with Vertical(id="tab-streams", classes="pane"):
                yield stream_grid("all-streams", "Streams", wide=True)
            with Vertical(id="tab-consumers", classes="pane"):
                yield consumer_grid("all-consumers", "Consumers", wide=True)
            with Vertical(id="tab-servers", classes="pane"):
                yield self._server_grid("all-servers", wide=True)
            with Vertical(id="tab-raft", classes="pane"):
                yield Grid(
                    GROUPS,
                    lambda row: row.key,
                    title="RAFT groups",
                    searched=lambda row: f"{row.name} {row.asset} {row.why}",
                    id="all-groups",
                )
            with Vertical(id="tab-kv", classes="pane"):
                yield store_grid("all-buckets", "Key-value buckets", BUCKETS)
            with Vertical(id="tab-objects", classes="pane"):
                yield store_grid("all-objects", "Object stores", OBJECTS)
            with Vertical(id="tab-events", classes="pane"):
                yield event_grid("all-events")

    def _server_grid(self, id: str, *, wide: bool) -> Grid[Server]:
        return Grid(
            SERVERS_WIDE if wide else SERVERS,
            lambda row: row.name,
            title="Servers",
            searched=lambda row: f"{row.name} {row.cluster} {row.version} {row.why}",
            order="health" if wide else "",
            is_aged=lambda row: not row.up,
            id=id,
        )

    def on_mount(self) -> None:
        """The keys go to the streams first."""
        super().on_mount()
        for grid in self.query("#streams").results(Grid):
            grid.focus()

    # Drawing

    def draw(self, snapshot: Snapshot, ink: Ink) -> None:
        """The pane that can be seen."""
        self.query_one(TabBar).show(ink)
        name = self.query_one(ContentSwitcher).current or "overview"
        if name == "overview":
            self._draw_overview(snapshot, ink)
        else:
            self._draw_tab(name, snapshot, ink)

    def _draw_overview(self, now: Snapshot, ink: Ink) -> None:
        narrow = self.has_class("-narrow")
        servers = self.query_one("#servers", Grid)
        glyphs = ink.glyphs
        tall = self.has_class("-tall")
        servers.totals = None if not tall or len(now.servers) < 2 else self._totals
        servers.empty = now.note
        servers.show(now.servers, ink)
        if now.system:
            legend = meta_summary(now, ink) if narrow else f"{glyphs.leader} meta leader"
            servers.border_subtitle = legend
        self.query_one(Cards).show(now, ink)
        self.query_one("#strip", Strip1).show(now, ink)
        self.query_one("#meta", Panel).show(now, ink)
        streams = self.query_one("#streams", Grid)
        streams.legend = f"{glyphs.leader} leader  {glyphs.warn} behind  {glyphs.bad} offline"
        streams.empty = _nothing(now)
        streams.show(now.streams, ink)
        self.query_one("#consumers", Grid).show(now.consumers, ink)
        self._draw_events("#events", now, ink)
        self._share_height()

    def _draw_tab(self, name: str, now: Snapshot, ink: Ink) -> None:
        if name == "tab-streams":
            grid = self.query_one("#all-streams", Grid)
            grid.empty = _nothing(now)
            grid.show(now.streams, ink)
        elif name == "tab-consumers":
            self.query_one("#all-consumers", Grid).show(now.consumers, ink)
        elif name == "tab-servers":
            order = sorted(now.servers, key=lambda one: (-one.level, one.name))
            self.query_one("#all-servers", Grid).show(order, ink)
        elif name == "tab-raft":
            self._draw_groups(now, ink)
        elif name in ("tab-kv", "tab-objects"):
            kind = Kind.BUCKET if name == "tab-kv" else Kind.OBJECTS
            grid = self.query_one("#all-buckets" if kind is Kind.BUCKET else "#all-objects", Grid)
            grid.show([one for one in now.streams if one.kind is kind], ink)
        elif name == "tab-events":
            self._draw_events("#all-events", now, ink)

    def _draw_groups(self, now: Snapshot, ink: Ink) -> None:
        grid = self.query_one("#all-groups", Grid)
        grid.empty = "" if now.system else now.note
        grid.show(now.groups, ink)

    def _draw_events(self, id: str, now: Snapshot, ink: Ink) -> None:
        grid = self.query_one(id, Grid)
        grid.show([one for one in now.events if belongs(one, self.category)], ink)
        grid.border_subtitle = f"{self.category} {ink.glyphs.sort}"

    def _totals(self, ink: Ink) -> dict[str, Text]:
        rows = [one for one in self.snapshot.servers if one.up]
        cores = sum(one.cores for one in rows) or 1
        used = sum(one.store for one in rows)
        most = sum(one.store_max for one in rows)
        texts = {
            "name": "  all",
            "cpu": f"{sum(one.cpu for one in rows) / cores:.0f}%",
            "mem": short_bytes(sum(one.mem for one in rows)),
            "connections": short(sum(one.connections for one in rows)),
            "in": short(sum(one.in_msgs for one in rows)),
            "out": short(sum(one.out_msgs for one in rows)),
            "store": f"{used / most:.0%}" if most else "",
            "leaders": short(sum(one.leaders for one in rows)),
        }
        widths = {
            one.column.key: width for one, width in self.query_one("#servers", Grid)._columns()
        }
        ends = {key: texts[key].rjust(widths.get(key, 0)) for key in ("cpu", "store")}
        return {key: Text(text, ink.muted) for key, text in {**texts, **ends}.items()}

    def _share_height(self) -> None:
        """Servers get what they need, streams what is left."""
        rows = max(1, len(self.snapshot.servers)) + FRAME
        totals = self.query_one("#servers", Grid).totals is not None
        members = len(self.snapshot.meta.peers) + 4 if not self.has_class("-narrow") else 0
        if self.has_class("-tall"):
            self.query_one("#events").styles.height = 9 if self.size.height >= ROOMY else 6
        else:
            self.query_one("#events").styles.height = None
        other = 4 if self.has_class("-narrow") or self.has_class("-short") else 7
        events = self.query_one("#events")
        other += events.outer_size.height if events.display else 0
        most = max(4, (self.size.height - other) // 2)
        wanted = min(max(rows + totals, members), most)
        self.query_one("#overview-first").styles.height = wanted

    def on_resize(self) -> None:
        """Breakpoints change what is shown."""
        self.call_after_refresh(self._receive_again)

    def _receive_again(self) -> None:
        """What is shown, drawn anew."""
        self.receive(replace(self.host.frame, snapshot=self.snapshot))

    # Tabs

    def action_tab(self, name: str) -> None:
        """Shows a pane and gives its table the keys."""
        self.query_one(ContentSwitcher).current = name
        self.query_one(TabBar).activate(name)
        self.post_message(RaftWatched(name == "tab-raft"))
        first = "#streams" if name == "overview" else f"#{name} Grid"
        self.query(first).first(Grid).focus()
        self._receive_again()

    def action_category(self) -> None:
        """The next category of events."""
        at = CATEGORIES.index(self.category)
        self.category = CATEGORIES[(at + 1) % len(CATEGORIES)]
        self._receive_again()

    def action_sources(self) -> None:
        """Mirrors and sources as a tree."""
        self.app.push_screen(SourcesScreen(self.host))

    @on(Grid.Opened)
    def _opened_event(self, event: Grid.Opened) -> None:
        if isinstance(event.row, Event):
            event.stop()


def _nothing(now: Snapshot) -> str:
    """Why there are no streams, where that is no fact about them."""
    return "" if now.system or now.jetstream else now.note
