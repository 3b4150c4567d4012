"""Documents name what exists: the table of commands, the examples, the links.

With `REWRITE=1` in the environment the table of commands in docs/cli.md is written anew.
"""

import os
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

from jsctl.cli import hoist, walk
from jsctl.commands import REGISTRY
from jsctl.commands.toolkit.grammar import values
from jsctl.commands.toolkit.grammar.parser import parse
from jsctl.commands.toolkit.grammar.spec import Command, Group

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "cli.md"
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


def examples(path: Path) -> list[str]:
    """The lines of code blocks that call jsctl."""
    blocks = re.findall(r"```\w*\n(.*?)```", path.read_text(), flags=re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return [line.partition("  #")[0] for line in lines if line.startswith("jsctl ")]


CALLS = [(path, line) for path in DOCUMENTS for line in examples(path)]


@pytest.mark.parametrize(("path", "line"), CALLS, ids=[line for _, line in CALLS])
def test_examples_can_be_parsed(path: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "must_be_there", lambda *_: None)
    words = shlex.split(line)[1:]
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


def test_decisions_are_listed_once_and_in_order() -> None:
    """By the number and title of each; numbers may be missing, but none is there twice."""
    folder = ROOT / "docs" / "adr"
    records = sorted(folder.glob("[0-9]*.md"))
    heads = [path.read_text().partition("\n")[0].removeprefix("# ") for path in records]
    listed = re.findall(r"^- \[(.+)\]\((.+)\)$", (folder / "README.md").read_text(), re.MULTILINE)
    assert listed == [(head, path.name) for head, path in zip(heads, records, strict=True)]
    numbers = [path.name[:4] for path in records]
    assert numbers == [f"{int(head.partition('.')[0]):04}" for head in heads]
    assert len(set(numbers)) == len(numbers)
