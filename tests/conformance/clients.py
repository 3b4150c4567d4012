"""The suites of nats.c, run with ctest, and of nats.js, run with Deno.

Both write beside their sources, or need a file out of the way, so a copy of the checkout runs.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
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

C_SUITE = "nats.c"
C_OPTIONS = ("NATS_BUILD_STREAMING=OFF", "NATS_BUILD_EXAMPLES=OFF", "CMAKE_BUILD_TYPE=Release")
JS_PACKAGES = ("core", "jetstream", "kv", "obj", "services")
JS_NAME = "nats.js-{}"
NPM_WORKSPACE = "package.json"
"""With it Deno wants npm's modules; nats.js moves it away for its tests, too."""


def client_suites() -> set[str]:
    """The names of all suites here."""
    return {C_SUITE, *(JS_NAME.format(package) for package in JS_PACKAGES)}


def c_jobs(checkout: Path, place: Path) -> Iterator[Job]:
    """The suite of nats.c, built below `place`."""
    source, build = place / "nats.c", place / "nats.c-build"
    copy_checkout(checkout, source, "CMakeLists.txt")
    options = [f"-D{option}" for option in C_OPTIONS]
    subprocess.run(["cmake", "-S", str(source), "-B", str(build), *options], check=True)
    subprocess.run(["cmake", "--build", str(build), "--parallel", str(os.cpu_count())], check=True)

    def run(command: Sequence[str], log: Path, chosen: str) -> Results:
        with scratch_place(command) as scratch:
            report = scratch / "report.xml"
            words = [
                *("ctest", "--test-dir", str(build), "--label-regex", "^test$"),
                *("--timeout", str(TEST_TIMEOUT_S), "--output-on-failure"),
                *("--output-junit", str(report)),
                *(("--tests-regex", chosen) if chosen else ()),
            ]
            # Tests that need a newer server than the one that they are told of pass untested.
            version = subprocess.run(
                [*command, "--version"], capture_output=True, text=True, check=True
            )
            variables = environment(scratch) | {"NATS_TEST_SERVER_VERSION": version.stdout.strip()}
            run_words(words, source / "test", variables, log)
            return read_report(C_SUITE, report, log)

    yield Job(C_SUITE, run)


def js_jobs(checkout: Path, place: Path, import_map: str) -> Iterator[Job]:
    """The suites of nats.js. Its imports come from jsr.io, or from where `import_map` says."""
    source = place / "nats.js"
    copy_checkout(checkout, source, "deno.json")
    imports = ("--no-config", "--import-map", str(Path(import_map).resolve())) if import_map else ()
    variables = {"DENO_DIR": str(place / "deno"), "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}
    # Here, as a network of the suites' own leads nowhere.
    files = [
        str(file) for package in JS_PACKAGES for file in source.glob(f"{package}/tests/*_test.ts")
    ]
    words = ["deno", "cache", "--no-check", *imports, *files]
    subprocess.run(words, cwd=source, env=os.environ | variables, check=True)
    for package in JS_PACKAGES:

        def run(command: Sequence[str], log: Path, chosen: str, package: str = package) -> Results:
            with scratch_place(command) as scratch:
                report = scratch / "report.xml"
                words = [
                    *("deno", "test", "--allow-all", "--no-check", f"--junit-path={report}"),
                    *(*imports, f"{package}/tests"),
                    *(("--filter", chosen) if chosen else ()),
                ]
                run_words(words, source, environment(scratch) | variables, log)
                return read_report(JS_NAME.format(package), report, log)

        yield Job(JS_NAME.format(package), run)


def copy_checkout(checkout: Path, to: Path, needed: str) -> None:
    """A fresh copy, of what is a checkout: it has the file `needed`."""
    if not (checkout / needed).is_file():
        raise SystemExit(f"{checkout} is no checkout of {to.name}: no {needed}")
    if to.exists():
        shutil.rmtree(to)
    ignored = shutil.ignore_patterns(".git", *((NPM_WORKSPACE,) if needed == "deno.json" else ()))
    shutil.copytree(checkout, to, ignore=ignored)
