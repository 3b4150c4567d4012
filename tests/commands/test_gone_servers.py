"""Ctrl-C ends what listens at once, though its server has gone and nobody can be told."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from jsctl.cli import main
from jsctl.testing import BrokerFactory
from tests.support.command_line import FOREIGN
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


@contextmanager
def begun(url: str, line: str, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    words = [sys.executable, "-m", "jsctl", "-s", url, *line.split(" ")]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**environment, "PYTHONUNBUFFERED": "1"},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def test_an_interrupt_ends_what_listens_to_nobody(
    jsctl_broker: BrokerFactory, tmp_path: Path
) -> None:
    broker = jsctl_broker("-js")
    for line in ("stream add ST --subjects st.> --defaults", "kv add K", "object add O"):
        assert main(["-s", broker.url, *line.split(" ")]) == 0
    logs = {line: tmp_path / str(at) for at, line in enumerate(LINES)}
    with ExitStack() as stack:
        running = {
            line: stack.enter_context(begun(broker.url, line, log)) for line, log in logs.items()
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
