"""The application: one snapshot, one ink, a stack of screens, and the poller behind them."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import ClassVar, cast

from textual import on
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, Screen
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.worker import Worker, WorkerError, WorkerState

from jsctl.dashboard.actions.edits import Config, config_of, update_of
from jsctl.dashboard.actions.plans import Run, Target, name_of
from jsctl.dashboard.actions.streams import publish
from jsctl.dashboard.connection.link import Link, failures
from jsctl.dashboard.connection.poller import REFRESH_MAX_S, REFRESH_MIN_S, MakePoller, Poller
from jsctl.dashboard.frame import Frame
from jsctl.dashboard.look.ink import Ink, ink_of
from jsctl.dashboard.look.themes import DEFAULTS, THEMES
from jsctl.dashboard.look.words import clean, short_names
from jsctl.dashboard.model.snapshot import Level, Snapshot, Stream
from jsctl.dashboard.options import DashboardOptions
from jsctl.dashboard.palette_commands import action_entries, place_entries, setting_entries
from jsctl.dashboard.screens.dialogs import ConfirmScreen
from jsctl.dashboard.screens.editing import EditScreen, PublishScreen
from jsctl.dashboard.screens.help import HelpScreen
from jsctl.dashboard.screens.main import MainScreen
from jsctl.dashboard.screens.opening import view_of
from jsctl.dashboard.screens.requests import (
    ActionRequested,
    ContextWanted,
    PublishRequested,
    RaftWatched,
    RowOpened,
    TabWanted,
    ThemeWanted,
)
from jsctl.dashboard.screens.view import View
from jsctl.errors import JsctlError

STEPS_S = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


class PlainBars(ScrollBarRender):
    """Scroll bars made of colour alone, for terminals without block characters."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "]


