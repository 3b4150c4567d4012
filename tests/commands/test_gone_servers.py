"""Ctrl-C ends what listens at once, though its server has gone and nobody can be told."""

import signal
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from jsctl.cli import main
from jsctl.testing import BrokerFactory
from tests.support.interrupted import begun
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes
END_S = 60
INTERRUPTED = 130
UNTOLD = 1
"""`reply` cannot say that its answers arrived."""
LINES = {
    "reply r hello": UNTOLD,
    "sub x": INTERRUPTED,
    "sub st.> --all": INTERRUPTED,
    "sub --stream ST --durable D": INTERRUPTED,
    "kv watch K": INTERRUPTED,
    "object watch O": INTERRUPTED,
    "events --all": INTERRUPTED,
    "service serve foo": INTERRUPTED,
}
LOST = "Disconnected, will attempt reconnect"
TROUBLE = ("Traceback", "never retrieved", "was destroyed", "deadline exceeded")


def test_an_interrupt_ends_what_listens_to_nobody(
    jsctl_broker: BrokerFactory, tmp_path: Path
) -> None:
    broker = jsctl_broker("-js")
    for line in ("stream add ST --subjects st.> --defaults", "kv add K", "object add O"):
        assert main(["-s", broker.url, *line.split(" ")]) == 0
    logs = {line: tmp_path / str(at) for at, line in enumerate(LINES)}
    program = (sys.executable, "-m", "jsctl", "-s", broker.url)
    with ExitStack() as stack:
        running = {
            line: stack.enter_context(begun([*program, *line.split(" ")], tmp_path, log.name))
            for line, log in logs.items()
        }

        def clients() -> int:
            found = broker.monitor("/connz?subs=1")
            assert isinstance(found, dict)
            rows = found["connections"]
            assert isinstance(rows, list)
            return len([row for row in rows if isinstance(row, dict) and row["subscriptions"]])

        wait_for(lambda: clients() >= len(LINES), "all of them listen")
        broker.kill()
        wait_for(
            lambda: all(LOST in log.read_text() for log in logs.values()), "all of them know it"
        )
        for process in running.values():
            process.send_signal(signal.SIGINT)
        codes = {line: process.wait(END_S) for line, process in running.items()}
    said = {line: log.read_text() for line, log in logs.items()}
    assert codes == LINES, said
    assert not [text for text in said.values() if any(word in text for word in TROUBLE)]
    assert "answers may be lost" in said["reply r hello"]
