"""Runs the suites of a nats.py checkout, as they are, with one server as `nats-server` on PATH.

The suites use fixed ports, so each run has a network of its own where the kernel allows it.
"""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.compare import Outcome, Result, Results

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
TEST_TIMEOUT_S = 120
SUITE_TIMEOUT_S = 3600
TAIL_CHARACTERS = 4000
SET_UP = 'set -e; ip link set lo up; ip address add 192.0.2.1/32 dev lo; exec "$@"'
OWN_NETWORK = ("unshare", "--map-root-user", "--net", "sh", "-c", SET_UP, "sh")
"""The second address is for what servers tell clients of each other: loopback is not in it."""


@dataclass(frozen=True, slots=True)
class Suite:
    """One package of the checkout: where its tests run, and what they import."""

    name: str
    directory: str
    tests: str
    sources: tuple[str, ...]


SUITES = (
    Suite("nats", ".", "nats/tests", ("nats/src",)),
    Suite("nats-core", "nats-core", "tests", ("nats-core/src", "nats-server/src")),
    Suite("nats-server", "nats-server", "tests", ("nats-server/src",)),
    Suite(
        "nats-jetstream",
        "nats-jetstream",
        "tests",
        ("nats-jetstream/src", "nats-core/src", "nats-server/src"),
    ),
    Suite(
        "nats-key-value",
        "nats-key-value",
        "tests",
        ("nats-key-value/src", "nats-jetstream/src", "nats-core/src", "nats-server/src"),
    ),
)


def make_environment(python: str, directory: Path) -> Path:
    """An interpreter with what the suites need, made anew when that changes."""
    interpreter = directory / "bin" / "python"
    stamp = directory / "requirements.txt"
    wanted = REQUIREMENTS.read_text()
    if interpreter.exists() and stamp.exists() and stamp.read_text() == wanted:
        return interpreter
    run = subprocess.run
    run([python, "-m", "venv", "--clear", str(directory)], check=True)
    pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "-r", str(REQUIREMENTS)], check=True)
    stamp.write_text(wanted)
    return interpreter


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


def run_suite(
    suite: Suite,
    checkout: Path,
    python: Path,
    command: Sequence[str],
    log: Path,
    chosen: Iterable[str] = (),
) -> Results:
    """Run one suite with one server, pytest's words go to `log`; `chosen` are words for pytest."""
    with tempfile.TemporaryDirectory(prefix="suite-") as name:
        scratch = Path(name)
        for part in ("bin", "home", "tmp"):
            (scratch / part).mkdir()
        write_launcher(scratch / "bin", command)
        report = scratch / "report.xml"
        words = [
            *own_network(),
            *(str(python), "-m", "pytest", "-v", suite.tests),
            *("-p", "no:cacheprovider", "-o", "junit_family=xunit1"),
            *(f"--junitxml={report}", f"--timeout={TEST_TIMEOUT_S}"),
            *chosen,
        ]
        directory = checkout / suite.directory
        _run(words, directory, _environment(suite, checkout, scratch), log)
        if not report.exists():
            tail = log.read_text(errors="replace")[-TAIL_CHARACTERS:]
            raise RuntimeError(f"{suite.name}: no report was written\n{tail}")
        return read_report(suite.name, report)


def _environment(suite: Suite, checkout: Path, scratch: Path) -> dict[str, str]:
    """HOME is empty, too: the suites prefer a server installed there to the one on PATH."""
    kept = {key: os.environ[key] for key in ("LANG", "LC_ALL", "TERM") if key in os.environ}
    path = os.environ.get("PATH", os.defpath)
    return kept | {
        "PATH": f"{scratch / 'bin'}{os.pathsep}{path}",
        "HOME": str(scratch / "home"),
        "TMPDIR": str(scratch / "tmp"),
        "PYTHONPATH": os.pathsep.join(str(checkout / source) for source in suite.sources),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _run(words: Sequence[str], directory: Path, environment: dict[str, str], log: Path) -> None:
    """Run in a process group of its own, so that no server outlives its suite."""
    with open(log, "wb") as file:
        process = subprocess.Popen(
            words,
            cwd=directory,
            env=environment,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        try:
            process.wait(timeout=SUITE_TIMEOUT_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def read_report(package: str, path: Path) -> Results:
    """The outcome of each test of a JUnit report, the worst one where a test is in it twice."""
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


def find_checkout(text: str) -> Path:
    """The checkout, which must hold all packages."""
    path = Path(text).resolve()
    missing = [suite.name for suite in SUITES if not (path / suite.directory).is_dir()]
    if missing or not shutil.which("sh"):
        raise SystemExit(f"{path} is no checkout of nats.py: no {', '.join(missing)}")
    return path
