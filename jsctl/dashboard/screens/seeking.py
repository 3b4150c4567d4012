"""Where to go in a stream: a sequence, a time, or only some subjects."""

from time import time_ns
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from jsctl.api.times import parse_duration, parse_time
from jsctl.dashboard.actions.plans import words
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import titled

DIGITS_MAX = 20
"""No sequence has more."""
Seek = tuple[str, int | str]
"""`seq`, `time` or `subject`, and the value."""


def parse_seek(text: str, now_ns: int) -> Seek:
    """What somebody typed: digits, a time or a duration ago, else a subject with wildcards."""
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX:
        return "seq", int(text)
    for candidate in (text, f"{text.replace(' ', 'T')}Z"):
        try:
            return "time", parse_time(candidate) if candidate not in ("", "Z") else 0
        except ValueError:
            continue
    try:
        return "time", now_ns - parse_duration(text)
    except ValueError:
        return "subject", text


class SeekScreen(ModalScreen[Seek | None]):
    """One line to type in."""

    DEFAULT_CSS = """
    SeekScreen { align: center middle; background: $background 60%; }
    SeekScreen #box {
        width: 64; max-width: 100%; height: auto; border: round $primary;
        background: $surface; padding: 1 2;
        border-title-style: bold; border-title-color: $title;
    }
    SeekScreen Input { border: none; height: 1; background: $background; padding: 0 1; }
    SeekScreen Static { margin-top: 1; color: $muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel")]

    def __init__(self, stream: str, ink: Ink) -> None:
        super().__init__()
        self.stream = stream
        self.ink = ink

    def compose(self) -> ComposeResult:
        """The line and what it means."""
        with Vertical(id="box") as box:
            box.border_title = titled(f"Seek in {self.stream}")
            yield Input(
                placeholder="12345  ·  10m  ·  2026-01-31T12:00:00Z  ·  orders.new.>", compact=True
            )
            yield Static("a sequence, a time, how long ago, or a subject; empty: everything")
            yield Static(id="command")

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        what, value = self._parsed(event.value)
        command = words("stream", "get", self.stream, str(value)) if what == "seq" else ""
        self.query_one("#command", Static).update(
            Text(f"$ {command}" if command else f"by {what}", self.ink.muted)
        )

    def _parsed(self, text: str) -> Seek:
        return ("subject", "") if not text.strip() else parse_seek(text, time_ns())

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self.dismiss(self._parsed(event.value))
