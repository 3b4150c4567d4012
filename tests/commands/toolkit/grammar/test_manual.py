"""Manual pages: of every command, and nothing in them that roff stumbles over."""

import subprocess
from collections.abc import Callable
from shutil import which

import pytest

from jsctl.commands import REGISTRY
from jsctl.commands.toolkit.grammar.manual import manual
from jsctl.commands.toolkit.grammar.spec import Argument, Command, Kind, Option
from tests.commands.conftest import Result

Run = Callable[..., Result]
ODD = Command(
    "odd",
    ".begins with a dot",
    "none:none",
    (
        Argument("file", "'quoted' \"twice\" \\n", required=True),
        Argument("rest", "More", many=True),
    ),
    (
        Option("in", "Where from", short="i", metavar="FILE", default="a-b"),
        Option("way", "Which", Kind.SWITCH, default="true"),
        Option("secret", "Not shown", hidden=True),
    ),
    aliases=("o",),
    examples=("jsctl odd --in=x",),
    details=("'A paragraph.",),
)


def test_a_page_of_a_command() -> None:
    lines = manual(("jsctl", "odd"), ODD).splitlines()
    assert lines[0] == '.TH "JSCTL\\-ODD" 1 "" "jsctl" "jsctl manual"'
    assert "jsctl\\-odd \\- \\&.begins with a dot" in lines
    assert "[\\fIflags\\fR] \\fIfile\\fR [\\fIrest\\fR ...]" in lines
    assert "\\fB\\-i, \\-\\-in\\fR=\\fIFILE\\fR" in lines
    assert "\\fB\\-\\-[no\\-]way\\fR" in lines
    assert "\\&'A paragraph." in lines
    assert not [line for line in lines if "secret" in line]
    assert not [line for line in lines if line.startswith("'")]


@pytest.mark.processes
@pytest.mark.parametrize("name", [row.name for row in REGISTRY if row.attribute != "main"])
def test_pages_of_all_commands(name: str, cli: Run) -> None:
    result = cli(name, "--help-man")
    assert (result.code, result.err) == (0, "")
    assert result.out.count(".TH ") >= 1
    assert f".B jsctl {name}" in result.out.replace("\\-", "-")
    if which("groff") is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z"],
        input=result.out,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_of_the_program(cli: Run) -> None:
    out = cli("--help-man").out.replace("\\-", "-")
    assert out.startswith('.TH "JSCTL" 1')
    assert ".B jsctl stream (str, st, ms, s)\nJetStream stream management\n" in out
    assert "bogus" in cli("bogus", "--help-man").err
