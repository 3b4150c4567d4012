"""One raft group: what each of its members says."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from jsctl.dashboard.actions.plans import Target
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.members import member_table
from jsctl.dashboard.look.words import clean
from jsctl.dashboard.model.raft import META
from jsctl.dashboard.model.snapshot import RaftGroup, Snapshot
from jsctl.dashboard.screens.host import Host
from jsctl.dashboard.screens.view import View
from jsctl.dashboard.widgets.bars import Tab, TabBar
from jsctl.dashboard.widgets.textpane import TextPane


class GroupScreen(View):
    """`key` is that of the group in snapshots."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", key_display="esc"),
    ]

    def __init__(self, host: Host, key: str) -> None:
        super().__init__(host)
        self.key = key

    @property
    def group(self) -> RaftGroup | None:
        """As the snapshot has it."""
        return next((one for one in self.snapshot.groups if one.key == self.key), None)

    def body(self) -> ComposeResult:
        """A table."""
        yield TabBar((Tab("", "Members", "", "members"),), "members")
        yield TextPane("Members", id="members")

    def draw(self, snapshot: Snapshot, ink: Ink) -> None:
        """What the members say."""
        group = self.group
        crumbs = Text(f" RAFT {ink.glyphs.crumb} ", ink.muted)
        crumbs.append(clean(self.key.rpartition("/")[2]) + "  ", f"bold {ink.text}")
        self.query_one(TabBar).show(ink, crumbs)
        pane = self.query_one(TextPane)
        if group is None:
            pane.show(Text("this group is gone", ink.muted))
            return
        pane.show(member_table(group, ink, max(40, pane.size.width - 4)))

    def target(self) -> Target | None:
        """What the group belongs to."""
        group = self.group
        if group is None:
            return None
        if group.name == META:
            return self.snapshot.server(self.snapshot.meta.leader)
        stream, _, consumer = group.asset.partition(" > ")
        if consumer:
            return self.snapshot.consumer(f"{group.account}/{stream}/{consumer}")
        return self.snapshot.stream(f"{group.account}/{stream}")

    def action_back(self) -> None:
        """The screen before."""
        self.dismiss(None)
