"""Jump mode: a letter over every table, one key press goes there."""

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen
from textual.widgets import Static

from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.widgets.grid import Grid

LETTERS = "asdfghjkl"


class JumpScreen(ModalScreen[None]):
    """Gone with the next key."""

    DEFAULT_CSS = """
    JumpScreen { background: $background 60%; }
    JumpScreen Static { position: absolute; width: 5; height: 1; }
    """

    def __init__(self, grids: list[Grid[object]], ink: Ink) -> None:
        super().__init__()
        self.places = dict(zip(LETTERS, grids, strict=False))
        self.ink = ink

    def compose(self) -> ComposeResult:
        """The letters, where the tables are."""
        for letter, grid in self.places.items():
            style = f"bold {self.ink.palette.on_accent} on {self.ink.palette.star}"
            mark = Static(Text(f"  {letter}  ", style))
            mark.styles.offset = (grid.region.x + 2, grid.region.y)
            yield mark

    def on_key(self, event: events.Key) -> None:
        """Any key ends it."""
        event.stop()
        grid = self.places.get(event.character or "")
        self.dismiss(None)
        if grid is not None:
            self.app.call_later(grid.focus)
