"""`service`: the same questions about the same service, and each tool's own service."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from jsctl.testing import Broker
from tests.commands.parity.conftest import NATS, Same, environment
from tests.support.waiting import wait_for

QUESTIONS = """
service
service ls
service ls demo
service ls nope
service list -j
service info demo
service info demo -j
service info nope
service info demo badid
service info demo -e nomatch
service info demo -e nomatch -j
service stats demo
service stats nope
service stats demo -j
service ping --timeout 200ms
service ping nope --timeout 200ms
service request demo nope hello
service request nope echo hello
service request demo
service serve
"""
REQUESTS = """
service info demo
service stats demo
service request demo echo hello
service request demo echo hello -r
service request demo echo hello -H A:b --count 2
service request demo echo << from stdin
request demo.echo hello
request demo.echo hello -r
request demo.echo '' -r
"""
HEADERS = re.compile(r"^CLOCK \w+: .*\n", re.MULTILINE)
RTT = re.compile(r"rtt=?.*")


def tidy(text: str) -> str:
    """Round trips differ, and headers come in any order."""
    found = "".join(sorted(HEADERS.findall(text)))
    return RTT.sub("rtt", HEADERS.sub("", text)) + found


@pytest.fixture
def service(one_server: Broker, request: pytest.FixtureRequest) -> Iterator[str]:
    """A demonstration service by either tool; what it said so far is given in the end."""
    assert NATS is not None
    program = [NATS] if request.param == "nats" else [sys.executable, "-m", "jsctl"]
    words = ["service", "serve", "demo", "-H", "X:1"]
    log = one_server.directory / f"{request.param}.log"
    own = {**os.environ, **environment(one_server, "both"), "PYTHONUNBUFFERED": "1"}
    with log.open("wb") as out:
        running = subprocess.Popen([*program, *words], stdout=out, stderr=out, env=own)
    try:
        wait_for(lambda: "Requests Log" in log.read_text(), "the service listens")
        yield str(log)
    finally:
        running.terminate()
        running.wait()


@pytest.mark.parametrize("service", ["nats"], indirect=True)
def test_questions(same: Same, service: str) -> None:
    same(QUESTIONS, who="both", tidy=tidy)


@pytest.mark.parametrize("service", ["nats", "jsctl"], indirect=True)
def test_requests(same: Same, service: str) -> None:
    same(REQUESTS, who="both", tidy=tidy)
