"""The cards, the one-line summary of small screens, and the meta group."""

from collections.abc import Callable

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.geometry import Size
from textual.widget import Widget

from jsctl.api.times import SECOND_NS
from jsctl.dashboard.look import cells
from jsctl.dashboard.look.cells import both_ends
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, fitted, short, short_bytes, short_names, short_time
from jsctl.dashboard.model.snapshot import Badge, Card, Level, PeerState, Snapshot
from jsctl.render.humanize import number

Draw = Callable[[Snapshot, Ink, int], list[Text]]
SLOW_PEER_NS = 3 * SECOND_NS
WAITING = (Badge.CONNECTING, Badge.NO_ACCESS)
"""Nothing is known yet."""


class Panel(Widget):
    """A frame around lines that a function draws."""

    DEFAULT_CSS = """
    Panel {
        border: round $panel-border;
        border-title-color: $title;
        border-title-style: bold;
        border-subtitle-color: $muted;
        background: $background;
        padding: 0 1;
        height: auto;
    }
    Panel.card { border-title-color: $muted; border-title-style: none; }
    """

    def __init__(self, title: str, draw: Draw, *, id: str | None = None, classes: str = "") -> None:
        super().__init__(id=id, classes=classes)
        self.border_title = title
        self.draw = draw
        self._lines = 0
        self.snapshot = Snapshot()
        self.ink = Ink()

    def show(self, snapshot: Snapshot, ink: Ink) -> None:
        """New state."""
        self.snapshot, self.ink = snapshot, ink
        count = len(self.draw(snapshot, ink, max(10, self.content_size.width)))
        self.refresh(layout=count != self._lines and bool(self.styles.auto_dimensions))
        self._lines = count

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as there are lines."""
        return max(1, len(self.draw(self.snapshot, self.ink, width)))

    def render(self) -> Text:
        """The lines that fit."""
        lines = self.draw(self.snapshot, self.ink, self.content_size.width)
        width = self.content_size.width
        for line in lines:
            if line.cell_len > width:
                line.truncate(width, overflow="ellipsis")
            line.plain = self.ink.glyphs.plain(line.plain)
        return Text("\n", no_wrap=True, end="").join(lines[: self.content_size.height])


def _change(card: Card, ink: Ink, *, up_is_bad: bool = False) -> Text:
    percent = round(card.change * 100)
    if not percent:
        return Text("", ink.muted)
    if abs(percent) > 999:
        return Text(ink.glyphs.up if percent > 0 else ink.glyphs.down, ink.muted)
    if percent > 0:
        colour = ink.colour("warn" if up_is_bad else "ok")
        return Text(f"{ink.glyphs.up} {percent}%", f"bold {colour}")
    return Text(f"{ink.glyphs.down} {-percent}%", ink.muted)


def _rate(value: float, unit: str, ink: Ink, role: str = "text") -> Text:
    cell = Text(short(value), f"bold {ink.colour(role) if role != 'text' else ink.text}")
    cell.append(unit, ink.muted)
    return cell


def publish_card(now: Snapshot, ink: Ink, width: int) -> list[Text]:
    """Messages from clients."""
    head = both_ends(_rate(now.publish.value, "/s", ink), _change(now.publish, ink), width)
    return [head, cells.spark(now.publish.trend, width, ink, "accent")]


def deliver_card(now: Snapshot, ink: Ink, width: int) -> list[Text]:
    """Messages to clients."""
    head = both_ends(_rate(now.deliver.value, "/s", ink), _change(now.deliver, ink), width)
    return [head, cells.spark(now.deliver.trend, width, ink, "flow")]


def lag_card(now: Snapshot, ink: Ink, width: int) -> list[Text]:
    """What consumers have not got yet."""
    role = "warn" if now.lag.value else "text"
    change = _change(now.lag, ink, up_is_bad=True)
    value = _rate(now.lag.value, " msgs", ink, role)
    if value.cell_len + change.cell_len >= width:
        value = _rate(now.lag.value, "", ink, role)
    head = both_ends(value, change, width)
    return [head, cells.spark(now.lag.trend, width, ink, "warn")]


def api_card(now: Snapshot, ink: Ink, width: int) -> list[Text]:
    """Requests to the JetStream API, and refused ones."""
    errors = now.api_errors
    colour = ink.colour("warn" if errors else "ok")
    right = Text(f"{short(errors)} err", f"bold {colour}")
    return [
        both_ends(_rate(now.api.value, "/s", ink), right, width),
        cells.spark(now.api.trend, width, ink, "accent"),
    ]


def storage_card(now: Snapshot, ink: Ink, width: int) -> list[Text]:
    """How full the stores are."""
    share = now.store / now.store_max if now.store_max else 0.0
    used = f"{short_bytes(now.store)}/{short_bytes(now.store_max)}" if now.store_max else ""
    colour = ink.colour("warn" if share > 0.85 else "accent")
    head = both_ends(Text(f"{share:.0%}", f"bold {ink.text}"), Text(used, ink.muted), width)
    return [head, cells.bar(share, width, ink, colour)]


def alerts_card(now: Snapshot, ink: Ink, width: int) -> list[Text]:
    """How many things are marked, and the worst of them."""
    head = alert_counts(now, ink)
    right = Text(f"{len(now.alerts)} open", f"bold {ink.text}") if now.alerts else Text()
    if now.badge in WAITING:
        return [Text(now.badge.value.lower(), ink.muted)]
    if not now.alerts:
        return [Text(f"{ink.glyphs.ok} none", ink.level(Level.OK)), Text("all well", ink.muted)]
    worst = now.alerts[0]
    if head.cell_len + right.cell_len >= width:
        head = alert_counts(now, ink, gap="")
    return [
        both_ends(head, right, width),
        Text(fitted(clean(f"{worst.who}: {worst.said}"), width), ink.muted),
    ]


def alert_counts(now: Snapshot, ink: Ink, gap: str = " ") -> Text:
    """`✖ 1  ▲ 4`; `gap` stands between mark and number."""
    line = Text(no_wrap=True, end="")
    for level in (Level.BAD, Level.WARN):
        count = sum(alert.level is level for alert in now.alerts)
        colour = ink.level(level) if count else ink.muted
        style = f"bold {colour}" if count else colour
        line.append(f"{ink.glyphs.level(level)}{gap}{count} {gap}", style)
    line.rstrip()
    return line


CARDS: tuple[tuple[str, Draw, str], ...] = (
    ("Publish", publish_card, "publish"),
    ("Deliver", deliver_card, "deliver"),
    ("Consumer lag", lag_card, "lag"),
    ("JS API", api_card, "api"),
    ("Storage", storage_card, "storage"),
    ("Alerts", alerts_card, "alerts"),
)


class Cards(Horizontal):
    """Six numbers with their past."""

    DEFAULT_CSS = """
    Cards { height: 4; }
    Cards Panel { width: 1fr; height: 4; margin: 0 1 0 0; }
    Cards #card-alerts { margin: 0; }
    """

    def compose(self) -> ComposeResult:
        """One frame each."""
        for title, draw, name in CARDS:
            yield Panel(title, draw, id=f"card-{name}", classes="card")

    def show(self, snapshot: Snapshot, ink: Ink) -> None:
        """New state."""
        for panel in self.query(Panel):
            panel.show(snapshot, ink)


class Strip1(Widget):
    """The cards in one line, for small screens."""

    DEFAULT_CSS = "Strip1 { height: 1; padding: 0 1; background: $background; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.snapshot = Snapshot()
        self.ink = Ink()

    def show(self, snapshot: Snapshot, ink: Ink) -> None:
        """New state."""
        self.snapshot, self.ink = snapshot, ink
        self.refresh()

    def render(self) -> Text:
        """One line."""
        now, ink = self.snapshot, self.ink
        line = Text(no_wrap=True, end="")
        line.append_text(cells.pair("in", _rate(now.publish.value, "/s", ink), ink))
        line.append(" ")
        line.append_text(cells.spark(now.publish.trend, 6, ink, "accent"))
        line.append("  ")
        line.append_text(cells.pair("out", _rate(now.deliver.value, "/s", ink), ink))
        line.append(" ")
        line.append_text(cells.spark(now.deliver.trend, 6, ink, "flow"))
        role = "warn" if now.lag.value else "text"
        line.append("  ")
        line.append_text(cells.pair("lag", _rate(now.lag.value, "", ink, role), ink))
        line.append("  ")
        line.append_text(cells.pair("api", _rate(now.api.value, "/s", ink), ink))
        if now.store_max:
            line.append("  ")
            line.append_text(cells.pair("disk", f"{now.store / now.store_max:.0%}", ink))
        line.append("  ")
        line.append_text(alert_counts(now, ink, gap=""))
        return line


def meta_lines(now: Snapshot, ink: Ink, width: int) -> list[Text]:
    """Who leads, whether there is a quorum, how far every member is."""
    meta = now.meta
    if not meta.known:
        words = "not clustered" if now.system else "needs the system account"
        if now.badge in WAITING:
            words = now.badge.value.lower()
        return [Text(words, ink.muted)]
    left = Text(no_wrap=True, end="")
    if meta.leader:
        left.append(f"{ink.glyphs.leader} ", ink.colour("star"))
        left.append(clean(meta.leader), f"bold {ink.text}")
        left.append(f" leads {short_time(meta.since_ns)}" if meta.since_ns else " leads", ink.muted)
    else:
        left.append(f"{ink.glyphs.bad} no leader", f"bold {ink.level(Level.BAD)}")
    lines = [both_ends(left, cells.pair("term", str(meta.term or "?"), ink), width)]
    lines.append(_quorum_line(now, ink, width))
    top = max((peer.lag for peer in meta.peers), default=0)
    names = short_names([peer.name for peer in meta.peers])
    room = max((len(name) for name in names.values()), default=0)
    for peer in meta.peers:
        level = _peer_level(peer.state)
        line = Text(f"{ink.glyphs.level(level)} ", ink.level(level), no_wrap=True, end="")
        line.append(f"{clean(names[peer.name]):<{room}} ", f"{ink.text}")
        share = 1.0 - (peer.lag / top * 0.9 if top else 0.0)
        share = 0.0 if peer.state is PeerState.OFFLINE else share
        line.append_text(cells.bar(share, max(4, width - room - 20), ink, ink.level(level)))
        word = f"-{short(peer.lag)}" if peer.lag else peer.state.value
        colour = ink.colour("star") if peer.state is PeerState.LEADER else ink.muted
        line.append(f" {word:<8}", ink.level(level) if level else colour)
        seen = short_time(peer.active_ns) if peer.active_ns else ""
        slow = ink.level(Level.WARN) if peer.active_ns > SLOW_PEER_NS else ink.muted
        line.append(f"{seen:>7}", slow)
        lines.append(line)
    return lines


def _peer_level(state: PeerState) -> Level:
    return {PeerState.BEHIND: Level.WARN, PeerState.OFFLINE: Level.BAD}.get(state, Level.OK)


def _quorum_line(now: Snapshot, ink: Ink, width: int) -> Text:
    meta = now.meta
    level = Level.OK if meta.have == meta.size else Level.WARN if meta.spare >= 0 else Level.BAD
    left = Text("quorum ", ink.muted, no_wrap=True, end="")
    left.append(str(meta.have), f"bold {ink.level(level)}" if level else f"bold {ink.text}")
    left.append(f"/{meta.size} ", ink.muted)
    for peer in sorted(meta.peers, key=lambda peer: _peer_level(peer.state)):
        found = _peer_level(peer.state)
        left.append(ink.glyphs.level(found), ink.level(found))
    left.append(f" need {meta.need}", ink.muted)
    colour = ink.text if meta.spare > 0 else ink.level(Level.WARN)
    right = Text("spare ", ink.muted)
    right.append(str(meta.spare), colour)
    return both_ends(left, right, width)


def meta_summary(now: Snapshot, ink: Ink) -> Text:
    """The same in the border of another panel."""
    meta = now.meta
    if not meta.known:
        return Text(f"{ink.glyphs.leader} meta leader", ink.muted)
    line = Text(no_wrap=True, end="")
    line.append(str(meta.have), ink.level(Level.OK if meta.have == meta.size else Level.WARN))
    line.append(f"/{meta.size} in sync  ", ink.muted)
    line.append(f"{ink.glyphs.leader} {clean(meta.leader) or 'nobody'}", ink.muted)
    line.append(f" term {meta.term}" if meta.term else "", ink.muted)
    return line


def exact(value: int) -> str:
    """A number with separators, for details."""
    return number(value)
