"""One raft group: what each of its members says."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from jsctl.dashboard.actions.plans import Target
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, short_bytes, short_time
from jsctl.dashboard.model.raft import META
from jsctl.dashboard.model.snapshot import Level, RaftGroup, Snapshot
from jsctl.dashboard.screens.view import View
from jsctl.dashboard.widgets.bars import Tab, TabBar
from jsctl.dashboard.widgets.textpane import TextPane
from jsctl.render.humanize import number

HEADS = ("server", "state", "term", "committed", "applied", "behind", "log", "snapshot", "")


def member_table(group: RaftGroup, ink: Ink, width: int) -> Text:
    """Facts of the group, then a line for each member."""
    text = Text()
    facts = (
        ("group", group.name),
        ("of", group.asset or "?"),
        ("account", group.account),
        ("leader", group.leader or "nobody"),
        ("term", str(group.term)),
        ("quorum", f"{group.need} of {group.size}"),
        ("committed", number(group.committed)),
    )
    for label, value in facts:
        text.append(f"{label:>10}  ", ink.muted)
        text.append(f"{clean(value)}\n", ink.text)
    if group.level:
        text.append(f"{'state':>10}  ", ink.muted)
        text.append(f"{clean(group.why)}\n", ink.level(group.level))
    rows = [HEADS, *(_cells(group, at) for at in range(len(group.members)))]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEADS))]
    text.append("\n")
    for at, row in enumerate(rows):
        line = "  ".join(
            cell.ljust(widths[place]) if place < 2 else cell.rjust(widths[place])
            for place, cell in enumerate(row)
        )
        leads = at > 0 and group.members[at - 1].server == group.leader
        colour = ink.muted if at == 0 else ink.colour("star") if leads else ink.text
        text.append(f"{line[:width]}\n", colour)
        if at and group.members[at - 1].error:
            text.append(f"  {clean(group.members[at - 1].error)}\n", ink.level(Level.BAD))
    return text


def _cells(group: RaftGroup, at: int) -> tuple[str, ...]:
    one = group.members[at]
    behind = max(0, group.committed - one.applied)
    seen = f"seen {short_time(one.seen_ns)} ago" if one.seen_ns > 0 else ""
    return (
        clean(one.server),
        one.state,
        str(one.term or ""),
        number(one.committed),
        number(one.applied),
        number(behind) if behind else "-",
        f"{number(one.log_entries)} ({short_bytes(one.log_bytes)})",
        number(one.snapshot_index),
        "catching up" if one.catching_up else seen,
    )


class GroupScreen(View):
    """`key` is that of the group in snapshots."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", key_display="esc"),
    ]

    def __init__(self, key: str) -> None:
        super().__init__()
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
