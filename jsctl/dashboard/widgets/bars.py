"""The lines at the edges: what is connected and how it is, the tabs, the keys."""

from collections.abc import Sequence

from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.widget import Widget

from jsctl.dashboard.frame import Frame
from jsctl.dashboard.look.cells import both_ends
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, clock, fitted, short_time
from jsctl.dashboard.model.snapshot import STALE_NS, Snapshot
from jsctl.dataclass import dataclass
from jsctl.render.humanize import counted

MIDDLE = 60
"""Below it there is room for the badge alone."""
NAME_MIN, NAME_MAX = 6, 30
"""Cells of the context: it gives way to the badge."""
NAME_BESIDE = 13
"""Cells before and behind it."""
WIDE = 100
"""From here on there is room for counts."""


class TopBar(Widget):
    """Context, badge, counts; round trip, refresh, time."""

    DEFAULT_CSS = "TopBar { height: 1; background: $surface; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self.frame = Frame(Snapshot(), Ink())

    def show(self, frame: Frame) -> None:
        """New state."""
        self.frame = frame
        self.refresh()

    def render(self) -> Text:
        """One line."""
        width, right = self.content_size.width, self._right()
        badge = self._word()
        room = width - right.cell_len - badge.cell_len - NAME_BESIDE
        left = self._place(min(NAME_MAX, max(NAME_MIN, room)))
        return both_ends(left.append_text(badge).append_text(self._more()), right, width)

    def _place(self, room: int) -> Text:
        now, ink = self.frame.snapshot, self.frame.ink
        line = Text(no_wrap=True, end="")
        line.append(f"{ink.glyphs.logo} ", ink.colour("star"))
        line.append("jsctl ", f"bold {ink.text}")
        line.append(f"{ink.glyphs.crumb} ", ink.palette.border)
        line.append(
            f"{fitted(clean(now.context or 'default'), room)}  ", f"bold {ink.colour('accent')}"
        )
        return line

    def _word(self) -> Text:
        now, ink = self.frame.snapshot, self.frame.ink
        line = Text(no_wrap=True, end="")
        glyph, colour = ink.badge(now.badge)
        line.append(f"{glyph} {now.badge.value}", f"bold {colour}")
        if not now.connected and now.stale_ns:
            line.append(f"  {ink.glyphs.bad} no connection", f"bold {ink.palette.bad}")
        return line

    def _more(self) -> Text:
        now, ink = self.frame.snapshot, self.frame.ink
        line = Text(no_wrap=True, end="")
        if now.stale_ns > STALE_NS:
            line.append(f"  stale {short_time(now.stale_ns)}", ink.palette.warn)
        if self.frame.frozen:
            line.append(f"  {ink.glyphs.paused} FROZEN", f"bold {ink.palette.star}")
        if self.frame.tasks:
            line.append(f"  {ink.glyphs.refresh} ", ink.palette.accent)
            line.append(
                ink.glyphs.plain(clean(f"{', '.join(self.frame.tasks)}…")), ink.palette.accent
            )
        elif self.content_size.width >= WIDE:
            dot = f" {ink.glyphs.dot} "
            parts = [counted(len(now.servers), "server")] if now.servers else []
            parts += [counted(len(now.streams), "stream"), counted(len(now.consumers), "consumer")]
            line.append("  " + dot.join(parts), ink.muted)
        return line

    def _right(self) -> Text:
        now, ink = self.frame.snapshot, self.frame.ink
        line = Text(no_wrap=True, end="")
        width = self.content_size.width
        if width < MIDDLE:
            return line
        if self.frame.read_only:
            line.append("read-only  ", ink.muted)
        away = bool(not now.connected and now.stale_ns)
        if now.rtt_ns and not away:
            line.append("rtt ", ink.muted)
            line.append(f"{ink.glyphs.plain(short_time(now.rtt_ns))}  ", ink.text)
        if not (away and width < WIDE):
            line.append(f"{ink.glyphs.refresh} ", ink.muted)
            line.append(f"{self.frame.refresh_s:g}s  ", ink.text)
        if now.taken_ns:
            line.append(clock(now.taken_ns), ink.muted)
        return line


@dataclass(frozen=True, slots=True)
class Tab:
    """A word to click on, with its key and the action behind it."""

    key: str
    title: str
    action: str
    name: str
    short: str = ""


