"""`python -m tests.matrix`: all features at every number of replicas, in file and memory."""

import argparse
import asyncio
import sys
from time import monotonic

import tests.matrix
from tests.matrix.features import COMBINATIONS, FEATURES
from tests.matrix.play import walked


def main() -> int:
    """A line for each combination; status 1 if anything failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.matrix", description=tests.matrix.__doc__
    )
    parser.add_argument("--feature", choices=FEATURES, action="append", help="only these")
    parser.add_argument("--replicas", type=int, choices=(1, 3, 5), action="append")
    parser.add_argument("--storage", choices=("file", "memory"), action="append")
    options = parser.parse_args()
    bad = 0
    for count, storage in COMBINATIONS:
        if count not in (options.replicas or (count,)) or storage not in (
            options.storage or (storage,)
        ):
            continue
        began, names = monotonic(), options.feature or list(FEATURES)
        failed = asyncio.run(walked([(count, storage)], names))
        bad += len(failed)
        good = len(names) - len(failed)
        print(f"R{count} {storage}: {good} of {len(names)} features hold, ", end="")
        print(f"{monotonic() - began:.0f} s", flush=True)
        for name, when, what in failed:
            print(f"    {name}, {when}: {what}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
