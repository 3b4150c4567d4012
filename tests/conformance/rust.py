"""The suite of nats.rs: programs that Cargo builds, of which each test runs alone.

libtest has no limit of time for one test, and its report is not in stable Rust; a process for each
test has both. Cargo writes its lock file beside the sources, so a copy of the checkout is built.
"""

import json
import os
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tests.conformance.clients import copy_checkout
from tests.conformance.compare import Outcome, Result, Results
from tests.conformance.running import (
    TEST_TIMEOUT_S,
    Job,
    environment,
    run_words,
    scratch_place,
)

RUST_SUITE = "nats.rs"
PACKAGES = ("async-nats", "nats-server")
FEATURES = ("async-nats/slow_tests", "async-nats/websockets")
"""What the suite's own CI adds to the features that are there by default."""

PANIC = "panicked at "


@dataclass(frozen=True, slots=True)
class Program:
    """One test program, and where it finds its files."""

    name: str
    path: str
    directory: Path


def rust_jobs(checkout: Path, place: Path) -> Iterator[Job]:
    """The suite of nats.rs, built below `place`."""
    source = place / RUST_SUITE
    copy_checkout(checkout, source, "async-nats/Cargo.toml")
    programs = _build(source, place / f"{RUST_SUITE}-build")

    def run(command: Sequence[str], log: Path, chosen: str) -> Results:
        results: Results = {}
        with open(log, "w") as words:
            for program in programs:
                results |= run_program(program, command, words, chosen)
        return results

    yield Job(RUST_SUITE, run)


def _build(source: Path, build: Path) -> list[Program]:
    """Build all test programs, and name them."""
    words = [
        *("cargo", "test", "--no-run", "--tests", "--message-format", "json-render-diagnostics"),
        *(word for package in PACKAGES for word in ("--package", package)),
        *("--features", ",".join(FEATURES)),
    ]
    variables = {
        "CARGO_TARGET_DIR": str(build),
        "CARGO_INCREMENTAL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
    }
    done = subprocess.run(
        words, cwd=source, env=os.environ | variables, check=True, stdout=subprocess.PIPE, text=True
    )
    return read_programs(done.stdout.splitlines())


def read_programs(lines: Iterable[str]) -> list[Program]:
    """The test programs of a build, as Cargo's messages tell."""
    found = []
    for line in lines:
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"]:
            directory = Path(message["manifest_path"]).parent
            found.append(Program(message["target"]["name"], message["executable"], directory))
    return sorted(found, key=lambda program: program.name)


def run_program(program: Program, command: Sequence[str], words: TextIO, chosen: str) -> Results:
    """Its tests, each with `command` as its server; what they say goes to `words`."""
    results: Results = {}
    ignored = set(_list_tests(program, chosen, "--ignored"))
    for test in _list_tests(program, chosen):
        result, text = Result(Outcome.SKIP), ""
        if test not in ignored:
            result, text = _run_test(program, test, command)
        key = f"{RUST_SUITE} {program.name}::{test}"
        words.write(f"== {key}: {result.outcome.name} ({result.seconds:.1f} s)\n{text}")
        words.flush()
        results[key] = result
    return results


def _list_tests(program: Program, chosen: str, *options: str) -> list[str]:
    words = [program.path, "--list", "--format", "terse", *options, *([chosen] if chosen else ())]
    listed = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]


def _run_test(program: Program, test: str, command: Sequence[str]) -> tuple[Result, str]:
    """One test with its server, and what both said."""
    with scratch_place(command) as scratch:
        log = scratch / "log.txt"
        words = [program.path, test, "--exact", "--nocapture"]
        began = time.monotonic()
        ended = _end_of(words, program.directory, environment(scratch), log)
        seconds = time.monotonic() - began
        text = log.read_text(errors="replace")
    if ended == 0:
        return Result(Outcome.PASS, "", seconds), ""
    why = first_panic(text) if ended is not None else f"not done in {TEST_TIMEOUT_S} s"
    return Result(Outcome.FAIL, why, seconds), text


def _end_of(
    words: Sequence[str], directory: Path, variables: Mapping[str, str], log: Path
) -> int | None:
    """The exit status, or None where time was up."""
    try:
        return run_words(words, directory, variables, log, TEST_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return None


def first_panic(text: str) -> str:
    """Where a test failed, and the first line of why."""
    lines = text.splitlines()
    for place, why in zip(lines, [*lines[1:], ""], strict=True):
        if PANIC in place:
            return f"{place.partition(PANIC)[2]} {why}".strip()
    return ""
