"""Text that is longer than its frame."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static


class TextPane(VerticalScroll, can_focus=True):
    """A frame that scrolls; `show` replaces the text."""

    DEFAULT_CSS = """
    TextPane {
        height: 1fr; border: round $panel-border; background: $background; padding: 0 1;
        border-title-color: $title; border-title-style: bold; border-subtitle-color: $muted;
        scrollbar-size-vertical: 1;
    }
    TextPane:focus { border: round $primary; border-title-color: $foreground; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "scroll_up", "Up", show=False),
        Binding("j", "scroll_down", "Down", show=False),
        Binding("g", "scroll_home", "Top", show=False),
        Binding("G", "scroll_end", "Bottom", show=False),
    ]

    def __init__(self, title: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = title
        self.shown = Text()

    def compose(self) -> ComposeResult:
        """The text."""
        yield Static(self.shown)

    def show(self, text: Text) -> None:
        """Another text; the scroll position stays where it can."""
        if text == self.shown and text.spans == self.shown.spans:
            return
        self.shown = text
        for static in self.query(Static):
            static.update(text)
