"""All keys that work where the focus is, with the ids that a keymap uses."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from jsctl.dashboard.look.ink import Ink

LEGEND = (
    ("ok", "well, in sync"),
    ("note", "worth knowing: paused, sealed"),
    ("warn", "behind, or close to a limit"),
    ("bad", "offline, no leader, no quorum, data lost"),
    ("leader", "leads its group"),
    ("mirror", "a mirror of another stream"),
)


class HelpScreen(ModalScreen[None]):
    """Any of esc, q and ? closes it."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen VerticalScroll {
        width: 76; max-width: 100%; height: auto; max-height: 90%;
        border: round $primary; background: $surface; padding: 1 2;
        border-title-color: $title; border-title-style: bold;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss(None)", "Close", show=False)
    ]

    def __init__(self, rows: list[tuple[str, str, str]], ink: Ink) -> None:
        super().__init__()
        self.rows = rows
        self.ink = ink

    @classmethod
    def of(cls, screen: Screen[object], ink: Ink) -> "HelpScreen":
        """For the keys of a screen now."""
        rows: list[tuple[str, str, str]] = []
        for key, active in screen.active_bindings.items():
            binding = active.binding
            if binding.id and binding.description and active.enabled and not binding.system:
                shown = screen.app.get_key_display(binding) if key else key
                rows.append((shown, binding.description, binding.id or ""))
        merged: dict[tuple[str, str], list[str]] = {}
        for key, what, name in dict.fromkeys(rows):
            merged.setdefault((what, name), []).append(key)
        found = [(" ".join(keys), what, name) for (what, name), keys in merged.items()]
        return cls(found, ink)

    def compose(self) -> ComposeResult:
        """Keys, then what the marks mean."""
        ink = self.ink
        text = Text()
        for key, what, name in self.rows:
            text.append(f"{key:>12}  ", f"bold {ink.palette.star}")
            text.append(f"{what:<22}", ink.palette.text)
            text.append(f"{name}\n", ink.palette.muted)
        text.append("\n")
        for role, what in LEGEND:
            colours = {"leader": "star", "mirror": "accent", "note": "accent"}
            colour = getattr(ink.palette, colours.get(role, role))
            text.append(f"{getattr(ink.glyphs, role):>12}  ", colour)
            text.append(f"{what}\n", ink.palette.text)
        text.rstrip()
        with VerticalScroll() as box:
            box.border_title = "Keys here"
            yield Static(text)
