"""The dialog of an action: effects, command line, and as much confirmation as is at stake."""

from typing import ClassVar

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from jsctl.dashboard.actions.plans import Plan, Tier
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean
from jsctl.dashboard.model.snapshot import Level


class Choices(Widget, can_focus=True):
    """Words beside each other, one of them chosen with the arrows."""

    DEFAULT_CSS = "Choices { height: 1; width: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h,shift+tab,up", "step(-1)", "Before", show=False),
        Binding("right,l,down", "step(1)", "After", show=False),
    ]

    class Changed(Message):
        """Another word is chosen."""

    def __init__(self, words: tuple[str, ...], at: int, ink: Ink) -> None:
        super().__init__()
        self.words, self.at, self.ink = words, at, ink
        self._spans: list[tuple[int, int]] = []

    @property
    def word(self) -> str:
        """The chosen one."""
        return self.words[self.at]

    def render(self) -> Text:
        """One line."""
        line = Text("‹ " if self.ink.glyphs.logo != "#" else "< ", self.ink.muted, no_wrap=True)
        self._spans.clear()
        for at, word in enumerate(self.words):
            start = line.cell_len
            if at == self.at:
                back = self.ink.palette.warn if self.has_focus else self.ink.palette.track
                front = self.ink.palette.on_accent if self.has_focus else self.ink.palette.warn
                line.append(f" {clean(word)} ", f"bold {front} on {back}")
            else:
                line.append(f" {clean(word)} ", self.ink.muted)
            self._spans.append((start, line.cell_len))
        line.append(" ›" if self.ink.glyphs.logo != "#" else " >", self.ink.muted)
        return line

    def action_step(self, by: int) -> None:
        """The word beside."""
        self._choose((self.at + by) % len(self.words))

    def _choose(self, at: int) -> None:
        self.at = at
        self.refresh()
        self.post_message(self.Changed())

    def on_click(self, event: events.Click) -> None:
        """The word under the mouse."""
        for at, (start, end) in enumerate(self._spans):
            if start <= event.x < end:
                self._choose(at)


