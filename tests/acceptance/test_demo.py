"""The demonstration that `make demo` runs, from the first line to the last."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from jsctl.demo import STREAM, airports, main, token
from jsctl.testing import HOST, Broker
from tests.support.waiting import wait_for

pytestmark = pytest.mark.alone
"""As who runs it has it: a step that waits for its servers beside all others is told that they are
not available for a moment."""
DEMO_S = 110
"""On a busy machine; about ten on an idle one."""


def test_every_airport_has_a_subject_of_four_tokens() -> None:
    messages = airports()
    subjects = [subject for subject, _ in messages]
    assert len(set(subjects)) == len(messages) > 28_000
    assert all(len(subject.split(".")) == 4 for subject in subjects)
    assert not any(char in subject for subject in subjects for char in " *>\t")
    assert "airports.US.New_York.KJFK" in subjects
    assert token("") == "_"


def test_it_runs_to_the_end_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "jsctl.demo"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=DEMO_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert "28,298 acknowledged" in done.stdout
    assert done.stdout.count("Stream Report") == 2
    assert "RAFT Meta Group Information" in done.stdout
    assert 'New leader elected "n' in done.stdout
    assert "All 3 replicas are current" in done.stdout
    assert f'for stream "{STREAM}"' in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_what_goes_wrong_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    monkeypatch.setattr(Broker, "program", ("/nonexistent/python", "-m", "jsctl", "broker"))
    assert main([]) == 1
    assert "The demo failed: " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_it_keeps_the_cluster_when_asked(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "jsctl.demo", "--keep"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=DEMO_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.strip().startswith("kill "))
    pids = [int(word) for word in line.partition(";")[0].split()[1:]]
    assert len(pids) == 5
    ports = [int(port) for port in re.findall(r"nats://127.0.0.1:(\d+)  monitoring", done.stdout)]
    assert [refuses(port) for port in ports] == [False] * 5
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    wait_for(lambda: all(map(refuses, ports)), "the servers to end")


def refuses(port: int) -> bool:
    """Whether nobody listens on a port of this machine."""
    try:
        socket.create_connection((HOST, port), 1).close()
    except ConnectionRefusedError:
        return True
    return False
