"""Help says the same, line by line; empty lines, global flags and examples are left out."""

import re

import pytest

from tests.commands.parity.conftest import NATS
from tests.commands.test_command_line import Run
from tests.commands.test_tree import TREE
from tests.support.nats_tool import nats

pytestmark = pytest.mark.skipif(NATS is None, reason="the nats tool is not installed")

TAIL = re.compile(r"\n\s*(Global Flags|Examples):")
GROUPS = (
    "bench",
    "counter",
    "errors",
    "events",
    "kv",
    "latency",
    "object",
    "rtt",
    "schema",
    "service",
    "trace",
)
"""Those whose help is that of `nats`, word for word."""


WIDTHS = {group: "80" if at % 2 else "120" for at, group in enumerate(GROUPS)}


def lines(text: str) -> list[str]:
    page = TAIL.split(text)[0].replace("nats ", "jsctl ", 1)
    return [line.rstrip() for line in page.splitlines() if line]


@pytest.mark.parametrize("group", GROUPS)
def test_help_says_the_same(group: str, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", WIDTHS[group])
    for path in (one for one in TREE if one.split(" ")[0] == group):
        theirs = nats(*path.split(), "--help")
        assert theirs.returncode == 0, (path, theirs.stderr)
        assert lines(cli(*path.split(), "--help").out) == lines(theirs.stdout), path
