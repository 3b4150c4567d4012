"""One consumer: position, lag over time, group, configuration."""

from functools import partial
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical

from jsctl.dashboard.actions.plans import Target
from jsctl.dashboard.connection.link import failures
from jsctl.dashboard.look import cells
from jsctl.dashboard.look.chart import chart
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.members import peer_lines
from jsctl.dashboard.look.words import clean, short, short_time
from jsctl.dashboard.model.snapshot import Consumer, Level, Snapshot
from jsctl.dashboard.screens.host import Host
from jsctl.dashboard.screens.view import View
from jsctl.dashboard.widgets.bars import Tab, TabBar
from jsctl.dashboard.widgets.panels import Panel
from jsctl.dashboard.widgets.textpane import TextPane
from jsctl.render.humanize import duration, number
from jsctl.render.reports.consumers import consumer_screen

CHART_ROWS = 6


def _state(key: str, now: Snapshot, ink: Ink, width: int) -> list[Text]:
    one = now.consumer(key)
    if one is None:
        return [Text("this consumer is gone", ink.level(Level.BAD))]
    most = f" of {number(one.ack_pending_max)}" if one.ack_pending_max > 0 else ""
    kind = ("push, bound" if one.bound else "push, nobody listens") if one.push else "pull"
    rows: list[tuple[str, Text | str]] = [
        ("kind", f"{kind} {ink.glyphs.dot} ack {one.ack}"),
        ("filter", ", ".join(one.filters) or ">"),
        ("delivered", number(one.delivered_seq)),
        ("ack floor", number(one.floor_seq)),
        ("lag", cells.lag(one.lag, one.level, ink)),
        ("in flight", f"{number(one.ack_pending)}{most}"),
        ("again", f"{number(one.redelivered)} redelivered"),
        ("waiting", f"{number(one.waiting)} pull requests"),
        ("ack wait", duration(one.ack_wait_ns)),
    ]
    if one.paused:
        rows.append(("paused", f"{ink.glyphs.paused} for {short_time(one.pause_left_ns)} more"))
    rows += [("pinned", f"{group}: {client or 'nobody'}") for group, client in one.pinned]
    if one.level:
        rows.append(("state", Text(clean(one.why), ink.level(one.level))))
    return [cells.pair(label, value, ink, cells.LABEL) for label, value in rows]


def _group(key: str, now: Snapshot, ink: Ink, width: int) -> list[Text]:
    one = now.consumer(key)
    return peer_lines(one.peers if one else (), ink, width)


def _flow(key: str, now: Snapshot, ink: Ink, width: int) -> list[Text]:
    one = now.consumer(key) or Consumer("", "", "")
    drawn = chart("delivered/s", one.trend, width, CHART_ROWS, ink, "flow", short)
    return list(drawn.split("\n"))


class ConsumerScreen(View):
    """`key` is that of the consumer in snapshots."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", key_display="esc"),
    ]

    def __init__(self, host: Host, key: str) -> None:
        super().__init__(host)
        self.key = key

    def body(self) -> ComposeResult:
        """Numbers at the left, flow and configuration at the right."""
        yield TabBar((Tab("", "Consumer", "", "consumer"),), "consumer")
        with Horizontal(id="consumer-body"):
            with Vertical(id="consumer-left"):
                yield Panel("State", partial(_state, self.key), id="consumer-state")
                yield Panel("RAFT group", partial(_group, self.key), id="consumer-group")
            with Vertical(id="consumer-right"):
                yield Panel("Flow", partial(_flow, self.key), id="consumer-flow")
                yield TextPane("Configuration", id="consumer-config")

    def on_mount(self) -> None:
        """Asks for the configuration."""
        super().on_mount()
        self.query_one(TextPane).focus()
        self.run_worker(self._load(), exclusive=True)

    async def _load(self) -> None:
        link = self.host.link
        pane = self.query_one(TextPane)
        consumer = self.snapshot.consumer(self.key)
        if link is None or consumer is None:
            return
        try:
            info = await link.manager.consumer_info(consumer.stream, consumer.name)
        except failures() as error:
            pane.show(Text(clean(str(error)), self.ink.muted))
            return
        lines = consumer_screen(info).render().split("\n")
        pane.show(Text("\n".join(clean(line) for line in lines), self.ink.text))

    def draw(self, snapshot: Snapshot, ink: Ink) -> None:
        """Numbers of the snapshot."""
        consumer = snapshot.consumer(self.key)
        stream = self.key.split("/")[1]
        crumbs = Text(f" {clean(stream)} {ink.glyphs.crumb} ", ink.muted)
        level = consumer.level if consumer else Level.BAD
        crumbs.append(f"{ink.glyphs.level(level)} ", ink.level(level))
        crumbs.append(clean(self.key.rpartition("/")[2]) + "  ", f"bold {ink.text}")
        self.query_one(TabBar).show(ink, crumbs)
        for panel in self.query(Panel):
            panel.show(snapshot, ink)

    def target(self) -> Target | None:
        """The consumer."""
        return self.snapshot.consumer(self.key)

    def action_back(self) -> None:
        """The screen before."""
        self.dismiss(None)
