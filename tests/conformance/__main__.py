"""`python -m tests.conformance DIR`: the official clients' suites on both servers, side by side."""

import argparse
import sys
from pathlib import Path

from tests.conformance.clients import c_jobs, client_suites, js_jobs
from tests.conformance.compare import (
    BAD,
    OURS,
    REAL,
    Outcome,
    Results,
    differences,
    differences_alone,
    read_expected,
    strangers,
    summary,
    table,
)
from tests.conformance.java import JAVA_SUITE, java_jobs
from tests.conformance.running import ROOT, Job, own_network, server_commands
from tests.conformance.rust import RUST_SUITE, rust_jobs
from tests.conformance.suites import SUITES, find_checkout, make_environment, python_jobs

PLACE = ROOT / ".venv-conformance"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("checkout", nargs="?", help="a checkout of nats.py; it is not changed")
    parser.add_argument("--c", metavar="DIR", help="a checkout of nats.c; cmake, a compiler")
    parser.add_argument("--js", metavar="DIR", help="a checkout of nats.js; deno")
    parser.add_argument("--js-imports", default="", metavar="FILE", help="where jsr.io is not")
    parser.add_argument("--java", metavar="DIR", help="a checkout of nats.java; a JDK, maven")
    parser.add_argument("--java-runner", default="", metavar="DIR", help="where no release is")
    parser.add_argument("--rs", metavar="DIR", help="a checkout of nats.rs; cargo")
    parser.add_argument("--python", default="python3.13", help="for nats.py, 3.13 or newer")
    clients = [*sorted(client_suites()), JAVA_SUITE, RUST_SUITE]
    names = [*(suite.name for suite in SUITES), *clients]
    parser.add_argument("--package", action="append", choices=names, help="only this; repeatable")
    parser.add_argument("--runs", type=int, default=1, help="how often, all must be as expected")
    parser.add_argument("-k", default="", help="only tests that match, as the suite's program says")
    parser.add_argument(
        "--only", choices=[REAL, OURS], help="run one server: no comparison but with the list"
    )
    parser.add_argument(
        "--logs", default=".venv-conformance/logs", help="for the suites' own words"
    )
    given = parser.parse_args()
    if not (given.checkout or given.c or given.js or given.java or given.rs):
        parser.error("a checkout is needed: of nats.py, or --c, --js, --java, --rs with one")
    return given


def find_jobs(given: argparse.Namespace) -> list[Job]:
    """What is to run; the suites of C and Rust are built, those of Python get their environment."""
    jobs: list[Job] = []
    if given.checkout:
        checkout = find_checkout(given.checkout)
        jobs += python_jobs(checkout, make_environment(given.python, PLACE / "python"))
    if given.c:
        jobs += c_jobs(Path(given.c).resolve(), PLACE)
    if given.js:
        jobs += js_jobs(Path(given.js).resolve(), PLACE, given.js_imports)
    if given.java:
        jobs += java_jobs(Path(given.java).resolve(), PLACE, given.java_runner)
    if given.rs:
        jobs += rust_jobs(Path(given.rs).resolve(), PLACE)
    return [job for job in jobs if not given.package or job.name in given.package]


def run_once(given: argparse.Namespace, jobs: list[Job], turn: int) -> bool:
    """All chosen suites on the servers. True if everything was as expected."""
    good = True
    for job in jobs:
        found: dict[str, Results] = {}
        for server in [given.only] if given.only else [REAL, OURS]:
            found[server] = run_one(given, job, server, turn)
        expected = read_expected()
        if given.only:
            rows = differences_alone(given.only, found[given.only], expected)
        else:
            rows = differences(found[REAL], found[OURS], expected)
        print(table(rows), flush=True)
        good = good and not any(row.verdict in BAD for row in rows)
        ran = found[given.only or OURS]
        if not given.k and (gone := strangers(expected, ran, job.name)):
            print("in the list, but not in the suite:", *gone, sep="\n  ", flush=True)
            good = False
    return good


def run_one(given: argparse.Namespace, job: Job, server: str, turn: int) -> Results:
    """One suite on one server, and its line of counts."""
    logs = Path(given.logs)
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{job.name}.{server.replace(' ', '-')}.{turn}.txt"
    results = job.run(server_commands()[server], log.resolve(), given.k)
    counts = summary(results)
    numbers = ", ".join(f"{counts[end]} {end.name.lower()}" for end in Outcome)
    print(f"run {turn}  {job.name:17} {server:13} {numbers}", flush=True)
    return results


def main() -> int:
    """Exit status 1 if a test ended otherwise than the list of expected failures says."""
    given = arguments()
    jobs = find_jobs(given)
    if not own_network():
        print("no network namespaces here: ports 4222 and up of this machine are used")
    good = True
    for turn in range(1, given.runs + 1):
        good = run_once(given, jobs, turn) and good
    print("as expected" if good else "NOT as expected")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
