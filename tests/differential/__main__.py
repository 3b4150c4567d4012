"""`python -m tests.differential`: many cases, by hand; ends with status 1 if any differ."""

import argparse
import sys
import time

from tests.differential.cases import CASES, SPREAD, played
from tests.differential.twins import running, running_clusters


def main() -> int:
    """Play seeds until there is no time left; each difference is printed where it is found."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--case", choices=sorted(CASES), action="append", help="only these")
    parser.add_argument("--clusters", action="store_true", help="of three servers each")
    parser.add_argument("--from", type=int, default=1, dest="first", help="the first seed")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long")
    parser.add_argument("--seeds", type=int, default=1_000_000, help="how many at most")
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    seed, different = options.first, 0
    names = options.case or sorted(CASES)
    mark = SPREAD if options.clusters else ""
    with running_clusters() if options.clusters else running() as twins:
        while time.monotonic() < until and seed < options.first + options.seeds:
            for name in names:
                for subject, body, lines in played(twins, seed, CASES[name], mark):
                    different += 1
                    print(
                        f"{name} {seed}: {subject} {body[:600]}", *lines, sep="\n    ", flush=True
                    )
            seed += 1
    print(f"{seed - options.first} seeds from {options.first}, {different} answers differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
