"""Server reports say the same as the real `nats` tool, where it is installed."""

import re
from collections.abc import Callable

import pytest

from jsctl.testing import SYSTEM_PASSWORD, SYSTEM_USER
from tests.commands.conftest import Result, Server
from tests.support import nats_tool
from tests.support.waiting import wait_for

Run = Callable[..., Result]
ENABLED = ["nats-server", "jsctl"]
pytestmark = [
    nats_tool.needed,
    pytest.mark.parametrize("server", ENABLED, indirect=True, scope="package"),
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
    "server report health",
    "server report health --account $G --stream NOPE",
    "server report gateways",
    "server report gateways --sort server -R",
    "server report leafnodes",
    "server report mem --host n2",
    "server report downgrade 3",
    "server report downgrade 0 --json",
    "server account info NOPE",
    "server account info",
    "server request kick 99999 NOPE --timeout 1s",
    "server request profile heap /nope",
    "server request profile bad",
    "server config reload NOPE -f --timeout 1s",
)


def normal(text: str) -> str:
    """Without numbers and times, which pass between two runs."""
    return RULE.sub(" ", PASSING.sub("N", text))


def test_answers_are_the_same(run: Run, server: Server) -> None:
    assert run("stream", "add", "A", "--subjects", "a", "--replicas", "3", "--defaults").code == 0
    server.cluster.wait_meta_leader()
    flags = ["--user", SYSTEM_USER, "--password", SYSTEM_PASSWORD]
    ping = (*flags, "server", "ping", "3", "--timeout", "3s")
    wait_for(lambda: "3 replies" in run(*ping).out, "all servers know each other")
    found = nats_tool.differences(run, SAME, *flags, url=server.url, normal=normal)
    assert not found, "\n\n".join(found)
