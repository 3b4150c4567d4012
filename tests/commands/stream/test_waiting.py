"""`--wait`: returns when the replicas have everything, or says what is left."""

import asyncio
import io
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from jsctl.api.cluster import ClusterInfo, DesiredClusterInfo, PeerInfo
from jsctl.commands.toolkit.assets.catching_up import wait_for_replicas, what_is_left
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.finishing import finished
from jsctl.commands.toolkit.invocation.output import Output
from jsctl.commands.toolkit.invocation.prompts import Prompts
from jsctl.errors import Unreachable
from jsctl.settings import Settings
from tests.commands.conftest import KINDS, Result, Server

Run = Callable[..., Result]
BEHIND = PeerInfo(name="n2", lag=7)
GROUP = ClusterInfo(name="C", leader="n1", replicas=(PeerInfo(name="n2", current=True),))


@pytest.mark.parametrize(
    ("cluster", "replicas", "left"),
    [
        (None, 1, ""),
        (GROUP, 2, ""),
        (GROUP, 3, "it has 2 of 3 replicas"),
        (ClusterInfo(name="C", replicas=(BEHIND,)), 2, "it has no leader"),
        (ClusterInfo(name="C", leader="n1", replicas=(BEHIND,)), 2, "n2 is 7 behind"),
        (
            ClusterInfo(name="C", leader="n1", replicas=(PeerInfo(name="n2", offline=True),)),
            2,
            "n2 is offline",
        ),
        (ClusterInfo(name="C", leader="n1", desired=DesiredClusterInfo()), 1, "it is moving"),
    ],
)
def test_what_is_left(cluster: ClusterInfo | None, replicas: int, left: str) -> None:
    assert what_is_left(cluster, replicas) == left


@pytest.mark.parametrize("gone", ["n1", "n2"])
def test_who_was_asked_to_leave_is_not_there_any_more(gone: str) -> None:
    """A look right behind the request sees what was, and all of that may be current."""
    assert what_is_left(GROUP, 2, gone) == f"{gone} is one of its servers"
    assert what_is_left(GROUP, 2, "n3") == ""


@pytest.mark.parametrize("server", list(KINDS), indirect=True, scope="package")
def test_scaling_waits_for_the_new_replicas(run: Run, server: Server) -> None:
    assert run("stream", "add", "W", "--subjects", "w", "--defaults").code == 0
    for at in range(5):
        assert run("pub", "w", f"body {at}", "-J", "-q").code == 0
    done = run("stream", "edit", "W", "--replicas", "3", "-f", "--wait", "1m", "-j")
    assert done.code == 0, done.err
    assert 'All replicas of stream "W" are current' in done.err
    cluster = json.loads(done.out)["cluster"]
    assert [(one["current"], one.get("lag", 0)) for one in cluster["replicas"]] == [(True, 0)] * 2


def test_what_does_not_end_in_time_is_an_error() -> None:
    output = Output(io.StringIO(), io.StringIO())
    call = Call({"wait": "1ns"}, {}, Settings(), output, Prompts())

    async def look() -> ClusterInfo | None:
        return ClusterInfo(name="C", leader="n1", replicas=(BEHIND,))

    with pytest.raises(Unreachable, match="stream W is not done after 1ns: n2 is 7 behind"):
        asyncio.run(wait_for_replicas(call, look, 2, "stream W"))


def test_one_that_is_broken_off_says_what_is_left() -> None:
    said = io.StringIO()
    call = Call({"wait": "1h"}, {}, Settings(), Output(io.StringIO(), said), Prompts())

    async def look() -> ClusterInfo | None:
        signal.raise_signal(signal.SIGINT)
        return ClusterInfo(name="C", leader="n1", replicas=(BEHIND,))

    async def waiting() -> int | None:
        await wait_for_replicas(call, look, 2, "stream W")
        return None

    with pytest.raises(KeyboardInterrupt):
        finished(waiting)
    left = "interrupted: stream W is not done: n2 is 7 behind; the cluster goes on by itself\n"
    assert said.getvalue() == left


@pytest.mark.parametrize("server", ["nats-server"], indirect=True, scope="package")
def test_a_terminal_shows_bars(run: Run, server: Server) -> None:
    assert run("stream", "add", "W", "--subjects", "w", "--defaults").code == 0
    for at in range(5):
        assert run("pub", "w", "x" * 1000 * at, "-J", "-q").code == 0
    ours, theirs = pty.openpty()
    words = ("-s", server.url, "stream", "edit", "W", "--replicas", "3", "-f", "--wait", "1m")
    with subprocess.Popen(
        [sys.executable, "-m", "jsctl", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    ) as program:
        os.close(theirs)
        shown = b""
        while True:
            try:
                more = os.read(ours, 4096)
            except OSError:
                break
            shown += more
        assert program.wait() == 0, shown
    os.close(ours)
    assert b"are current" in shown
    assert b"Traceback" not in shown
