"""`traffic`, which help does not list: kinds of messages, and the tables of what came."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jsctl.commands.traffic.run import KINDS, TABLES, kind_of
from tests.commands.conftest import Result, Server
from tests.commands.test_command_line import Run
from tests.support.waiting import wait_for


def test_every_kind_has_a_column() -> None:
    assert {kind_of(start + "x", "") for start, _, _ in KINDS} <= {
        (group, column) for group, columns in TABLES.items() for column in columns
    }
    assert kind_of("orders", "") == ("General", "Rest")
    assert kind_of("orders", "_INBOX.1") == ("General", "Requests")
    assert kind_of("$JS.API.INFO", "_INBOX.1") == ("General", "JS API")


def test_it_is_there_but_not_listed(cli: Run) -> None:
    assert "traffic" not in cli("--help").out
    assert cli("traffic", "--help").out.startswith("usage: jsctl traffic [<subjects>]\n")


@pytest.mark.processes
def test_messages_are_counted(run: Run, server: Server, tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = [sys.executable, "-m", "jsctl", "traffic", "seen.>", "-s", server.url, "-o", "json"]
    with log.open("wb") as out:
        running = subprocess.Popen(program, stdout=out, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:

        def counted() -> bool:
            sent: Result = run("pub", "seen.a", "12345", "-q")
            assert sent.code == 0
            lines = log.read_text().splitlines()
            last = json.loads(lines[-1]) if lines else {}
            return bool(last.get("General.Rest")) and last["bytes"] % 5 == 0

        wait_for(counted, "messages are counted")
    finally:
        running.terminate()
        running.wait()
