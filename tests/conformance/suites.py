"""The suites of nats.py: one for each package of a checkout, run with pytest."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.compare import Results
from tests.conformance.running import (
    TEST_TIMEOUT_S,
    Job,
    environment,
    read_report,
    run_words,
    scratch_place,
)

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


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


def python_jobs(checkout: Path, python: Path) -> Iterator[Job]:
    """All packages, run with the interpreter `python`."""
    for suite in SUITES:

        def run(command: Sequence[str], log: Path, chosen: str, suite: Suite = suite) -> Results:
            return run_suite(suite, checkout, python, command, log, chosen)

        yield Job(suite.name, run)


def run_suite(
    suite: Suite, checkout: Path, python: Path, command: Sequence[str], log: Path, chosen: str
) -> Results:
    """Run one suite with one server, pytest's words go to `log`; `chosen` is for its `-k`."""
    with scratch_place(command) as scratch:
        report = scratch / "report.xml"
        words = [
            *(str(python), "-m", "pytest", "-v", suite.tests),
            *("-p", "no:cacheprovider", "-o", "junit_family=xunit1"),
            *(f"--junitxml={report}", f"--timeout={TEST_TIMEOUT_S}"),
            *(("-k", chosen) if chosen else ()),
        ]
        sources = os.pathsep.join(str(checkout / source) for source in suite.sources)
        variables = environment(scratch) | {"PYTHONPATH": sources}
        run_words(words, checkout / suite.directory, variables, log)
        return read_report(suite.name, report, log)


def find_checkout(text: str) -> Path:
    """The checkout, which must hold all packages."""
    path = Path(text).resolve()
    missing = [suite.name for suite in SUITES if not (path / suite.directory).is_dir()]
    if missing or not shutil.which("sh"):
        raise SystemExit(f"{path} is no checkout of nats.py: no {', '.join(missing)}")
    return path
