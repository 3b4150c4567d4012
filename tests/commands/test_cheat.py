"""`cheat`: examples of every command, each of which can be parsed."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from jsctl.cli import hoist, walk
from jsctl.commands.toolkit.grammar import values
from jsctl.commands.toolkit.grammar.parser import parse
from jsctl.commands.toolkit.grammar.spec import Command
from tests.commands.conftest import Result

Run = Callable[..., Result]
MESSAGES = ("latency", "publish", "reply", "subscribe", "events", "server")
ASSETS = ("consumer", "kv", "object", "stream")
FILES = ("ca.pem",)
"""What global flags of sheets name."""
LABELS = (*MESSAGES, *ASSETS, "account", "auth", "backup", "bench", "context", "errors", "schema")


def test_each_part_of_the_tool_has_a_sheet(cli: Run, tmp_path: Path) -> None:
    listed = cli("cheat", "--list").out.split()[2:]
    assert set(LABELS) <= set(listed)
    assert cli("cheat").out == cli("cheat", "--list").out
    saved = cli("cheat", "--save", str(tmp_path / "new"))
    assert (saved.code, len(saved.out.splitlines())) == (0, len(listed))
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(listed)
    shown = cli("cheat", "stream").out
    assert "# Copies" not in shown
    assert shown.rstrip() in (tmp_path / "new" / "stream").read_text()


@pytest.mark.parametrize("label", LABELS)
def test_what_a_sheet_says_can_be_run(
    label: str, cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(values, "must_be_there", lambda *_: None)
    for name in FILES:
        (tmp_path / name).touch()
    lines = [one for one in cli("cheat", label).out.splitlines() if one.startswith("jsctl ")]
    assert lines
    for line in lines:
        _, words = hoist(shlex.split(line)[1:])
        found = walk(words)
        assert isinstance(found.node, Command), line
        parse(found.node, found.inherited, found.words)


def test_one_that_there_is_not_is_told(cli: Run) -> None:
    done = cli("cheat", "strem")
    error, hint = done.err.splitlines()
    assert (done.code, error) == (1, 'jsctl: error: no cheats for "strem"')
    assert hint.startswith("  did you mean")
