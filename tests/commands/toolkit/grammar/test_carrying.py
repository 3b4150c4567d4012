"""Flags of groups in front of the command."""

import pytest

from jsctl.commands.toolkit.grammar.carrying import carried
from jsctl.commands.toolkit.grammar.spec import Kind, Option
from jsctl.errors import UsageError

OPTIONS = (
    Option("all", "", Kind.FLAG, short="a"),
    Option("progress", "", Kind.SWITCH),
    Option("file", "", Kind.FILE, short="f"),
)


@pytest.mark.parametrize(
    ("word", "waiting", "taken", "left"),
    [
        ("--all", ["ls"], ["--all"], ["ls"]),
        ("-a", ["ls"], ["-a"], ["ls"]),
        ("--no-progress", ["ls"], ["--no-progress"], ["ls"]),
        ("--file", ["ls", "ls"], ["--file", "ls"], ["ls"]),
        ("--file=ls", ["ls"], ["--file=ls"], ["ls"]),
        ("--file=", ["ls"], ["--file="], ["ls"]),
        ("-af", ["x", "ls"], ["-a", "-f", "x"], ["ls"]),
    ],
)
def test_a_flag_takes_its_value(
    word: str, waiting: list[str], taken: list[str], left: list[str]
) -> None:
    assert carried(word, OPTIONS, waiting) == taken
    assert waiting == left


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("--none", "unknown long flag '--none'"),
        ("--no-all", "unknown long flag '--no-all'"),
        ("-ab", "unknown short flag '-b'"),
        ("--file", "expected argument for flag '--file'"),
    ],
)
def test_what_is_none_is_refused(word: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        carried(word, OPTIONS, [])
