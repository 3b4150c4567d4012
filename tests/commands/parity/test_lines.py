"""Tables of command lines, compared between the tools and between the servers."""

import io
import re
import sys
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path

import pytest

from jsctl.cli import main
from jsctl.testing import Broker
from tests.commands.parity.conftest import STORIES, Line, Said, tidied
from tests.commands.parity.stories import DIFFERENT, OTHER_SERVER, Own, Side, told
from tests.support.nats_tool import needed

PAIRS = (
    (("nats", "nats-server"), ("jsctl", "nats-server")),
    (("nats", "jsctl"), ("jsctl", "jsctl")),
    (("nats", "nats-server"), ("nats", "jsctl")),
)
"""Both tools on each kind of server, and the real tool on both kinds."""

MISSING = re.compile(
    r"could not (?:pick a Stream to operate on|select (?:Stream|Consumer)): .*|"
    r"cannot pick an? (?:Operator|Account|User) without a terminal and no .* supplied|"
    r"unknown (?:operator|Account|User): .*|"
    r'(?:could not \w+ \w+: )?(?:(?:stream|consumer) ".*": )?(?:stream|consumer) not found.*'
)
"""`nats` says that it cannot show a list when a name is wrong."""
DIFFERENCES = re.compile(r"Differences \(-old \+new\):\n(?:.*\n)*?(?=Stream|Consumer|jsctl|\Z)")
"""Of a configuration that is edited: shown in a form of each tool's own."""
SYSTEM = re.compile(
    r"^│ +(?:Server Overview|\d+ Connections|.* Connections Overview|.* Accounts Overview)|"
    r"^Server information for|^Information for Account|^round trip|min: |Top .* Servers|^OK n1"
    r"|\bCID\b|In Msgs|connect_time",
    re.MULTILINE,
)
"""Reports of servers, whose numbers are those of the moment and of the tool's own connection."""
NUMBER = re.compile(r"-?\b\d+(?:\.\d+)?(?:%| [KMG]?i?B\b)?")
BARS = re.compile(r"[█▏▎▍▌▋▊▉]+")
ROWS = re.compile(r"(?:^│.*\n)+", re.MULTILINE)


def tidy(text: str) -> str:
    text = DIFFERENCES.sub("DIFFERENCES\n", MISSING.sub("MISSING", text))
    if text.startswith("usage: "):
        return text.partition("\n")[0]
    if SYSTEM.search(text):
        text = NUMBER.sub("N", BARS.sub("BAR", text))
    return ROWS.sub(lambda rows: "\n".join(sorted(rows[0].splitlines())), text)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Own:
    """This tool, in this process, where a side is."""

    def run(side: Side, line: Line) -> Said:
        for key, value in side.environment().items():
            monkeypatch.setenv(key, value)
        monkeypatch.delenv("COLUMNS", raising=False)
        monkeypatch.chdir(side.folder)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line.given)))
        capfd.readouterr()
        code = main(line.words)
        captured = capfd.readouterr()
        return Said(code, captured.out, captured.err)

    return run


@needed
@pytest.mark.parametrize("story", STORIES)
def test_each_line_is_answered_alike(
    story: str,
    servers: Callable[[str], Broker],
    own: Own,
    tmp_path: Path,
) -> None:
    different: list[str] = []
    for line, answers in told(story, servers, own, tmp_path):
        said = {who: str(tidied(one, tidy)) for who, one in answers.items()}
        if line.startswith(DIFFERENT):
            if said[PAIRS[0][0]] == said[PAIRS[0][1]]:
                different.append(f"# no difference any more: {line}")
            continue
        pairs = PAIRS[:-1] if line.startswith(OTHER_SERVER) else PAIRS
        for one, other in pairs:
            if said[one] != said[other]:
                names = (" on ".join(one), " on ".join(other))
                both = (said[one].splitlines(), said[other].splitlines())
                different += [f"# {line}", *unified_diff(*both, *names, n=1, lineterm="")]
    assert not different, "\n".join(different)
