"""Running a suite of a client, as it is, with one server as `nats-server` on PATH.

The suites use fixed ports, so each run has a network of its own where the kernel allows it.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.compare import Outcome, Result, Results

ROOT = Path(__file__).resolve().parents[2]
TEST_TIMEOUT_S = 120
SUITE_TIMEOUT_S = 3600
TAIL_CHARACTERS = 4000
SET_UP = 'set -e; ip link set lo up; ip address add 192.0.2.1/32 dev lo; exec "$@"'
OWN_NETWORK = ("unshare", "--map-root-user", "--net", "sh", "-c", SET_UP, "sh")
"""The second address is for what servers tell clients of each other: loopback is not in it."""


@dataclass(frozen=True, slots=True)
class Job:
    """One package of a client's repository."""

    name: str
    run: Callable[[Sequence[str], Path, str], Results]
    """Takes what a server is started with, a file for the suite's own words, and a choice of tests
    (as the suite's program takes it, all if it is empty)."""


@contextlib.contextmanager
def scratch_place(command: Sequence[str]) -> Iterator[Path]:
    """A directory for one run: `bin` with the server, an empty `home`, and `tmp`."""
    with tempfile.TemporaryDirectory(prefix="suite-") as name:
        scratch = Path(name)
        for part in ("bin", "home", "tmp"):
            (scratch / part).mkdir()
        write_launcher(scratch / "bin", command)
        yield scratch


def environment(scratch: Path) -> dict[str, str]:
    """HOME is empty, too: the suites prefer a server installed there to the one on PATH."""
    kept = {key: os.environ[key] for key in ("LANG", "LC_ALL", "TERM") if key in os.environ}
    path = os.environ.get("PATH", os.defpath)
    return kept | {
        "PATH": f"{scratch / 'bin'}{os.pathsep}{path}",
        "HOME": str(scratch / "home"),
        "TMPDIR": str(scratch / "tmp"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def write_launcher(directory: Path, command: Sequence[str]) -> None:
    """A `nats-server` in `directory` that runs `command` with the words given to it.

    The suites' PYTHONPATH is theirs: a server in Python must not import from it, and it is to find
    its modules compiled.
    """
    path = directory / "nats-server"
    path.write_text(
        f'#!/bin/sh\nunset PYTHONPATH PYTHONDONTWRITEBYTECODE\nexec {shlex.join(command)} "$@"\n'
    )
    path.chmod(0o755)


def server_commands() -> dict[str, list[str]]:
    """What each server is started with."""
    return {
        "nats-server": [str(Path(sys.executable).parent / "nats-server")],
        "jsctl broker": [sys.executable, "-P", "-m", "jsctl", "broker"],
    }


def own_network() -> tuple[str, ...]:
    """What a command begins with to get a network of its own; nothing where that cannot be."""
    try:
        subprocess.run([*OWN_NETWORK, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return ()
    return OWN_NETWORK


def run_words(
    words: Sequence[str],
    directory: Path,
    variables: Mapping[str, str],
    log: Path,
    timeout_s: int = SUITE_TIMEOUT_S,
) -> int:
    """The exit status. It runs in a process group of its own, so that no server outlives it.

    Raises subprocess.TimeoutExpired.
    """
    with open(log, "wb") as file:
        process = subprocess.Popen(
            [*own_network(), *words],
            cwd=directory,
            env=dict(variables),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        try:
            return process.wait(timeout=timeout_s)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def read_report(package: str, path: Path, log: Path) -> Results:
    """The outcome of each test of a JUnit report, the worst one where a test is in it twice.

    Raises RuntimeError with the end of `log` if there is no report.
    """
    if not path.exists():
        tail = log.read_text(errors="replace")[-TAIL_CHARACTERS:]
        raise RuntimeError(f"{package}: no report was written\n{tail}")
    results: Results = {}
    for case in ET.parse(path).iter("testcase"):
        key = f"{package} {case.get('classname')}::{case.get('name')}"
        found = _result(case)
        old = results.get(key)
        if old is None or old.outcome < found.outcome:
            results[key] = found
    return results


def _result(case: ET.Element) -> Result:
    seconds = float(case.get("time") or 0)
    for tag, outcome in (
        ("failure", Outcome.FAIL),
        ("error", Outcome.FAIL),
        ("skipped", Outcome.SKIP),
    ):
        child = case.find(tag)
        if child is not None:
            message = (child.get("message") or "").strip().split("\n")[0]
            return Result(outcome, message, seconds)
    return Result(Outcome.PASS, "", seconds)
