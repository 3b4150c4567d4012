"""What all full screens have in common: top bar, key bar, filter, actions on what is selected."""

from dataclasses import replace
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input

from jsctl.dashboard.actions.catalog import ACTIONS, Action, Target, action_named, show_command
from jsctl.dashboard.frame import Frame
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.model.snapshot import STALE_NS, Consumer, Meta, Server, Snapshot, Stream
from jsctl.dashboard.screens.host import Host
from jsctl.dashboard.screens.jump import JumpScreen
from jsctl.dashboard.screens.requests import ActionRequested, RowOpened
from jsctl.dashboard.widgets.bars import KeyBar, TopBar
from jsctl.dashboard.widgets.grid import Grid

NARROW = [(0, "-narrow"), (100, "-wide")]
SHORT = [(0, "-flat"), (12, "-low"), (18, "-short"), (32, "-tall")]


class View(Screen[None]):
    """A full screen. Subclasses fill `body`, `draw` and `target`."""

    HORIZONTAL_BREAKPOINTS = NARROW
    VERTICAL_BREAKPOINTS = SHORT
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(
                one.key,
                f"act('{one.name}')",
                one.label,
                show=one.shown,
                id=one.name,
                key_display=one.key,
            )
            for one in ACTIONS
            if one.key
        ),
        Binding("y", "copy", "Copy", show=False, id="copy"),
        Binding("ctrl+o", "jump", "Jump", show=False, id="jump"),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__()
        self.host = host
        self.snapshot = Snapshot()
        self.ink = Ink()
        self._built = False

    # To be filled

    def body(self) -> ComposeResult:
        """What stands between the bars."""
        raise NotImplementedError

    def draw(self, snapshot: Snapshot, ink: Ink) -> None:
        """Shows a snapshot."""
        raise NotImplementedError

    def target(self) -> Target | None:
        """What the keys of actions act on: the row under the cursor, or what the view shows."""
        grid = self.focused
        if isinstance(grid, Grid):
            return as_target(grid.current)
        return None

    # Frame

    def compose(self) -> ComposeResult:
        """Bars around the body."""
        yield TopBar()
        yield from self.body()
        hint = "filter: a regular expression, esc clears"
        yield Input(id="filter-bar", placeholder=hint, compact=True)
        yield KeyBar()

    def on_mount(self) -> None:
        """Shows what is known already."""
        self._built = True
        self.receive(self.host.frame)

    def on_screen_resume(self) -> None:
        """What came while another screen was on top."""
        frame = self.host.frame
        if frame.snapshot is not self.snapshot or frame.ink != self.ink:
            self.receive(frame)

    def receive(self, frame: Frame) -> None:
        """What is to be shown; data that are old are drawn faded."""
        if not self._built or self.app._exit:
            return  # it is being built up or taken down
        self.snapshot, self.ink = snapshot, ink = frame.snapshot, frame.ink
        self.query_one(TopBar).show(frame)
        self.query_one(KeyBar).show(ink)
        if snapshot.stale_ns > STALE_NS:
            ink = replace(ink, faded=True)
        self.draw(snapshot, ink)
        self.refresh_bindings()

    # Filter

    def filtered(self) -> Grid[Any] | None:
        """The table that a filter works on: the focused one, or the first."""
        if isinstance(self.focused, Grid):
            return self.focused
        grids = [one for one in self.query(Grid) if one.is_on_screen]
        return grids[0] if grids else None

    def open_filter(self) -> None:
        """Shows the input line."""
        grid = self.filtered()
        if grid is None:
            return
        bar = self.query_one("#filter-bar", Input)
        self._filtering = grid
        bar.value = grid.filter
        bar.add_class("-open")
        bar.focus()

    @on(Input.Changed, "#filter-bar")
    def _filter_changed(self, event: Input.Changed) -> None:
        grid = getattr(self, "_filtering", None)
        if grid is not None and not grid.set_filter(event.value):
            event.input.styles.color = self.ink.palette.bad
        else:
            event.input.styles.color = self.ink.palette.text

    @on(Input.Submitted, "#filter-bar")
    def _filter_done(self) -> None:
        self._close_filter()

    def _close_filter(self) -> None:
        bar = self.query_one("#filter-bar", Input)
        bar.remove_class("-open")
        grid = getattr(self, "_filtering", None)
        if grid is not None:
            grid.focus()

    async def key_escape(self) -> None:
        """Ends the filter, or clears it, or goes back."""
        bar = self.query_one("#filter-bar", Input)
        grid = self.filtered()
        if bar.has_class("-open"):
            self._filtering.set_filter("")
            self._close_filter()
        elif grid is not None and grid.filter:
            grid.set_filter("")
        elif len(self.app.screen_stack) > 1:
            self.dismiss(None)

    # Actions

    @on(Grid.Moved)
    def _moved(self) -> None:
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Actions that cannot be done here and now are absent, not refused."""
        if action != "act":
            return True
        bar = self.query("#filter-bar")
        if not bar or self.focused is bar.first():
            return False
        return self.can(action_named(str(parameters[0])))

    def can(self, action: Action) -> bool:
        """Whether an action fits the selected thing and the rights we have."""
        frame = self.host.frame
        if frame.read_only or (action.local and frame.web):
            return False
        target = self.target()
        return target is not None and action.fits(target, self.snapshot)

    def action_act(self, name: str) -> None:
        """Asks for an action on the selected thing."""
        target = self.target()
        if target is not None and self.can(action_named(name)):
            self.post_message(ActionRequested(action_named(name), target))

    def action_copy(self) -> None:
        """The selected thing as a command line, to the clipboard."""
        target = self.target()
        if target is None:
            return
        command = show_command(target)
        self.app.copy_to_clipboard(command)
        self.notify(command, title="copied", markup=False)

    def action_jump(self) -> None:
        """Letters over all tables; one of them goes there."""
        grids = [one for one in self.query(Grid) if one.is_on_screen and one.can_focus]
        self.app.push_screen(JumpScreen(grids, self.ink))

    # Going places

    @on(Grid.Opened)
    def _opened(self, event: Grid.Opened) -> None:
        event.stop()
        self.open_row(event.row)

    def open_row(self, row: object) -> None:
        """Asks for the view of a stream, consumer, server or group."""
        self.post_message(RowOpened(row))


def as_target(row: object) -> Target | None:
    """A row that actions know; None for others."""
    return row if isinstance(row, Server | Stream | Consumer | Meta) else None
