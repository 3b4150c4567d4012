"""Editing a configuration, with the difference before it is sent; publishing a message."""

import json
from difflib import unified_diff
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static, TextArea

from jsctl.api.codec import DecodeError, decode, encode
from jsctl.api.jsontext import of_people
from jsctl.dashboard.actions.edits import Config, edit_command
from jsctl.dashboard.actions.plans import Target, name_of, words
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, titled
from jsctl.dashboard.model.snapshot import Stream


class EditScreen(ModalScreen[Config | None]):
    """The configuration as JSON; the difference and the command line follow what is typed."""

    DEFAULT_CSS = """
    EditScreen { align: center middle; background: $background 60%; }
    EditScreen #box {
        width: 100; max-width: 100%; height: 90%; border: round $warning;
        background: $surface; padding: 0 2;
        border-title-style: bold; border-title-color: $warning;
    }
    EditScreen TextArea { height: 2fr; border: none; background: $background; padding: 0; }
    EditScreen VerticalScroll { height: 1fr; margin-top: 1; }
    EditScreen #command { background: $background; padding: 0 1; margin-top: 1; color: $muted; }
    EditScreen Horizontal { height: 2; align-horizontal: right; margin-top: 1; }
    EditScreen Button {
        border: none; height: 1; min-width: 16; margin-left: 3;
        background: $surface; color: $foreground; text-style: bold;
    }
    EditScreen Button:focus { background: $primary; color: $on-accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel"),
        Binding("ctrl+s", "apply", "Apply"),
        Binding("ctrl+e", "external", "Editor", priority=True),  # else the text takes it
    ]

    def __init__(self, target: Target, before: Config, ink: Ink, *, external: bool = True) -> None:
        """`external` says whether this machine's $EDITOR is the operator's."""
        super().__init__()
        self.external = external
        self.target = target
        self.before = before
        self.ink = ink
        self.after: Config | None = None

    def compose(self) -> ComposeResult:
        """Editor, difference, command line, buttons."""
        with Vertical(id="box") as box:
            box.border_title = titled(f"Edit {name_of(self.target)}")
            box.border_subtitle = "ctrl+s apply   ctrl+e $EDITOR   esc cancel"
            yield TextArea(as_text(self.before), language=None, tab_behavior="focus", compact=True)
            with VerticalScroll():
                yield Static(id="difference")
            yield Static(id="command")
            with Horizontal():
                yield Button("Cancel  esc", id="cancel", compact=True)
                yield Button("Apply  ctrl+s", id="apply", compact=True)

    def on_mount(self) -> None:
        """The keys go to the text."""
        self.query_one(TextArea).focus()
        self._compare()

    @on(TextArea.Changed)
    def _compare(self) -> None:
        text = self.query_one(TextArea).text
        self.after, shown = None, Text()
        try:
            found = decode(type(self.before), of_people(text), strict=True)
        except (DecodeError, ValueError) as error:
            shown = Text(clean(str(error)), self.ink.palette.bad)
        else:
            if found == self.before:
                shown = Text("nothing changed", self.ink.muted)
            else:
                self.after = found
                shown = difference(self.before, found, self.ink)
        self.query_one("#difference", Static).update(shown)
        command = edit_command(self.target, self.before, self.after or self.before)
        self.query_one("#command", Static).update(Text(f"$ {clean(command)}", self.ink.muted))
        self.query_one("#apply", Button).disabled = self.after is None

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "apply":
            self.action_apply()
        else:
            self.dismiss(None)

    def action_apply(self) -> None:
        """Sends it, if it changed and can be read."""
        if self.after is not None:
            self.dismiss(self.after)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Behind a browser there is no editor of the operator."""
        return action != "external" or self.external

    def action_external(self) -> None:
        """The text in $EDITOR."""
        import os
        import shlex
        import subprocess
        import tempfile
        from pathlib import Path

        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if not editor:
            self.notify("set EDITOR to edit outside", severity="warning")
            return
        area = self.query_one(TextArea)
        try:
            with tempfile.TemporaryDirectory(prefix="jsctl-") as directory:
                path = Path(directory) / "config.json"
                path.write_text(area.text, encoding="utf-8")
                with self.app.suspend():
                    subprocess.run([*shlex.split(editor), str(path)], check=False)
                area.text = path.read_text(encoding="utf-8")
        except (OSError, ValueError, SuspendNotSupported) as error:
            self.notify(clean(f"{editor}: {error}"), severity="error", markup=False)


