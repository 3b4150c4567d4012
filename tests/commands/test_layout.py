"""The tree of folders is the tree of commands, and declaring them loads nothing heavy."""

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import jsctl.commands
from jsctl.commands import REGISTRY, Entry
from jsctl.commands.toolkit.grammar.spec import Command, Group
from tests.commands.conftest import HEAVY

PACKAGE = "jsctl.commands."
FILES_MAX = 20
DECLARED = [row for row in REGISTRY if row.attribute != "main"]
OF_ITS_OWN = [row for row in DECLARED if row.name != "jsm"]
"""jsm's commands are those of other groups."""


def references(node: Command | Group) -> Iterator[str]:
    """Where the functions of all commands below a node are."""
    if isinstance(node, Group):
        for child in node.commands:
            yield from references(child)
        return
    yield node.run
    if node.more_options:
        yield node.more_options


@pytest.mark.parametrize("row", OF_ITS_OWN, ids=lambda row: row.name)
def test_functions_are_in_the_folder_of_their_group(row: Entry) -> None:
    folder = row.module.removeprefix(PACKAGE) + "."
    found = list(references(getattr(import_module(row.module), row.attribute)))
    assert found
    assert [one for one in found if not one.startswith(folder)] == []


def test_folders_are_small() -> None:
    top = Path(jsctl.commands.__file__).parent
    counts = {one: len(list(one.glob("*.py"))) for one in [top, *top.rglob("*")] if one.is_dir()}
    assert {one: count for one, count in counts.items() if count > FILES_MAX} == {}


@pytest.mark.processes
def test_declaring_all_commands_loads_nothing_heavy() -> None:
    modules = [row.module for row in DECLARED]
    code = f"import sys\nimport {', '.join(modules)}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert set(modules) <= set(done.stdout.split())
    assert not set(HEAVY) & set(done.stdout.split())
