"""`python -m tests.fuzz`: hostile input from a seed, for a time or a number of inputs."""

import argparse
import resource
import sys
import time
from pathlib import Path

import tests.support.lane_build  # noqa: F401 (takes another build of the lane, if one is named)
from tests.fuzz.runner import Outcome, fuzz
from tests.fuzz.targets import TARGETS

KIB = 1024
SECONDS = 60.0
"""How long a run is unless it is told a time or a number."""


def main() -> int:
    """Run what was asked for; 1 if anything was found."""
    options = _options()
    wanted = options.target or list(TARGETS)
    seconds = options.seconds / len(wanted)
    found = 0
    for name in wanted:
        target = TARGETS[name]()
        inputs = max(1, int(options.inputs * target.share)) if options.inputs else 0
        before = _resident_kib()
        try:
            outcome = fuzz(
                target, seed=options.seed, inputs=inputs, seconds=seconds, keep=options.keep
            )
            _report(outcome, before, target.summary())
        finally:
            target.close()
        found += len(outcome.findings)
    return 1 if found else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=None, help="for all targets together")
    parser.add_argument("--inputs", type=int, default=0, help="at most this many each, by share")
    parser.add_argument("--from", dest="seed", type=int, default=None, help="the seed")
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="only these")
    parser.add_argument("--keep", action="store_true", help="put findings into the corpus")
    options = parser.parse_args()
    if options.seconds is None:
        options.seconds = 0.0 if options.inputs else SECONDS
    if options.seed is None:
        options.seed = time.time_ns() % 1_000_000
    return options


def _report(outcome: Outcome, before_kib: int, summary: str) -> None:
    rate = outcome.inputs / max(outcome.seconds, 1e-9)
    print(
        f"{outcome.target:16} {outcome.inputs:>9,} inputs in {outcome.seconds:7.1f} s"
        f" ({rate:,.0f}/s), slowest {outcome.slowest_s * 1000:.0f} ms,"
        f" resident {before_kib // KIB} -> {_resident_kib() // KIB} MiB,"
        f" {len(outcome.findings)} findings{summary}",
        flush=True,
    )
    for finding in outcome.findings:
        print(finding.text(), file=sys.stderr, flush=True)


def _resident_kib() -> int:
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize() // KIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    sys.exit(main())
