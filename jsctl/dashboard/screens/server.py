"""One server: charts, facts, and its connections."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical

from jsctl.api.codec import DecodeError, decode
from jsctl.api.monitoring.connz import ConnInfo
from jsctl.dashboard.actions.plans import Target
from jsctl.dashboard.connection.link import failures
from jsctl.dashboard.look import cells
from jsctl.dashboard.look.chart import chart
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, short, short_bytes, short_time
from jsctl.dashboard.model.documents import Document, sections
from jsctl.dashboard.model.snapshot import Level, Server, Snapshot
from jsctl.dashboard.screens.host import Host
from jsctl.dashboard.screens.view import View
from jsctl.dashboard.tables.connections import CONNECTIONS
from jsctl.dashboard.widgets.bars import Tab, TabBar
from jsctl.dashboard.widgets.grid import Grid
from jsctl.dashboard.widgets.panels import Panel
from jsctl.render.humanize import counted, number, size

CONNECTIONS_S = 2.0
CONNECTIONS_MAX = 1024
CHART_ROWS = 5
Draw = Callable[[Snapshot, Ink, int], list[Text]]


def _facts(name: str, now: Snapshot, ink: Ink, _width: int) -> list[Text]:
    one = now.server(name)
    if one is None:
        return [Text("this server is gone", ink.level(Level.BAD))]
    share = f" of {size(one.store_max)}" if one.store_max else ""
    rows: list[tuple[str, Text | str]] = [
        ("version", one.version),
        ("cluster", one.cluster or "none"),
        ("host", one.host),
        ("uptime", short_time(one.uptime_ns)),
        ("cores", str(one.cores)),
        ("store", f"{size(one.store)}{share}"),
        ("leads", f"{one.leaders} of {one.assets} assets here"),
        ("routes", f"to {counted(one.routes, 'server')}"),
        ("subs", number(one.subscriptions)),
        ("slow", counted(one.slow_consumers, "consumer")),
        ("api", f"{number(one.api_total)}, {counted(one.api_errors, 'error')}"),
        ("rtt", short_time(one.rtt_ns)),
    ]
    if one.meta_leader:
        rows.append(("meta", Text(f"{ink.glyphs.leader} leader", ink.colour("star"))))
    if one.level:
        rows.append(("state", Text(clean(one.why), ink.level(one.level))))
    return [cells.pair(label, value, ink, cells.LABEL) for label, value in rows]


def _charts(name: str, now: Snapshot, ink: Ink, width: int) -> list[Text]:
    one = now.server(name) or Server(name)
    cores = max(1, one.cores)
    cpu = tuple(value / cores for value in one.cpu_trend)
    half = (width - 3) // 2
    pairs = (
        (
            ("CPU", cpu, "accent", lambda value: f"{value:.0f}%"),
            ("memory", one.mem_trend, "warn", short_bytes),
        ),
        (("in/s", one.in_trend, "accent", short), ("out/s", one.out_trend, "flow", short)),
    )
    lines: list[Text] = []
    for left, right in pairs:
        drawn = [
            chart(title, values, half, CHART_ROWS, ink, role, shown).split("\n")
            for title, values, role, shown in (left, right)
        ]
        for first, second in zip(*drawn, strict=True):
            line = Text(no_wrap=True, end="")
            line.append_text(first)
            line.append("   ")
            line.append_text(second)
            lines.append(line)
        lines.append(Text())
    return lines[:-1]


def _readable(told: Iterable[Document]) -> Iterator[ConnInfo]:
    """The connections, but for those that are none."""
    for one in told:
        with suppress(DecodeError):
            yield decode(ConnInfo, dict(one))


class ServerScreen(View):
    """Asks the server for its connections as long as it is open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", key_display="esc"),
    ]

    def __init__(self, host: Host, name: str) -> None:
        super().__init__(host)
        self.server_name = name
        self.connections: list[ConnInfo] = []

    def body(self) -> ComposeResult:
        """Facts and charts, connections below."""
        yield TabBar((Tab("", "Server", "", "server"),), "server")
        with Vertical():
            with Horizontal(id="server-top"):
                yield Panel("Server", partial(_facts, self.server_name), id="server-facts")
                yield Panel("Last minute", partial(_charts, self.server_name), id="server-charts")
            grid: Grid[ConnInfo] = Grid(
                CONNECTIONS,
                lambda row: str(row.cid),
                title="Connections",
                searched=lambda row: f"{row.name} {row.ip} {row.account} {row.lang}",
                order="traffic",
                id="connections",
            )
            yield grid

    def on_mount(self) -> None:
        """Starts to ask."""
        super().on_mount()
        self.query_one("#connections").focus()
        self.set_interval(CONNECTIONS_S, self._ask)
        self._ask()

    def _ask(self) -> None:
        if self.is_current and not self.host.frame.frozen:
            self.run_worker(self._load(), group="connections", exclusive=True)

    async def _load(self) -> None:
        link, server = self.host.link, self.snapshot.server(self.server_name)
        if link is None or server is None or not server.up or not server.id:
            return
        options = {"auth": True, "limit": CONNECTIONS_MAX}
        try:
            told = await link.ask_servers("CONNZ", options, server_id=server.id)
        except failures():
            return
        if told:
            rows = list(_readable(sections(told[0].data, "connections")))
            rows.sort(key=lambda row: -(row.in_msgs + row.out_msgs))
            self.connections = rows
            self.query_one("#connections", Grid).show(rows, self.ink)

    def draw(self, snapshot: Snapshot, ink: Ink) -> None:
        """Numbers of the snapshot."""
        server = snapshot.server(self.server_name)
        level = server.level if server else Level.BAD
        crumbs = Text(f" Servers {ink.glyphs.crumb} ", ink.muted)
        crumbs.append(f"{ink.glyphs.level(level)} ", ink.level(level))
        crumbs.append(f"{clean(self.server_name)}  ", f"bold {ink.text}")
        self.query_one(TabBar).show(ink, crumbs)
        for panel in self.query(Panel):
            panel.show(snapshot, ink)
        self.query_one("#connections", Grid).show(self.connections, ink)

    def target(self) -> Target | None:
        """The server."""
        return self.snapshot.server(self.server_name)

    def action_back(self) -> None:
        """The screen before."""
        self.dismiss(None)