class Dashboard(App[int]):
    """Without `make_poller` it shows what `show` is given."""

    TITLE = "jsctl dashboard"
    CSS_PATH = "dashboard.tcss"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "freeze", "Freeze", key_display="space", id="freeze"),
        Binding("question_mark", "help", "Help", key_display="?", id="help"),
        Binding("q,ctrl+q", "quit", "Quit", key_display="q", id="quit"),
        Binding("colon", "command_palette", "Palette", show=False, id="palette"),
        Binding("t", "theme", "Theme", show=False, id="theme"),
        Binding("plus", "faster", "Faster", show=False, id="faster"),
        Binding("minus", "slower", "Slower", show=False, id="slower"),
        Binding("ctrl+r", "hurry", "Ask now", show=False, id="hurry"),
    ]

    def __init__(
        self,
        options: DashboardOptions | None = None,
        make_poller: MakePoller | None = None,
        contexts: Callable[[], list[str]] | None = None,
    ) -> None:
        super().__init__()
        self.options = options or DashboardOptions()
        self.make_poller = make_poller
        self.contexts = contexts or list
        self.poller: Poller | None = None
        self.failure: JsctlError | None = None
        self.snapshot = Snapshot()
        self.ink = Ink(glyphs=self.options.glyphs)
        self.frozen = False
        self.tasks: list[str] = []
        self._switched = False
        self._polling: Worker[None] | None = None
        self._plain_refresh_s = self.options.refresh_s
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = self.options.theme
        self.animation_level = "none"
        ScrollBar.renderer = PlainBars if self.options.glyphs.logo == "#" else ScrollBarRender
        if self.options.keymap:
            self.set_keymap(self.options.keymap)

    @property
    def frame(self) -> Frame:
        """What there is to show now."""
        return Frame(
            self.snapshot,
            self.ink,
            frozen=self.frozen,
            read_only=self.options.read_only,
            web=self.options.web,
            refresh_s=self.refresh_s,
            tasks=tuple(self.tasks),
        )

    @property
    def link(self) -> Link | None:
        """The present connection; None until there is one."""
        return self.poller.link if self.poller else None

    @property
    def refresh_s(self) -> float:
        """Seconds between two ticks."""
        return self.poller.refresh_s if self.poller else self._plain_refresh_s

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """What our style sheet needs and foreign themes lack."""
        return DEFAULTS

    def get_default_screen(self) -> Screen[object]:
        """The tabs."""
        return cast("Screen[object]", MainScreen(self))

    def on_mount(self) -> None:
        """Paints first, connects then."""
        self.theme_changed_signal.subscribe(self, lambda _theme: self._new_ink())
        self._new_ink()
        if self.options.glyphs.logo == "#":
            self.add_class("-ascii")
        if self.make_poller is not None:
            self.connect("")

    # Data

    def connect(self, context: str) -> None:
        """Leaves the present connection for that of a context."""
        assert self.make_poller is not None
        self._switched = bool(context)
        try:
            before, self.poller = self.poller, self.make_poller(context, self.show)
        except JsctlError as error:
            self.notify(str(error), title=context, severity="error", markup=False)
            return
        if before is not None:
            before.end()
            self.poller.wants_raft = before.wants_raft
        while isinstance(self.screen, ModalScreen):
            self.pop_screen()  # what it asks was asked about the other cluster
        self.poller.refresh_s = self._plain_refresh_s
        self._polling = self.run_worker(
            self.poller.run(), group="poller", exclusive=True, exit_on_error=False
        )

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A poller ends only when it cannot go on at all."""
        if event.worker.group != "poller" or event.state is not WorkerState.ERROR:
            return
        error = event.worker.error
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, JsctlError) and self._switched and self.poller is not None:
            self.poller.model.note = str(error)
            self.poller.publish()  # or the picture of before would stay
            self.notify(str(error), title="no connection", severity="error", markup=False)
        elif isinstance(error, JsctlError):
            self.failure = error
            self.exit(1)
        elif error is not None:
            raise error

    def show(self, snapshot: Snapshot) -> None:
        """A new snapshot; while frozen it is kept but not shown."""
        self.snapshot = snapshot
        names = [one.name for one in snapshot.servers] or [
            peer.name for one in snapshot.streams for peer in one.peers
        ]
        self.ink = replace(self.ink, names=short_names(names))
        if not self.frozen:
            self.redraw()

    def redraw(self) -> None:
        """Hands the snapshot to the screen that can be seen, behind dialogs too."""
        for screen in reversed(self.screen_stack):
            if isinstance(screen, View):
                screen.receive(self.frame)
                return

    def _new_ink(self) -> None:
        variables = self.theme_variables
        dark = self.current_theme.dark
        ink = ink_of(self.theme, variables, self.options.glyphs, dark=dark)
        self.ink = replace(ink, names=self.ink.names)
        self.redraw()

    def busy(self, task: str, on: bool) -> None:
        """A task that takes its time is named in the top bar until it is done."""
        if on:
            self.tasks.append(task)
        elif task in self.tasks:
            self.tasks.remove(task)
        self.redraw()

    def told(self, level: Level, what: str, who: str, said: str) -> None:
        """The outcome of an action: a toast, an event, and a look at what changed."""
        title = f"{what} {who}"
        if level is Level.BAD:
            self.notify(said, title=title, severity="error", markup=False)
        else:
            self.notify(said, title=title, markup=False)
        if self.poller is not None:
            self.poller.say(level, what, who, said)
            self.poller.hurry()

    # What views and the palette ask for

    @on(RowOpened)
    def _open_row(self, request: RowOpened) -> None:
        view = view_of(request.row, self)
        if view is not None:
            self.push_screen(view)

    @on(TabWanted)
    def _open_tab(self, request: TabWanted) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()
        if isinstance(self.screen, MainScreen):
            self.screen.action_tab(request.name)

    @on(RaftWatched)
    def _watch_raft(self, request: RaftWatched) -> None:
        if self.poller is not None:
            self.poller.wants_raft = request.on
            if request.on:
                self.poller.hurry()

    @on(ContextWanted)
    def _connect_to(self, request: ContextWanted) -> None:
        self.connect(request.name)

    @on(ThemeWanted)
    def _paint_with(self, request: ThemeWanted) -> None:
        self.theme = request.name

    @on(ActionRequested)
    def _start(self, request: ActionRequested) -> None:
        action, target = request.action, request.target
        if action.plan is None:
            if action.name == "edit":
                self.run_worker(self._edit(target), group="edit", exclusive=True)
            elif isinstance(target, Stream):
                self._publish(target, "", "")
            return
        plan = action.plan(target, self.snapshot)

        def answered(choice: str | None) -> None:
            if choice is not None:
                self._perform(action.name, name_of(target), plan.run, choice)

        self.push_screen(ConfirmScreen(plan, self.ink), answered)

    async def _edit(self, target: Target) -> None:
        """Asks for the configuration, then opens the editor with it."""
        link = self.link
        if link is None:
            return
        try:
            before = await config_of(link.manager, target)
        except failures() as error:
            self.told(Level.BAD, "edit", name_of(target), str(error))
            return

        if self.link is not link:
            return

        def edited(after: Config | None) -> None:
            if after is not None:
                self._perform("edit", name_of(target), update_of(target, after), "")

        external = not self.options.web
        self.push_screen(EditScreen(target, before, self.ink, external=external), edited)

    @on(PublishRequested)
    def _publish_like(self, request: PublishRequested) -> None:
        self._publish(request.stream, request.subject, request.body)

    def _publish(self, stream: Stream, subject: str, body: str) -> None:
        """Asks for subject and body, then stores the message."""

        def entered(found: tuple[str, str] | None) -> None:
            if found is None:
                return
            wanted, payload = found

            async def run(link: Link, _choice: str) -> str:
                return await publish(link, wanted, payload)

            self._perform("publish", stream.name, run, "")

        self.push_screen(PublishScreen(stream, self.ink, subject, body), entered)

    def _perform(self, what: str, who: str, run: Run, choice: str) -> None:
        """Does it beside the screen and tells how it went."""
        name = f"{what} {who}"

        async def work() -> None:
            self.busy(name, True)
            try:
                await attempt()
            finally:
                self.busy(name, False)

        async def attempt() -> None:
            if self.link is None:
                self.told(Level.BAD, what, who, "there is no connection")
                return
            try:
                said = await run(self.link, choice)
            except failures() as error:
                self.told(Level.BAD, what, who, str(error))
            else:
                self.told(Level.OK, what, who, said)

        self.run_worker(work(), group="actions", exclusive=False)

    # The end

    async def _shutdown(self) -> None:
        """Connections are closed before the loop ends."""
        if self.poller is not None:
            self.poller.end()
        if self._polling is not None:
            self._polling.cancel()
            with suppress(WorkerError):
                await self._polling.wait()
        await super()._shutdown()

    def _fatal_error(self) -> None:
        """Ends after a bug; the trace that is printed shows no values, which may be secrets."""
        from rich.traceback import Traceback

        self.bell()
        self._exit_renderables.append(Traceback(show_locals=False, width=None))
        self._close_messages_no_wait()

    # Keys

    def action_freeze(self) -> None:
        """Stop the picture; data are still collected."""
        self.frozen = not self.frozen
        self.redraw()

    def action_help(self) -> None:
        """All keys that work here."""
        self.push_screen(HelpScreen.of(self.screen, self.ink))

    def action_theme(self) -> None:
        """The next of our own themes."""
        names = [theme.name for theme in THEMES]
        at = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(at + 1) % len(names)]

    def action_faster(self) -> None:
        """Tick more often."""
        self._pace([one for one in reversed(STEPS_S) if one < self.refresh_s])

    def action_slower(self) -> None:
        """Tick less often."""
        self._pace([one for one in STEPS_S if one > self.refresh_s])

    def _pace(self, steps: list[float]) -> None:
        if steps:
            self._plain_refresh_s = min(max(steps[0], REFRESH_MIN_S), REFRESH_MAX_S)
            if self.poller is not None:
                self.poller.refresh_s = self._plain_refresh_s
            self.redraw()

    def action_hurry(self) -> None:
        """Do not wait for the next tick."""
        if self.poller is not None:
            self.poller.hurry()

    def action_filter(self) -> None:
        """Filter the list that has the focus."""
        if isinstance(self.screen, View):
            self.screen.open_filter()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A dialog has its own keys only."""
        if action in ("freeze", "help", "theme", "filter") and not isinstance(self.screen, View):
            return action == "theme"
        return True

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: places, actions with their command lines, contexts, themes."""
        entries = [*place_entries(self.snapshot)]
        if isinstance(screen, View):
            entries += action_entries(self.frame, screen.target())
        entries += setting_entries(self.contexts(), self.available_themes)
        for one in entries:
            yield _entry(one.title, one.command, partial(self.post_message, one.wanted))
        yield _entry("Freeze the picture", "space", self.action_freeze)
        yield _entry("Help: keys", "?", self.action_help)
        shot = "jsctl dashboard --once -o svg"
        yield _entry("Screenshot", shot, lambda: self.deliver_screenshot())
        yield _entry("Quit", "q", self.exit)


def _entry(title: str, command: str, run: Callable[[], object]) -> SystemCommand:
    """An entry of foreign text: no markup in it, and nothing that a terminal obeys."""
    return SystemCommand(_shown(title), _shown(command), run)


def _shown(text: str) -> str:
    return clean(text).replace("[", "\\[")
