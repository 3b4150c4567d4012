"""The table of the dashboard: only the rows on screen are drawn, however many there are.

It keeps the cursor on the same row when the order changes, and holds the order still for a
moment after a key press, so that rows do not run away from under the cursor.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any, ClassVar, Generic, TypeVar, cast

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, fitted
from jsctl.dataclass import dataclass
from jsctl.render.column import Align, Column

R = TypeVar("R")
HOLD_S = 3.0
"""The order stands still for so long after a key press."""
GAP = 2
"""Blanks between columns."""


@dataclass(frozen=True, slots=True)
class GridColumn(Generic[R]):
    """A column of a report with its drawing. `flex` takes a share of spare width.

    `draw` gets row, ink and width. Columns with a higher `column.priority` are dropped first.
    """

    column: Column[R]
    draw: Callable[[R, Ink, int], Text]
    width: int
    flex: float = 0.0
    width_max: int = 999
    descending: bool = False

    @property
    def right(self) -> bool:
        """Whether cells stand at the right."""
        return self.column.align is Align.RIGHT


class Grid(ScrollView, Generic[R], can_focus=True):
    """A table of rows that have keys. `searched` is the text that a filter looks at."""

    DEFAULT_CSS = """
    Grid {
        height: 1fr;
        border: round $panel-border;
        border-title-color: $title;
        border-title-style: bold;
        border-subtitle-color: $muted;
        background: $background;
        padding: 0 1;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        overflow-y: auto;
    }
    Grid:focus { border: round $primary; border-title-color: $foreground; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open", id="open", key_display="⏎"),
        Binding("up,k", "move(-1)", "Up", show=False, id="up"),
        Binding("down,j", "move(1)", "Down", show=False, id="down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="page-up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="page-down"),
        Binding("g,home", "edge(0)", "Top", show=False, id="top"),
        Binding("G,end", "edge(1)", "Bottom", show=False, id="bottom"),
        Binding("slash", "app.filter", "Filter", key_display="/", id="filter"),
        Binding("s", "sort", "Sort", show=False, id="sort"),
        Binding("left,h", "app.focus_previous", "Left", show=False, id="left"),
        Binding("right,l", "app.focus_next", "Right", show=False, id="right"),
        Binding("S", "reverse", "Reverse", show=False, id="sort-reverse"),
    ]

    class About(Message):
        """Something about a row."""

        def __init__(self, grid: "Grid[Any]", row: object) -> None:
            self.grid, self.row = grid, row
            super().__init__()

        @property
        def control(self) -> "Grid[Any]":
            """The table."""
            return self.grid

    class Opened(About):
        """A row was chosen."""

    class Moved(About):
        """The cursor stands on another row."""

    def __init__(
        self,
        columns: Sequence[GridColumn[R]],
        key: Callable[[R], str],
        *,
        title: str = "",
        searched: Callable[[R], str] | None = None,
        legend: str = "",
        order: str = "health",
        header: bool = True,
        is_aged: Callable[[R], bool] = lambda _row: False,
        follow: bool = False,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.columns = tuple(columns)
        self.key = key
        self.title = title
        self.legend = legend
        self.head = 1 if header else 0
        """Rows above the first one."""
        self.order = order
        """What the given order is by, in a word."""
        self.searched = searched or key
        self.is_aged = is_aged
        """Whether a row is of the past, and is greyed."""
        self.sort_key = ""
        self.reversed = False
        self.filter = ""
        self.follow = follow
        """Keeps the cursor on the last row."""
        self.all_rows: Sequence[R] = ()
        self.rows: list[R] = []
        self.cursor = 0
        self.ink = Ink()
        self.empty = ""
        """What stands there when there are no rows."""
        self.totals: Callable[[Ink], dict[str, Text]] | None = None
        self._keys: list[str] = []
        self._pattern: re.Pattern[str] | None = None
        self._touched = 0.0
        self._layout: list[tuple[GridColumn[R], int]] = []
        self._layout_of = (-1, -1)
        self._drawn: dict[str, tuple[R, Ink, Text]] = {}

    # Data

    def show(self, rows: Sequence[R], ink: Ink) -> None:
        """New rows, in the order of the caller; drawn with this ink."""
        if ink != self.ink:
            self._drawn.clear()
        self.ink, self.all_rows = ink, rows
        self._arrange()

    def set_filter(self, text: str) -> bool:
        """Only rows that match the regular expression; False if it is none."""
        try:
            self._pattern = re.compile(text, re.IGNORECASE) if text else None
        except (re.error, OverflowError):
            return False
        self.filter, self._touched = text, 0.0
        self._arrange()
        return True

    @property
    def current(self) -> R | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None

    def select(self, key: str) -> None:
        """Puts the cursor on a row, if it is there."""
        if key in self._keys:
            self._go(self._keys.index(key))

    def select_first(self) -> None:
        """The next rows are others: the cursor will stand on the first of them."""
        self._keys, self.rows, self.cursor = [], [], 0

    def _arrange(self) -> None:
        """Filters and orders; keeps the cursor on its row."""
        before = self._keys[self.cursor] if self.cursor < len(self._keys) else ""
        rows = [row for row in self.all_rows if self._matches(row)]
        if self.sort_key:
            rows = self._sorted(rows)
        elif self.reversed:
            rows.reverse()
        if monotonic() - self._touched < HOLD_S:
            rows = self._held(rows)
        self.rows = rows
        self._keys = [self.key(row) for row in rows]
        at_end = self.follow or not before
        if self.follow:
            self.cursor = max(0, len(rows) - 1)
        elif before in self._keys:
            self.cursor = self._keys.index(before)
        else:
            self.cursor = max(0, min(self.cursor, len(rows) - 1)) if not at_end else 0
        self._titles()
        if len(self._drawn) > 4 * (self.size.height + 10):
            self._drawn.clear()
        self.virtual_size = Size(self._inner_width(), len(rows) + self.head + bool(self.totals))
        self._keep_in_view()
        self.refresh()
        after = self._keys[self.cursor] if self.cursor < len(self._keys) else ""
        if after != before:
            self.post_message(self.Moved(self, self.current))

    def _matches(self, row: R) -> bool:
        return self._pattern is None or bool(self._pattern.search(self.searched(row)))

    def _sorted(self, rows: list[R]) -> list[R]:
        found = next(one for one in self.columns if one.column.key == self.sort_key)
        by = found.column.sort or found.column.value
        key = cast("Callable[[R], Any]", by)
        return sorted(rows, key=key, reverse=found.descending != self.reversed)

    def _held(self, rows: list[R]) -> list[R]:
        places = {key: at for at, key in enumerate(self._keys)}
        return sorted(rows, key=lambda row: places.get(self.key(row), len(places)))

    def _titles(self) -> None:
        title = Text(self.title)
        if self.all_rows and self.title:
            count = f"{len(self.rows)}/{len(self.all_rows)}" if self.filter else len(self.rows)
            title.append(f" {count}", f"not bold {self.ink.muted}")
        if self.filter:
            title.append(f" /{clean(self.filter)}", f"not bold {self.ink.colour('star')}")
        self.border_title = cast(str, title)
        word = self.sort_key or self.order
        arrow = self.ink.glyphs.sort_up if self.reversed else self.ink.glyphs.sort
        legend = f"{self.legend}   " if self.legend else ""
        self.border_subtitle = f"{legend}sort: {word} {arrow}" if word else self.legend

    # Drawing

    def _inner_width(self) -> int:
        """Without the last column: beside it is the scroll bar, if there is one."""
        return max(0, self.scrollable_content_region.width - 1)

    def _columns(self) -> list[tuple[GridColumn[R], int]]:
        width = self._inner_width()
        if self._layout_of == (width, len(self.columns)) and self._layout:
            return self._layout
        shown = list(self.columns)
        while len(shown) > 1 and sum(one.width + GAP for one in shown) - GAP > width:
            shown.remove(max(shown, key=lambda one: (one.column.priority, shown.index(one))))
        widths = [one.width for one in shown]
        spare = width - sum(widths) - GAP * (len(shown) - 1)
        flexes = sum(one.flex for one in shown)
        for at, one in enumerate(shown):
            if one.flex and spare > 0:
                widths[at] = min(one.width_max, widths[at] + int(spare * one.flex / flexes))
        if len(shown) == 1:
            widths = [min(width, max(widths[0], 1))]
        self._layout = list(zip(shown, widths, strict=True))
        self._layout_of = (width, len(self.columns))
        self._drawn.clear()
        return self._layout

    def render_line(self, y: int) -> Strip:
        """The header, then rows from the scroll position on, then totals."""
        width = self._inner_width()
        at = y - self.head + self.scroll_offset.y
        base = Style(color=self.ink.text, bgcolor=self.ink.palette.background)
        if y < self.head:
            return self._strip(self._header(), width, base)
        if 0 <= at < len(self.rows):
            if at == self.cursor:
                back = self.ink.palette.cursor if self.has_focus else self.ink.palette.cursor_idle
                base = Style(color=self.ink.text, bgcolor=back)
            return self._strip(self._row(at), width, base)
        if at == 0 and not self.rows and self.empty:
            empty = Text(fitted(clean(self.empty), width), self.ink.muted, no_wrap=True, end="")
            return self._strip(empty, width, base)
        if at == len(self.rows) and self.totals is not None:
            return self._strip(self._joined(self.totals(self.ink)), width, base)
        return Strip.blank(width, base)

    def _strip(self, text: Text, width: int, base: Style) -> Strip:
        plain = self.ink.glyphs.plain
        segments = [
            Segment(plain(one.text), base + one.style if one.style else base)
            for one in text.render(self.app.console)
        ]
        return Strip(segments).adjust_cell_length(width, base).simplify()

    def _header(self) -> Text:
        cells = {one.column.key: Text(one.column.title, self.ink.muted) for one in self.columns}
        return self._joined(cells)

    def _row(self, at: int) -> Text:
        row = self.rows[at]
        known = self._keys[at]
        kept = self._drawn.get(known)
        columns = self._columns()
        if kept is not None and kept[1] == self.ink and (kept[0] is row or kept[0] == row):
            return kept[2]
        ink = replace(self.ink, aged=True) if self.is_aged(row) else self.ink
        cells = {one.column.key: one.draw(row, ink, width) for one, width in columns}
        text = self._joined(cells)
        self._drawn[known] = (row, self.ink, text)
        return text

    def _joined(self, cells: dict[str, Text]) -> Text:
        line = Text(no_wrap=True, end="")
        for at, (one, width) in enumerate(self._columns()):
            if at:
                line.append(" " * GAP)
            cell = cells.get(one.column.key, Text())
            if cell.cell_len > width:
                cell = cell.copy()
                cell.truncate(width, overflow="ellipsis")
            blank = " " * (width - cell.cell_len)
            if one.right:
                line.append(blank)
            line.append_text(cell)
            if not one.right:
                line.append(blank)
        return line

    # Moving

    def touch(self) -> None:
        """Somebody works here: the order stands still for a moment."""
        self._touched = monotonic()

    def _page_height(self) -> int:
        return max(1, self.scrollable_content_region.height - self.head)

    def _keep_in_view(self) -> None:
        height, top = self._page_height(), self.scroll_offset.y
        if self.size.height < 2:
            return
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, force=True)

    def _go(self, row: int) -> None:
        self.touch()
        target = max(0, min(row, len(self.rows) - 1))
        if target == self.cursor:
            return
        self.cursor = target
        self._keep_in_view()
        self.refresh()
        self.post_message(self.Moved(self, self.current))

    def action_move(self, by: int) -> None:
        """Up or down."""
        self.follow = self.follow and self.cursor + by >= len(self.rows)
        self._go(self.cursor + by)

    def action_page(self, by: int) -> None:
        """A page."""
        self.follow = False
        self._go(self.cursor + by * self._page_height())

    def action_edge(self, end: int) -> None:
        """The first or the last row."""
        self._go(len(self.rows) - 1 if end else 0)

    def action_open(self) -> None:
        """Choose the row."""
        if self.current is not None:
            self.post_message(self.Opened(self, self.current))

    def action_sort(self) -> None:
        """By the next column, at last by the given order again."""
        keys = ["", *(one.column.key for one, _ in self._columns())]
        # That of the present order is not shown any more where the terminal became narrower.
        at = keys.index(self.sort_key) if self.sort_key in keys else 0
        self.sort_key = keys[(at + 1) % len(keys)]
        self.reversed, self._touched = False, 0.0
        self._arrange()

    def action_reverse(self) -> None:
        """The other way round."""
        self.reversed, self._touched = not self.reversed, 0.0
        self._arrange()

    def on_resize(self) -> None:
        """Columns are laid out anew."""
        self._layout_of = (-1, -1)
        self.virtual_size = Size(
            self._inner_width(), len(self.rows) + self.head + bool(self.totals)
        )
        self._keep_in_view()

    async def on_click(self, event: events.Click) -> None:
        """A click puts the cursor there, a second one opens."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if offset.y < self.head:
            self._sort_at(offset.x)
            return
        row = offset.y - self.head + self.scroll_offset.y
        if row >= len(self.rows):
            return
        self._go(row)
        if event.chain > 1:
            self.action_open()

    def _sort_at(self, x: int) -> None:
        left = 0
        for one, width in self._columns():
            if left <= x < left + width + GAP:
                if self.sort_key == one.column.key:
                    self.action_reverse()
                else:
                    self.sort_key, self.reversed, self._touched = one.column.key, False, 0.0
                    self._arrange()
                return
            left += width + GAP

    def on_focus(self) -> None:
        """The cursor is brighter where the keys go."""
        self.refresh()

    def on_blur(self) -> None:
        """The keys go elsewhere."""
        self.refresh()

    def cursor_region(self) -> Region:
        """Where the cursor is, in cells of the widget."""
        return Region(0, self.cursor - self.scroll_offset.y + self.head, self._inner_width(), 1)
