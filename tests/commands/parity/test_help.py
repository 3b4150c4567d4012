"""Help says the same; how lines are broken is left out, and so are global flags and examples."""

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


def words(text: str) -> str:
    return " ".join(TAIL.split(text)[0].replace("nats ", "jsctl ", 1).split())


@pytest.mark.parametrize("group", GROUPS)
def test_help_says_the_same(group: str, cli: Run) -> None:
    for path in (one for one in TREE if one.split(" ")[0] == group):
        theirs = nats(*path.split(), "--help")
        assert theirs.returncode == 0, (path, theirs.stderr)
        assert words(cli(*path.split(), "--help").out) == words(theirs.stdout), path
