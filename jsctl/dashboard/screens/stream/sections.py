"""The sections of a stream's view that ask the server when they are opened."""

from rich.text import Text
from textual.containers import Vertical

from jsctl.dashboard.connection.link import Link
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.members import member_table
from jsctl.dashboard.look.words import clean
from jsctl.dashboard.model.raft import groups_of
from jsctl.dashboard.model.snapshot import RaftGroup, Snapshot, Stream
from jsctl.dashboard.tables.subjects import SUBJECTS, SubjectRow
from jsctl.dashboard.widgets.grid import Grid
from jsctl.dashboard.widgets.textpane import TextPane
from jsctl.render.reports.stream.screen import stream_screen

SUBJECTS_MAX = 5000


class Section(Vertical):
    """Empty until it is loaded."""

    async def load(self, link: Link, stream: Stream, snapshot: Snapshot, ink: Ink) -> None:
        """Asks for what it shows, and shows it. Raises what asking a server may end in."""
        raise NotImplementedError


class SubjectsSection(Section):
    """The subjects that have most messages."""

    def __init__(self) -> None:
        self.grid: Grid[SubjectRow] = Grid(
            SUBJECTS, lambda row: row.subject, title="Subjects", order="messages", id="subject-grid"
        )
        super().__init__(self.grid, id="subjects-part")

    async def load(self, link: Link, stream: Stream, snapshot: Snapshot, ink: Ink) -> None:
        """Every subject with its count."""
        found = await link.manager.stream_subjects(stream.name)
        rows = [SubjectRow(subject, count) for subject, count in found.items()]
        rows.sort(key=lambda row: (-row.messages, row.subject))
        self.grid.show(rows[:SUBJECTS_MAX], ink)


class ConfigSection(Section):
    """What `jsctl stream info` prints."""

    def __init__(self) -> None:
        self.pane = TextPane("Configuration and state", id="config")
        super().__init__(self.pane, id="config-part")

    async def load(self, link: Link, stream: Stream, snapshot: Snapshot, ink: Ink) -> None:
        """Configuration and state."""
        info = await link.manager.stream_info(stream.name)
        text = "\n".join(clean(line) for line in stream_screen(info).render().split("\n"))
        self.pane.show(Text(text, ink.text))


class RaftSection(Section):
    """The members of the stream's group, as they tell it themselves."""

    def __init__(self) -> None:
        self.pane = TextPane("RAFT group", id="raft")
        super().__init__(self.pane, id="raft-part")

    async def load(self, link: Link, stream: Stream, snapshot: Snapshot, ink: Ink) -> None:
        """One line a member; without the system account the reason why there are none."""
        if link.system is None:
            self.pane.show(Text(snapshot.note, ink.muted))
            return
        down = frozenset(one.name for one in snapshot.servers if not one.up)
        group = await find_group(link, stream, down)
        if group is None:
            self.pane.show(Text("no server tells about this group", ink.muted))
            return
        self.pane.show(member_table(group, ink, self.pane.size.width - 4))


async def find_group(link: Link, stream: Stream, down: frozenset[str]) -> RaftGroup | None:
    """What the members of a stream's group say now; servers that are `down` say nothing."""
    asked = {"account": stream.account, "group": stream.group}
    told = await link.ask_servers("RAFTZ", asked, slow=True)
    found = groups_of(told, {stream.group: stream.name}, down)
    return next((one for one in found if one.name == stream.group), None)