class ConfirmScreen(ModalScreen[str | None]):
    """Gives the choice made, or None when it was cancelled."""

    DEFAULT_CSS = """
    ConfirmScreen { align: center middle; background: $background 60%; }
    ConfirmScreen #box {
        width: 68; max-width: 100%; height: auto; max-height: 100%;
        border: round $warning; background: $surface; padding: 1 2 0 2;
        border-title-style: bold; border-title-color: $warning;
    }
    ConfirmScreen #box.-typed { border: round $error; border-title-color: $error; }
    ConfirmScreen #box.-yes { border: round $primary; border-title-color: $primary; }
    ConfirmScreen Static, ConfirmScreen Choices { margin-bottom: 1; }
    ConfirmScreen Input {
        border: none; height: 1; padding: 0 1; margin-bottom: 1; background: $background;
    }
    ConfirmScreen #command { background: $background; padding: 0 1; }
    ConfirmScreen Horizontal { height: auto; align-horizontal: right; }
    ConfirmScreen Button {
        border: none; height: 1; min-width: 16; margin: 0 0 1 3;
        background: $surface; color: $foreground; text-style: bold;
    }
    ConfirmScreen Button:focus { background: $primary; color: $on-accent; text-style: bold; }
    ConfirmScreen #do.-danger:focus { background: $error; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel"),
        Binding("left,up", "choose(-1)", "Before", show=False),
        Binding("right,down", "choose(1)", "After", show=False),
        Binding("y", "yes", "Yes", show=False),
        Binding("n", "no", "No", show=False),
    ]

    def __init__(self, plan: Plan, ink: Ink) -> None:
        super().__init__()
        self.plan = plan
        self.ink = ink
        self.other = ""

    @property
    def choice(self) -> str:
        """What was chosen, or entered instead."""
        if self.other:
            return self.other
        return self.query_one(Choices).word if self.plan.choices else ""

    def compose(self) -> ComposeResult:
        """Headline, choices, effects, warning, confirmation, command line, buttons."""
        plan, ink = self.plan, self.ink
        classes = {Tier.TYPED: "-typed", Tier.YES_NO: "-yes"}.get(plan.tier, "")
        with Vertical(id="box", classes=classes) as box:
            glyph = getattr(ink.glyphs, plan.mark)
            box.border_title = f"{glyph} {plan.title}"
            yield Static(Text(clean(plan.headline), f"bold {ink.palette.text}"))
            if plan.choices:
                yield Choices(plan.choices, plan.choice, ink)
            if plan.free:
                yield Input(placeholder=plan.free, id="other", compact=True)
            yield Static(id="effects")
            if plan.warning:
                text = Text(f"{ink.glyphs.warn} ", ink.palette.warn)
                text.append(clean(plan.warning), ink.palette.text)
                if plan.safer:
                    text.append(f"\n{clean(plan.safer)}", ink.palette.muted)
                yield Static(text)
            if plan.tier is Tier.TYPED:
                yield Input(id="typed", compact=True)
            yield Static(id="command")
            with Horizontal():
                yield Button("Cancel  esc", id="cancel", compact=True)
                key = "" if plan.tier is Tier.TYPED else "  y"
                yield Button(f"{plan.button}{key}", id="do", classes="-danger", compact=True)

    def on_mount(self) -> None:
        """Cancel has the focus, or the name that has to be typed."""
        self._update()
        typed = self.plan.tier is Tier.TYPED
        self.query_one("#typed" if typed else "#cancel").focus()

    def _update(self) -> None:
        plan, choice = self.plan, self.choice
        problem = plan.check(choice) if self.other else ""
        if not problem:
            self.query_one("#effects", Static).update(self._effects(choice))
            self.query_one("#command", Static).update(self._command(choice))
        else:
            self.query_one("#effects", Static).update(Text(problem, self.ink.palette.bad))
        ready = not problem
        if plan.tier is Tier.TYPED:
            field = self.query_one("#typed", Input)
            field.placeholder = f"type  {clean(plan.typed(choice))}  to confirm"
            ready = ready and field.value == plan.typed(choice)
        self.query_one("#do", Button).disabled = not ready

    def _effects(self, choice: str) -> Text:
        text = Text()
        found = self.plan.effects(choice)
        room = max((len(one.label) for one in found), default=0)
        for one in found:
            level = self.ink.level(one.level) if one.level > Level.OK else self.ink.palette.text
            text.append(f"  {one.label:<{room}}  ", self.ink.palette.muted)
            text.append(self.ink.glyphs.plain(clean(one.value)), level)
            text.append(f"  {clean(one.note)}\n" if one.note else "\n", self.ink.palette.muted)
        text.rstrip()
        return text

    def _command(self, choice: str) -> Text:
        return Text(f"$ {clean(self.plan.command(choice))}", self.ink.palette.muted)

    @on(Choices.Changed)
    def _chosen(self) -> None:
        self.other = ""
        if self.plan.free:
            self.query_one("#other", Input).value = ""
        self._update()

    @on(Input.Changed)
    def _entered(self, event: Input.Changed) -> None:
        if event.input.id == "other":
            self.other = event.value.strip()
        self._update()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.action_do()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "do":
            self.action_do()
        else:
            self.dismiss(None)

    def action_do(self) -> None:
        """Confirms, if everything that is asked for is there."""
        if not self.query_one("#do", Button).disabled:
            self.dismiss(self.choice)

    def action_cancel(self) -> None:
        """Nothing happens."""
        self.dismiss(None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Where a name is asked for, y is a letter."""
        if action in ("yes", "no") and isinstance(self.focused, Input):
            return False
        return not (action == "yes" and self.plan.tier is Tier.TYPED)

    def action_choose(self, by: int) -> None:
        """Another choice, wherever the focus is."""
        if self.plan.choices:
            self.query_one(Choices).action_step(by)

    def action_yes(self) -> None:
        """The same as the button."""
        self.action_do()

    def action_no(self) -> None:
        """The same as esc."""
        self.dismiss(None)