class TabBar(Widget):
    """One line of tabs; on narrow screens with short titles."""

    DEFAULT_CSS = "TabBar { height: 1; padding: 0 1; background: $background; }"

    def __init__(self, tabs: Sequence[Tab], active: str) -> None:
        super().__init__()
        self.tabs = tuple(tabs)
        self.active = active
        self.ink = Ink()
        self.crumbs = Text()
        self._spans: list[tuple[int, int, str]] = []

    def show(self, ink: Ink, crumbs: Text | None = None) -> None:
        """New colours; `crumbs` stand in front of the tabs."""
        self.ink = ink
        self.crumbs = crumbs or Text()
        self.refresh()

    def activate(self, name: str) -> None:
        """Marks a tab."""
        self.active = name
        self.refresh()

    def render(self) -> Text:
        """One line."""
        line = self._line(short=False)
        return line if line.cell_len <= self.content_size.width else self._line(short=True)

    def _line(self, *, short: bool) -> Text:
        ink, line = self.ink, self.crumbs.copy()
        line.no_wrap, line.end = True, ""
        self._spans.clear()
        for tab in self.tabs:
            start = line.cell_len
            title = (tab.short or tab.title) if short else tab.title
            on = tab.name == self.active
            style = f"bold {ink.palette.on_accent} on {ink.palette.accent}"
            line.append(" ", style if on else "")
            if tab.key:
                line.append(f"{tab.key} ", style if on else ink.colour("star"))
            line.append(title, style if on else ink.muted)
            line.append(" ", style if on else "")
            self._spans.append((start, line.cell_len, tab.action))
            line.append("" if short else " ")
        return line

    async def on_click(self, event: events.Click) -> None:
        """Runs what is behind the word."""
        await _click(self, event, self._spans)


LAST = ("help", "quit")


class KeyBar(Widget):
    """The keys that work where the focus is; as many as fit."""

    DEFAULT_CSS = "KeyBar { height: 1; background: $surface; padding: 0 0; dock: bottom; }"

    def __init__(self) -> None:
        super().__init__()
        self.ink = Ink()
        self._spans: list[tuple[int, int, str]] = []

    def on_mount(self) -> None:
        """Follows the focus."""
        self.screen.bindings_updated_signal.subscribe(self, lambda _screen: self.refresh())

    def show(self, ink: Ink) -> None:
        """New colours."""
        self.ink = ink
        self.refresh()

    def render(self) -> Text:
        """One line."""
        ink, width = self.ink, self.content_size.width
        line = Text(no_wrap=True, end="")
        self._spans.clear()
        seen: set[str] = set()
        for binding in self._fitting(width):
            if binding.action in seen:
                continue
            seen.add(binding.action)
            key = self._key(binding.key_display or self.app.get_key_display(binding))
            start = line.cell_len
            line.append(f"{key} ", f"bold {ink.colour('star')}")
            line.append(f"{binding.description} ", ink.muted)
            self._spans.append((start, line.cell_len, binding.action))
        return line

    def _fitting(self, width: int) -> list[Binding]:
        """What there is room for; help and quit have a place of their own, at the end."""
        shown = [
            one.binding
            for one in self.screen.active_bindings.values()
            if one.binding.show and one.enabled
        ]
        last = [one for one in shown if one.action in LAST]
        last.sort(key=lambda one: LAST.index(one.action))
        left = width - sum(self._width(one) for one in last)
        fitting = []
        seen: set[str] = set()
        for one in shown:
            if one in last or one.action in seen or self._width(one) > left:
                continue
            seen.add(one.action)
            left -= self._width(one)
            fitting.append(one)
        return fitting + last

    def _width(self, binding: Binding) -> int:
        key = self._key(binding.key_display or self.app.get_key_display(binding))
        return len(key) + len(binding.description) + 2

    def _key(self, shown: str) -> str:
        words = {"⏎": self.ink.glyphs.enter, "space": self.ink.glyphs.space}
        return words.get(shown, shown)

    async def on_click(self, event: events.Click) -> None:
        """Does what the key does."""
        await _click(self, event, self._spans)


async def _click(widget: Widget, event: events.Click, spans: list[tuple[int, int, str]]) -> None:
    offset = event.get_content_offset(widget)
    if offset is None:
        return
    for start, end, action in spans:
        if start <= offset.x < end:
            target = widget.screen.focused or widget.screen
            await widget.app.run_action(action, default_namespace=target)
            return
