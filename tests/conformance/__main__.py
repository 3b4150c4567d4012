"""`python -m tests.conformance CHECKOUT`: nats.py's suites on both servers, side by side."""

import argparse
import sys
from pathlib import Path

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
from tests.conformance.suites import (
    ROOT,
    SUITES,
    Suite,
    find_checkout,
    make_environment,
    own_network,
    run_suite,
    server_commands,
)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("checkout", help="directory of a nats.py checkout; it is not changed")
    parser.add_argument("--python", default="python3.13", help="for the suites, 3.13 or newer")
    names = [suite.name for suite in SUITES]
    parser.add_argument("--package", action="append", choices=names, help="only this; repeatable")
    parser.add_argument("--runs", type=int, default=1, help="how often, all must be as expected")
    parser.add_argument("-k", default="", help="only tests that match, as in pytest")
    parser.add_argument(
        "--only", choices=[REAL, OURS], help="run one server: no comparison but with the list"
    )
    parser.add_argument("--logs", default=".venv-conformance/logs", help="for pytest's own words")
    return parser.parse_args()


def run_once(given: argparse.Namespace, checkout: Path, python: Path, turn: int) -> bool:
    """All chosen suites on the servers. True if everything was as expected."""
    good = True
    for suite in SUITES:
        if given.package and suite.name not in given.package:
            continue
        found: dict[str, Results] = {}
        for server in [given.only] if given.only else [REAL, OURS]:
            found[server] = run_one(given, suite, server, checkout, python, turn)
        expected = read_expected()
        if given.only:
            rows = differences_alone(given.only, found[given.only], expected)
        else:
            rows = differences(found[REAL], found[OURS], expected)
        print(table(rows), flush=True)
        good = good and not any(row.verdict in BAD for row in rows)
        ran = found[given.only or OURS]
        if not given.k and (gone := strangers(expected, ran, suite.name)):
            print("in the list, but not in the suite:", *gone, sep="\n  ", flush=True)
            good = False
    return good


def run_one(
    given: argparse.Namespace, suite: Suite, server: str, checkout: Path, python: Path, turn: int
) -> Results:
    """One suite on one server, and its line of counts."""
    logs = Path(given.logs)
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{suite.name}.{server.replace(' ', '-')}.{turn}.txt"
    chosen = ("-k", given.k) if given.k else ()
    results = run_suite(suite, checkout, python, server_commands()[server], log, chosen)
    counts = summary(results)
    numbers = ", ".join(f"{counts[end]} {end.name.lower()}" for end in Outcome)
    print(f"run {turn}  {suite.name:15} {server:13} {numbers}", flush=True)
    return results


def main() -> int:
    """Exit status 1 if a test ended otherwise than the list of expected failures says."""
    given = arguments()
    checkout = find_checkout(given.checkout)
    python = make_environment(given.python, ROOT / ".venv-conformance")
    if not own_network():
        print("no network namespaces here: ports 4222 and up of this machine are used")
    good = True
    for turn in range(1, given.runs + 1):
        good = run_once(given, checkout, python, turn) and good
    print("as expected" if good else "NOT as expected")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
