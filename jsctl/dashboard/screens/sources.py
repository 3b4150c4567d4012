"""Mirrors and sources as a tree: who gets messages from whom, and how far they are."""

from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from jsctl.dashboard.actions.plans import Target
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, short, short_time
from jsctl.dashboard.model.snapshot import Level, Snapshot, Source, Stream
from jsctl.dashboard.screens.host import Host
from jsctl.dashboard.screens.view import View
from jsctl.dashboard.widgets.bars import Tab, TabBar

DEPTH_MAX = 20
"""Streams may feed each other in a circle."""
NODES_MAX = 2_000
"""A dozen streams that all feed each other have more ways than anybody could draw."""


def feeds(snapshot: Snapshot) -> dict[str, list[tuple[Stream, Source]]]:
    """Origin -> the streams that copy from it."""
    found: dict[str, list[tuple[Stream, Source]]] = {}
    for stream in snapshot.streams:
        for source in stream.sources:
            found.setdefault(source.name, []).append((stream, source))
    return found


class SourcesScreen(View):
    """A tree from origins to copies."""

    DEFAULT_CSS = """
    SourcesScreen Tree {
        height: 1fr; border: round $primary; background: $background; padding: 0 1;
        border-title-color: $foreground; border-title-style: bold;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", key_display="esc"),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._shown: object = None
        self._room = 0

    def body(self) -> ComposeResult:
        """The tree."""
        yield TabBar((Tab("", "Mirrors and sources", "", "sources"),), "sources")
        tree: Tree[str] = Tree("streams", id="tree")
        tree.show_root = False
        tree.border_title = "Mirrors and sources"
        yield tree

    def draw(self, snapshot: Snapshot, ink: Ink) -> None:
        """Made anew only when something changed."""
        self.query_one(TabBar).show(ink, Text(f" Streams {ink.glyphs.crumb} ", ink.muted))
        links = feeds(snapshot)
        state = (ink, [(name, [source for _, source in many]) for name, many in links.items()])
        if state == self._shown:
            return
        self._shown = state
        tree = self.query_one(Tree)
        line = tree.cursor_line
        tree.clear()
        self._room = NODES_MAX
        copies = {stream.name for many in links.values() for stream, _ in many}
        for origin in sorted(set(links) - copies) or sorted(links):
            known = next((one for one in snapshot.streams if one.name == origin), None)
            node = tree.root.add(self._origin(origin, known, ink), known.key if known else "")
            self._grow(node, origin, links, ink, {origin})
            node.expand()
        if not links:
            tree.root.add_leaf(Text("no stream is a mirror or has sources", ink.muted))
        tree.root.expand()
        if line >= 0:
            tree.cursor_line = line
        tree.focus()

    def _origin(self, name: str, known: Stream | None, ink: Ink) -> Text:
        level = known.level if known else Level.NOTE
        text = Text(f"{ink.glyphs.level(level)} ", ink.level(level))
        text.append(clean(name), f"bold {ink.text}")
        where = (
            f"  {short(known.messages)} message{'' if known.messages == 1 else 's'}"
            if known
            else "  elsewhere"
        )
        text.append(where, ink.muted)
        return text

    def _grow(
        self,
        node: "TreeNode[str]",
        origin: str,
        links: dict[str, list[tuple[Stream, Source]]],
        ink: Ink,
        above: set[str],
    ) -> None:
        for stream, source in links.get(origin, []):
            if self._room <= 0:
                return
            self._room -= 1
            text = Text(f"{ink.glyphs.mirror if source.mirror else ink.glyphs.arrow} ")
            text.stylize(ink.colour("accent"))
            text.append(clean(stream.name), f"bold {ink.text}")
            word = f"{short(source.lag)} behind" if source.lag else "in sync"
            heard = short_time(source.active_ns) if source.active_ns >= 0 else "never"
            text.append(f"  {word}, heard {heard}", ink.muted)
            if source.error:
                text.append(f"  {clean(source.error)}", ink.level(Level.WARN))
            child = node.add(text, stream.key, expand=True)
            if stream.name not in above and len(above) < DEPTH_MAX:
                self._grow(child, stream.name, links, ink, above | {stream.name})

    def target(self) -> Target | None:
        """The stream under the cursor."""
        node = self.query_one(Tree).cursor_node
        return self.snapshot.stream(str(node.data)) if node and node.data else None

    @on(Tree.NodeSelected)
    def _selected(self) -> None:
        stream = self.target()
        if stream is not None:
            self.open_row(stream)

    def action_back(self) -> None:
        """The screen before."""
        self.dismiss(None)
