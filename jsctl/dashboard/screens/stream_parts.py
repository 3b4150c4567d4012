"""The parts of a stream's view that are asked for when they are opened."""

from typing import TYPE_CHECKING

from rich.text import Text

from jsctl.client.manager import Manager
from jsctl.dashboard.connection.link import failures
from jsctl.dashboard.look.words import clean
from jsctl.dashboard.model.snapshot import RaftGroup
from jsctl.dashboard.screens.group import member_table
from jsctl.dashboard.screens.tables_detail import SubjectRow
from jsctl.dashboard.widgets.grid import Grid
from jsctl.dashboard.widgets.textpane import TextPane
from jsctl.render.reports.stream_info import stream_screen

if TYPE_CHECKING:
    from jsctl.dashboard.screens.stream import StreamScreen

SUBJECTS_MAX = 5000


async def load_part(screen: "StreamScreen", name: str) -> None:
    """Asks for what a part shows, and shows it or the reason why not."""
    poller = screen.dashboard.poller
    manager = poller.link.manager if poller else None
    try:
        if name == "raft-part":
            await _raft(screen)
        elif manager is not None:
            await (_subjects if name == "subjects-part" else _config)(screen, manager)
    except failures() as error:
        screen.notify(clean(str(error)), severity="error", markup=False)


async def _subjects(screen: "StreamScreen", manager: Manager) -> None:
    found = await manager.stream_subjects(screen.stream_name)
    rows = [SubjectRow(subject, count) for subject, count in found.items()]
    rows.sort(key=lambda row: (-row.messages, row.subject))
    grid = screen.query_one("#subject-grid", Grid)
    grid.show(rows[:SUBJECTS_MAX], screen.ink)


async def _config(screen: "StreamScreen", manager: Manager) -> None:
    info = await manager.stream_info(screen.stream_name)
    text = "\n".join(clean(line) for line in stream_screen(info).render().split("\n"))
    screen.query_one("#config", TextPane).show(Text(text, screen.ink.text))


async def _raft(screen: "StreamScreen") -> None:
    poller = screen.dashboard.poller
    if poller is None:
        return
    pane = screen.query_one("#raft", TextPane)
    if poller.link.system is None:
        pane.show(Text(screen.snapshot.note, screen.ink.muted))
        return
    group = await find_group(screen, screen.stream.group)
    if group is None:
        pane.show(Text("no server tells about this group", screen.ink.muted))
        return
    pane.show(member_table(group, screen.ink, pane.size.width - 4))


async def find_group(screen: "StreamScreen", name: str) -> RaftGroup | None:
    """What the members of a group say now."""
    poller = screen.dashboard.poller
    assert poller is not None
    asked = {"account": screen.account, "group": name}
    told = await poller.link.ask_servers("RAFTZ", asked, slow=True)
    from jsctl.dashboard.model.raft import groups_of

    found = groups_of(told, {name: screen.stream_name}, poller.model.down())
    return next((one for one in found if one.name == name), None)