def as_text(config: Config) -> str:
    """A configuration as people edit it."""
    return json.dumps(encode(config), indent=2, ensure_ascii=False)


def difference(before: Config, after: Config, ink: Ink) -> Text:
    """Changed lines with their signs."""
    text = Text()
    lines = unified_diff(as_text(before).split("\n"), as_text(after).split("\n"), n=0, lineterm="")
    colours = {"+": ink.palette.ok, "-": ink.palette.bad}
    for line in lines:
        if line.startswith(("+++", "---", "@@")):
            continue
        text.append(clean(line) + "\n", colours.get(line[:1], ink.muted))
    text.rstrip()
    return text


class PublishScreen(ModalScreen[tuple[str, str] | None]):
    """Subject and body; gives both."""

    DEFAULT_CSS = """
    PublishScreen { align: center middle; background: $background 60%; }
    PublishScreen #box {
        width: 76; max-width: 100%; height: auto; border: round $warning;
        background: $surface; padding: 1 2 0 2;
        border-title-style: bold; border-title-color: $warning;
    }
    PublishScreen Input { border: none; height: 1; padding: 0 1; background: $background; }
    PublishScreen TextArea { border: none; height: 8; margin: 1 0; background: $background; }
    PublishScreen #command { background: $background; padding: 0 1; margin-bottom: 1; }
    PublishScreen Horizontal { height: auto; align-horizontal: right; }
    PublishScreen Button {
        border: none; height: 1; min-width: 16; margin: 0 0 1 3;
        background: $surface; color: $foreground; text-style: bold;
    }
    PublishScreen Button:focus { background: $primary; color: $on-accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel"),
        Binding("ctrl+s", "send", "Publish"),
    ]

    def __init__(self, stream: Stream, ink: Ink, subject: str, body: str) -> None:
        super().__init__()
        self.stream, self.ink = stream, ink
        self.subject, self.body = subject, body

    def compose(self) -> ComposeResult:
        """Fields, command line, buttons."""
        with Vertical(id="box") as box:
            box.border_title = titled(f"Publish to {self.stream.name}")
            hint = clean(", ".join(self.stream.subjects))
            yield Input(self.subject, placeholder=f"subject, of {hint}", id="subject", compact=True)
            yield TextArea(self.body, id="body", compact=True)
            yield Static(id="command")
            with Horizontal():
                yield Button("Cancel  esc", id="cancel", compact=True)
                yield Button("Publish  ctrl+s", id="send", compact=True)

    def on_mount(self) -> None:
        """The subject comes first."""
        self.query_one("#subject").focus()
        self._changed()

    @property
    def ready(self) -> bool:
        """Whether the subject can be published to."""
        subject = self.query_one("#subject", Input).value
        tokens = subject.split(".")
        wild = "*" in tokens or ">" in tokens
        return bool(subject) and "" not in tokens and " " not in subject and not wild

    @on(Input.Changed)
    @on(TextArea.Changed)
    def _changed(self) -> None:
        subject = self.query_one("#subject", Input).value or "SUBJECT"
        body = self.query_one("#body", TextArea).text
        command = words("publish", subject, body, "--jetstream")
        text = Text(f"$ {clean(command)}", self.ink.muted, no_wrap=True, overflow="ellipsis")
        self.query_one("#command", Static).update(text)
        self.query_one("#send", Button).disabled = not self.ready

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "send":
            self.action_send()
        else:
            self.dismiss(None)

    def action_send(self) -> None:
        """Publishes, if the subject will do."""
        if self.ready:
            body = self.query_one("#body", TextArea).text
            self.dismiss((self.query_one("#subject", Input).value, body))
