"""Documents name what exists: the table of commands, the examples, the links.

With `REWRITE=1` in the environment the table of commands in docs/cli.md is written anew.
"""

import ast
import os
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise, takewhile
from pathlib import Path

import pytest

from jsctl.cli import hoist, walk
from jsctl.commands import REGISTRY
from jsctl.commands.toolkit.grammar import values
from jsctl.commands.toolkit.grammar.parser import parse
from jsctl.commands.toolkit.grammar.spec import Command, Group
from tests.docs.reading import Page

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "cli.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- commands: begin -->\n", "<!-- commands: end -->\n"
DOCUMENTS = [
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "commands").glob("*.md")),
]


def leaves(node: Command | Group, path: str) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """(words, aliases of the last one, help) of every command below a node."""
    if isinstance(node, Group):
        for child in node.commands:
            yield from leaves(child, f"{path} {child.name}")
    else:
        yield path, node.aliases, node.help


def table() -> str:
    """The commands as they are, one row each."""
    lines = ["| command | also | what it does |", "|---|---|---|"]
    for row in REGISTRY:
        node = getattr(import_module(row.module), row.attribute)
        if not isinstance(node, Command | Group):
            lines.append(f"| `{row.name}` | | {row.help} |")
            continue
        for path, aliases, text in leaves(node, row.name):
            also = ", ".join(f"`{alias}`" for alias in aliases)
            first = text.strip().splitlines()[0].replace("|", "\\|")
            lines.append(f"| `{path}` | {also} | {first} |")
    return "\n".join(lines) + "\n"


def test_every_command_is_listed() -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    listed, _, after = rest.partition(END)
    if os.environ.get("REWRITE"):
        PAGE.write_text(before + BEGIN + table() + END + after)
        return
    assert listed == table(), "REWRITE=1 pytest tests/test_docs.py writes it anew"


def calls(path: Path) -> list[str]:
    """Examples that call jsctl and are not run; all others are, see `tests/docs`."""
    every = [one.command for one in Page(path).examples if one.why_not]
    return [line for line in every if line.startswith("jsctl ")]


CALLS = [(path, line) for path in DOCUMENTS for line in calls(path)]


@pytest.mark.parametrize(("path", "line"), CALLS, ids=[line for _, line in CALLS])
def test_examples_can_be_parsed(path: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "must_be_there", lambda *_: None)
    words = shlex.split(line, comments=True)[1:]
    if words[0] == "broker":
        from jsctl.broker.conf.flags import parse_flags

        parse_flags(words[1:])
        return
    _, words = hoist(words)
    found = walk(words)
    assert isinstance(found.node, Command), line
    parse(found.node, found.inherited, found.words)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", path.read_text())
    missing = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_tables_are_in_one_piece(path: Path) -> None:
    lines = ["", *path.read_text().split("\n")]
    begun = [
        number
        for number, (before, line) in enumerate(pairwise(lines), 1)
        if line.startswith("|") and not before.startswith("|")
    ]
    torn = [number for number in begun if not set(lines[number + 1]) <= set("|-: ")]
    assert not torn, f"{path.name}: rows without a heading above them"


def test_files_that_documents_name_are_there() -> None:
    """In code quotes; from the root, or as a reader of the broker says it."""
    bases = (ROOT, ROOT / "jsctl", ROOT / "jsctl" / "broker")
    for page in [*DOCUMENTS, *sorted((ROOT / "docs" / "adr").glob("*.md"))]:
        for name in re.findall(r"`([a-z_/]+/[a-z_]+\.py)`", page.read_text()):
            found = [base for base in bases if (base / name).is_file()]
            assert found, f"{page.name}: {name}"


def test_the_map_is_of_this_tree() -> None:
    """Folders and files stand below what they are in, by two spaces."""
    block = ARCHITECTURE.read_text().partition("```\n")[2].partition("```")[0]
    above: dict[int, Path] = {}
    for line in block.splitlines():
        depth = len(line) - len(line.lstrip())
        parent = next((above[one] for one in range(depth - 1, -1, -1) if one in above), ROOT)
        above = {one: path for one, path in above.items() if one < depth}
        for name in takewhile(is_file_name, line.split()):
            assert (parent / name).exists(), f"{line.strip()}: {parent / name}"
            if name.endswith("/"):
                above[depth] = parent / name


def rooms(folder: Path) -> set[str]:
    """Names of the packages in a package."""
    return {one.parent.name for one in folder.glob("*/*.py")}


def test_every_room_is_on_the_map() -> None:
    """Those of jsctl and of its broker have a place of their own, or are told of beside a file;
    those in a room of the broker are told of where that is."""
    block = ARCHITECTURE.read_text().partition("```\n")[2].partition("```")[0]
    broker = block.partition("  broker/\n")[2]
    for name in rooms(ROOT / "jsctl"):
        assert re.search(rf"^  {name}/", block, re.MULTILINE), f"jsctl/{name}/"
    for name in rooms(ROOT / "jsctl" / "broker"):
        assert re.search(rf"^    (\S+ .*; )?{name}/", broker, re.MULTILINE), f"broker/{name}/"
        told = re.search(rf"^    {name}/.*\n(     .*\n)*", broker, re.MULTILINE)
        for inner in rooms(ROOT / "jsctl" / "broker" / name):
            assert told is not None and f" {inner}/" in told[0], f"broker/{name}/{inner}/"


def is_file_name(word: str) -> bool:
    """Whether a word of the map is one, and not of what is said about it."""
    return word.endswith(("/", ".py"))


def test_methods_that_the_architecture_names_are_there() -> None:
    found = set(re.findall(r"`([A-Z]\w+)\.(\w+)[(`]", ARCHITECTURE.read_text()))
    assert found
    for path in (ROOT / "jsctl").rglob("*.py"):
        for node in ast.parse(path.read_text()).body if found else ():
            if isinstance(node, ast.ClassDef):
                made = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
                found -= {(node.name, name) for name in made}
    assert not found


def test_decisions_are_listed_in_their_order() -> None:
    records = sorted(path.name for path in (ROOT / "docs" / "adr").glob("0*.md"))
    assert (
        re.findall(r"\((0\S+\.md)\)", (ROOT / "docs" / "adr" / "README.md").read_text()) == records
    )
