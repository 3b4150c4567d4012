"""Each group has a page whose table names all of its commands, and the index leads to it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from jsctl.cli import walk
from jsctl.commands import REGISTRY
from jsctl.commands.toolkit.grammar.spec import Group

PAGES = Path(__file__).parent.parent.parent / "docs" / "commands"
INDEX = PAGES / "README.md"
TABLE = re.compile(r"^<!-- table of: (.*?) -->\n((?:\|.*\n)+)", re.MULTILINE)
NAME = re.compile(r"`([^`]+)`")
ELSEWHERE = {
    "broker": "../broker.md",
    "dashboard": "../dashboard.md",
    "pipeline": "../pipelines.md",
}
"""What is more than a group of commands."""
WHOLE = ("jsm stream", "jsm consumer")
"""Groups that are named instead of their commands, which are those of another page."""


def pages() -> dict[str, str]:
    """Which page has which group, with the rows of its table."""
    found: dict[str, str] = {}
    for path in sorted(PAGES.glob("*.md")):
        for names, _ in TABLE.findall(path.read_text()):
            found |= {name: path.name for name in names.split(", ")}
    return found


def leaves(words: tuple[str, ...], *, hidden: bool) -> Iterator[str]:
    """Commands of a group as one types them; `hidden` ones only if asked for."""
    node = walk(words).node
    if not isinstance(node, Group) or " ".join(words) in WHOLE:
        yield " ".join(words)
        return
    for one in node.commands:
        if hidden or not one.hidden:
            yield from leaves((*words, one.name), hidden=hidden)


def first_cells(rows: str) -> Iterator[str]:
    """Of all rows but the heading."""
    for row in rows.splitlines()[2:]:
        yield row.split("|")[1]


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.md")), ids=lambda path: path.name)
def test_the_table_of_a_page_names_all_its_commands(path: Path) -> None:
    if path == INDEX:
        return
    tables = TABLE.findall(path.read_text())
    assert len(tables) == 1
    groups, rows = tables[0]
    names = groups.split(", ")
    one_group = len(names) == 1 and isinstance(walk(names).node, Group)
    before = f"{names[0]} " if one_group else ""
    listed = [before + name for cell in first_cells(rows) for name in NAME.findall(cell)]
    shown = {leaf for name in names for leaf in leaves((name,), hidden=False)}
    every = {leaf for name in names for leaf in leaves((name,), hidden=True)}
    assert sorted(listed) == sorted(set(listed))
    assert shown <= set(listed) <= every, (shown - set(listed), set(listed) - every)


def test_every_group_is_in_the_index_and_has_its_page() -> None:
    rows = INDEX.read_text().partition("|---|---|\n")[2].partition("\n\n")[0]
    linked: dict[str, str] = {}
    for row in rows.splitlines():
        _, cell, link, _ = row.split("|")
        linked |= {name: link.rpartition("(")[2].rstrip(") ") for name in NAME.findall(cell)}
    assert linked == pages() | ELSEWHERE
    assert set(linked) == {row.name for row in REGISTRY}
