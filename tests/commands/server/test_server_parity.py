"""Server reports say the same as the real `nats` tool, where it is installed."""

import re
import subprocess
from collections.abc import Callable
from shutil import which

import pytest

from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER
from tests.commands.conftest import Result, Server
from tests.support.waiting import wait_for

Run = Callable[..., Result]
NATS = which("nats")
ENABLED = ["nats-server", "jsctl"]
pytestmark = [
    pytest.mark.skipif(NATS is None, reason="the nats tool is not installed"),
    pytest.mark.parametrize("server", ENABLED, indirect=True, scope="session"),
]

RULE = re.compile(r"─+|[ ]{2,}")
PASSING = re.compile(r"\b(\d+(\.\d+)?(µs|ms|s|m|h))+\b|\b\d[\d.,]*( [KMG]?i?B)?\b|rtt=\S+")
SAME = (
    "server report jetstream --sort name",
    "server report jetstream --sort name -R",
    "server report jsz --host n2",
    "server report jsz --account $G --sort name",
    "server info n2",
    "server info nope --timeout 1s",
    "server list --sort name",
    "server ls --sort name -R",
    "server cluster peer-remove nope -f",
    "server report accounts",
)


def normal(text: str) -> str:
    """Without numbers and times, which pass between two runs."""
    text = text.replace("nats: error", "jsctl: error")
    return RULE.sub(" ", PASSING.sub("N", text))


def test_answers_are_the_same(run: Run, server: Server) -> None:
    assert run("stream", "add", "A", "--subjects", "a", "--replicas", "3", "--defaults").code == 0
    server.cluster.wait_meta_leader()
    flags = ["--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD]
    ping = (*flags, "server", "ping", "3", "--timeout", "3s")
    wait_for(lambda: "3 replies" in run(*ping).out, "all servers know each other")
    different: list[str] = []
    for line in SAME:
        assert NATS is not None
        theirs = subprocess.run(
            [NATS, "-s", server.url, *flags, *line.split()],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        ours = run(*flags, *line.split())
        pairs = (
            (str(theirs.returncode), str(ours.code)),
            (normal(theirs.stdout), normal(ours.out)),
            (normal(theirs.stderr), normal(ours.err)),
        )
        different += [f"{line}\n{them}\n{we}" for them, we in pairs if them != we]
    assert not different, "\n\n".join(different)
