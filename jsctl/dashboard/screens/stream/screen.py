"""One stream: state, group, consumers, and its messages as they come in."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import ContentSwitcher

from jsctl.dashboard.actions.catalog import action_named
from jsctl.dashboard.actions.plans import Target, words
from jsctl.dashboard.connection.link import failures
from jsctl.dashboard.connection.peek import PAGE, Peek
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.payload import FORMS, form_of, whole
from jsctl.dashboard.look.words import clean, short, titled
from jsctl.dashboard.model.message import StoredMessage
from jsctl.dashboard.model.snapshot import Consumer, Kind, Snapshot, Stream
from jsctl.dashboard.screens.host import Host
from jsctl.dashboard.screens.requests import PublishRequested
from jsctl.dashboard.screens.seeking import SeekScreen
from jsctl.dashboard.screens.stream.lines import group_lines, state_lines
from jsctl.dashboard.screens.stream.sections import (
    ConfigSection,
    RaftSection,
    Section,
    SubjectsSection,
)
from jsctl.dashboard.screens.view import View, as_target
from jsctl.dashboard.tables.consumers import CONSUMERS_OF_ONE, CONSUMERS_WIDE
from jsctl.dashboard.tables.messages import MESSAGES
from jsctl.dashboard.tables.subjects import SubjectRow
from jsctl.dashboard.widgets.bars import Tab, TabBar
from jsctl.dashboard.widgets.grid import Grid
from jsctl.dashboard.widgets.panels import Panel
from jsctl.dashboard.widgets.textpane import TextPane
from jsctl.render.humanize import number

FOLLOW_S = 0.5
KEPT_MAX = 500
"""Older messages leave the list."""
TABS = tuple(
    Tab("", title, f"screen.part('{name}')", name)
    for title, name in (
        ("Messages", "messages"),
        ("Consumers", "consumers-part"),
        ("Subjects", "subjects-part"),
        ("Config", "config-part"),
        ("RAFT", "raft-part"),
    )
)


class StreamScreen(View):
    """`key` is that of the stream in snapshots."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", key_display="esc"),
        Binding("f", "follow", "Follow", id="follow"),
        Binding("i", "seek", "Seek", id="seek"),
        Binding("v", "form", "Format", show=False, id="format"),
        Binding("left_square_bracket", "older", "Older", show=False, id="older"),
        Binding("tab", "app.focus_next", "Next", show=False),
        *(
            Binding(str(at), tab.action, tab.title, show=False, id=f"part-{at}")
            for at, tab in enumerate(TABS, 1)
        ),
    ]

    def __init__(self, host: Host, key: str) -> None:
        super().__init__(host)
        self.key = key
        self.account, _, self.stream_name = key.partition("/")
        self.follow = True
        self.form = FORMS[0]
        self.subject = ">"
        self.messages: list[StoredMessage] = []
        self.problem = ""
        self._again: Callable[[], None] | None = None
        """A read that failed; it is tried until it succeeds or another one is wanted."""

    @property
    def stream(self) -> Stream:
        """As the snapshot has it, or a husk once it is gone."""
        return self.snapshot.stream(self.key) or Stream(self.account, self.stream_name)

    def body(self) -> ComposeResult:
        """Left what is always there, right what was chosen."""
        yield TabBar(TABS, "messages")
        with Horizontal(id="stream-body"):
            with Vertical(id="stream-left"):
                yield Panel("State", partial(state_lines, self.key), id="state")
                yield Panel("RAFT group", partial(group_lines, self.key), id="group")
                yield Grid(
                    CONSUMERS_OF_ONE,
                    lambda row: row.key,
                    title="Consumers",
                    order="",
                    id="stream-consumers",
                )
            with ContentSwitcher(initial="messages", id="stream-right"):
                with Vertical(id="messages"):
                    yield Grid(
                        MESSAGES,
                        lambda row: str(row.seq),
                        title="Messages",
                        searched=lambda row: f"{row.subject} {row.data[:4096]!r}",
                        order="",
                        follow=True,
                        id="message-grid",
                    )
                    yield TextPane("Message", id="message")
                with Vertical(id="consumers-part"):
                    yield Grid(
                        CONSUMERS_WIDE,
                        lambda row: row.key,
                        title="Consumers",
                        id="all-of-stream",
                    )
                yield SubjectsSection()
                yield ConfigSection()
                yield RaftSection()

    def on_mount(self) -> None:
        """Starts to read."""
        super().on_mount()
        self.query_one("#message-grid", Grid).focus()
        self.set_interval(FOLLOW_S, self._read_on)
        if self.stream.kind is Kind.OBJECTS:
            self.subject = f"$O.{self.stream_name.removeprefix('OBJ_')}.M.>"
        self._read(newest=True)
        if self.stream.kind is Kind.BUCKET:
            self.action_part("subjects-part")

    def draw(self, snapshot: Snapshot, ink: Ink) -> None:
        """Everything that the snapshot has."""
        stream = self.stream
        crumbs = Text(f" Streams {ink.glyphs.crumb} ", ink.muted)
        crumbs.append(f"{ink.glyphs.level(stream.level)} ", ink.level(stream.level))
        crumbs.append(f"{clean(stream.name)}  ", f"bold {ink.text}")
        self.query_one(TabBar).show(ink, crumbs)
        for panel in self.query(Panel):
            panel.show(snapshot, ink)
        self.query_one("#group", Panel).border_title = titled(
            f"RAFT group {stream.group}" if stream.group else "RAFT group"
        )
        consumers = snapshot.consumers_of(stream)
        self.query_one("#stream-consumers", Grid).show(consumers, ink)
        self.query_one("#all-of-stream", Grid).show(consumers, ink)
        self._draw_messages(ink)

    def _draw_messages(self, ink: Ink) -> None:
        grid = self.query_one("#message-grid", Grid)
        grid.title = f"Messages {ink.glyphs.ok} live" if self.follow else "Messages"
        grid.show(self.messages, ink)
        total = short(self.stream.messages)
        shown = f"filter: {self.subject}   {len(self.messages)} of {total}"
        grid.border_subtitle = titled(self.problem or shown)
        self._draw_message(ink)

    def _draw_message(self, ink: Ink) -> None:
        message = self.query_one("#message-grid", Grid).current
        pane = self.query_one("#message", TextPane)
        if message is None:
            pane.border_title = "Message"
            empty = "no messages" if self.host.frame.snapshot.jetstream else self.snapshot.note
            pane.show(Text(clean(self.problem or empty), ink.muted))
            return
        pane.border_title = f"Message #{number(message.seq)}"
        pane.border_subtitle = f"{form_of(message.data, self.form)} {ink.glyphs.sort}"
        pane.show(whole(message, self.form, ink))

    def target(self) -> Target | None:
        """A consumer under the cursor, else the stream."""
        grid = self.focused
        if isinstance(grid, Grid) and isinstance(grid.current, Consumer):
            return as_target(grid.current)
        return self.stream

    # Reading

    def _peek(self) -> Peek | None:
        link = self.host.link
        if link is None or not link.jetstream or not link.connected:
            return None
        if self.account != link.account:
            return None
        return Peek(link.manager, self.stream_name, self.subject)

    def _read(self, *, newest: bool = False, seq: int = 0, before: int = 0) -> None:
        again = partial(self._read, newest=newest, seq=seq, before=before)

        async def work() -> None:
            self._again = again
            peek = self._peek()
            if peek is None:
                self._failed("messages can be read with a connection of their account only")
                return
            try:
                state = (await peek.manager.stream_info(self.stream_name)).state
                if before:
                    found = await peek.before(state.first_seq, before)
                    self.messages = [*found, *self.messages]
                elif newest:
                    self.messages = await peek.newest(state.first_seq, state.last_seq)
                else:
                    self.messages = await peek.page(seq)
                    self.query_one("#message-grid", Grid).select_first()
                self.problem = ""
                self._again = None
            except failures() as error:
                self._failed(str(error))
            self._draw_messages(self.ink)

        self.run_worker(work(), group="read", exclusive=True)

    def _failed(self, said: str) -> None:
        self.problem = said
        self._draw_messages(self.ink)

    def _read_on(self) -> None:
        if self.host.frame.frozen or not self.is_current or self._peek() is None:
            return
        if any(one.group == "read" and one.is_running for one in self.workers):
            return
        if self._again is not None:
            self._again()
        elif self.follow:
            self.run_worker(self._read_newer(), group="read", exclusive=True)

    async def _read_newer(self) -> None:
        peek = self._peek()
        if peek is None:
            return
        last = self.messages[-1].seq if self.messages else 0
        try:
            state = (await peek.manager.stream_info(self.stream_name)).state
            if state.last_seq == last:
                return
            if state.last_seq < last:  # it was made anew
                self.messages, last = [], 0
            if state.last_seq - last > PAGE:
                found = await peek.newest(state.first_seq, state.last_seq)
            else:
                found = await peek.page(last + 1)
        except failures():
            return
        # Where others come in between, the last ones of a subject may be known.
        found = [one for one in found if one.seq > last]
        if found:
            self.messages = [*self.messages, *found][-KEPT_MAX:]
            self._draw_messages(self.ink)

    @on(Grid.Moved, "#message-grid")
    def _message_moved(self) -> None:
        grid = self.query_one("#message-grid", Grid)
        if self.follow and not grid.follow and self.is_mounted:
            self.follow = False
        self._draw_message(self.ink)

    @on(Grid.Opened, "#message-grid")
    def _message_opened(self, event: Grid.Opened) -> None:
        event.stop()
        event.prevent_default()
        self.query_one("#message").focus()

    @on(Grid.Opened, "#subject-grid")
    def _subject_opened(self, event: Grid.Opened) -> None:
        event.stop()
        event.prevent_default()
        if isinstance(event.row, SubjectRow):
            self.seek_subject(event.row.subject)
            self.action_part("messages")

    # Keys

    def action_back(self) -> None:
        """The screen before."""
        self.run_worker(self.key_escape(), group="back")

    def action_follow(self) -> None:
        """New messages come in by themselves, or the list stands still."""
        self.follow = not self.follow
        grid = self.query_one("#message-grid", Grid)
        grid.follow = self.follow
        if self.follow:
            self._read(newest=True)
        self._draw_messages(self.ink)

    def action_form(self) -> None:
        """Show payloads in the next form."""
        self.form = FORMS[(FORMS.index(self.form) + 1) % len(FORMS)]
        self._draw_message(self.ink)

    def action_older(self) -> None:
        """Messages before the first one shown."""
        if self.messages:
            self._stand_still()
            self._read(before=self.messages[0].seq)

    def action_seek(self) -> None:
        """Asks for a sequence, a time or a subject."""
        self.app.push_screen(SeekScreen(self.stream_name, self.ink), self._seek)

    def _seek(self, wanted: tuple[str, int | str] | None) -> None:
        if wanted is None:
            return
        what, value = wanted
        if what == "subject":
            self.seek_subject(str(value))
            return
        self._stand_still()
        if what == "seq":
            self._read(seq=int(value))
        else:
            self.run_worker(self._seek_time(int(value)), group="seek", exclusive=True)

    def seek_subject(self, subject: str) -> None:
        """Only messages of a subject, the newest of them."""
        self.subject = subject or ">"
        self.messages = []
        self._read(newest=True)

    async def _seek_time(self, time_ns: int) -> None:
        peek = self._peek()
        if peek is None:
            return
        try:
            state = (await peek.manager.stream_info(self.stream_name)).state
            seq = await peek.at_time(state.first_seq, state.last_seq, time_ns)
        except failures() as error:
            self._failed(str(error))
            return
        self._read(seq=seq)

    def _stand_still(self) -> None:
        self.follow = False
        self.query_one("#message-grid", Grid).follow = False

    def action_act(self, name: str) -> None:
        """Publishing starts from the message under the cursor."""
        grid = self.query_one("#message-grid", Grid)
        message = grid.current
        if name != "publish" or self.focused is not grid or message is None:
            super().action_act(name)
        elif self.can(action_named(name)):
            body = message.data.decode("utf-8", "replace")
            self.post_message(PublishRequested(self.stream, message.subject, body))

    def action_copy(self) -> None:
        """The command line that shows the message."""
        grid = self.query_one("#message-grid", Grid)
        message = grid.current
        if self.focused is not grid or message is None:
            super().action_copy()
            return
        command = words("stream", "get", self.stream_name, str(message.seq))
        self.app.copy_to_clipboard(command)
        self.notify(command, title="copied", markup=False)

    def action_part(self, name: str) -> None:
        """Another part at the right."""
        self.query_one("#stream-right", ContentSwitcher).current = name
        self.query_one(TabBar).activate(name)
        part = self.query_one(f"#{name}")
        first = [one for one in part.walk_children(Widget) if one.can_focus]
        if first:
            first[0].focus()
        if isinstance(part, Section):
            self.run_worker(self._load(part), group="part", exclusive=True)

    async def _load(self, section: Section) -> None:
        link = self.host.link
        if link is None:
            return
        try:
            await section.load(link, self.stream, self.snapshot, self.ink)
        except failures() as error:
            self.notify(clean(str(error)), severity="error", markup=False)
