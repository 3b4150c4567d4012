"""Fresh seeds for as long as one wants.

    python -m tests.simulation --seconds 60 --from 1000

Each seed is run with three and with five servers: with plain streams and many faults, with streams
and consumers of all kinds, with atomic batches, with counters, with schedules, with dead letters,
with chains of hashes, with messages that have a time to live, with messages that are got from any
replica, with disks that fail, with one that rots, also under who reads everything anew, or that
loses its log, with servers that sync in their own loops, with requests that change streams and
consumers all the time, also while servers come and go, with disks that are full again and again,
and with two clusters that are far apart and a leaf node, also with one that has a JetStream of its
own. One that fails is printed with what is needed of its plan, and the run ends with status 1; the
drawing that is named makes it again.

    python -m tests.simulation --seconds 3600 --keep-going --drawing draw_storage

    python -m tests.simulation --mutants FILE

seeks all planted bugs instead, and writes a table of what found each of them.

At the end, also when it is ended from outside, it tells how many runs there were, how many failed,
and how long the longest row of them without a failure was.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count, product

from tests.simulation.far_plan import draw_edge, draw_far
from tests.simulation.getters import draw_gets
from tests.simulation.mutants import seek
from tests.simulation.plan import (
    Plan,
    draw,
    draw_batches,
    draw_chains,
    draw_changes,
    draw_copies,
    draw_counters,
    draw_damage,
    draw_kinds,
    draw_letters,
    draw_loop,
    draw_lost_log,
    draw_room,
    draw_rot,
    draw_schedules,
    draw_storage,
    draw_ttl,
    draw_turmoil,
    shrink,
)
from tests.simulation.run import fails, failure

Drawing = Callable[[int, int], Plan]
SERVERS = (3, 5)
SHRINK_RUNS = 200
DRAWINGS: tuple[Drawing, ...] = (
    draw,
    draw_batches,
    draw_copies,
    draw_counters,
    draw_schedules,
    draw_letters,
    draw_chains,
    draw_kinds,
    draw_ttl,
    draw_gets,
    draw_storage,
    draw_rot,
    draw_loop,
    draw_changes,
    draw_turmoil,
    draw_room,
    draw_damage,
    draw_lost_log,
    draw_far,
    draw_edge,
)


@dataclass
class Tally:
    """What came of the runs so far."""

    first: int
    """The first seed."""
    done: int = 0
    failed: int = 0
    row: int = 0
    """How many passed since the last one that failed."""
    longest: int = 0

    def note(self, passed: bool) -> None:
        """One more is over."""
        self.done += 1
        self.failed += not passed
        self.row = self.row + 1 if passed else 0
        self.longest = max(self.longest, self.row)

    def __str__(self) -> str:
        return (
            f"{self.done} runs from seed {self.first} on, {self.failed or 'none'} failed; "
            f"the longest row without a failure: {self.longest}, the last: {self.row}"
        )


def passes(drawing: Drawing, seed: int, servers: int, shrink_runs: int) -> bool:
    """Run one seed; tell what is needed of its plan when it fails."""
    plan = drawing(seed, servers)
    told = failure(plan)
    if told:
        print(f"{drawing.__name__}({seed}, {servers}): {told}", flush=True)
        print(shrink(plan, fails, shrink_runs), flush=True)
    return not told


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--from", dest="first", type=int, default=1_000, help="the first seed")
    parser.add_argument("--seeds", type=int, default=0, help="end after so many, too")
    names = [one.__name__ for one in DRAWINGS]
    parser.add_argument("--drawing", action="append", choices=names, help="only this one, or these")
    parser.add_argument("--keep-going", action="store_true", help="tell of all that fail")
    parser.add_argument(
        "--shrink",
        type=int,
        default=SHRINK_RUNS,
        help="how many runs finding out what is needed of a plan may take; 0: tell all of it",
    )
    parser.add_argument("--mutants", metavar="FILE", help="seek planted bugs, write the table")
    return parser.parse_args(words)


def run_seeds(told: argparse.Namespace, tally: Tally) -> None:
    """Run seeds until the time is over, or one fails that is to end it."""
    chosen = told.drawing or [one.__name__ for one in DRAWINGS]
    drawings = [one for one in DRAWINGS if one.__name__ in chosen]
    end = time.monotonic() + told.seconds
    for seed in count(told.first):
        if time.monotonic() >= end or (told.seeds and seed - told.first >= told.seeds):
            return
        for drawing, servers in product(drawings, SERVERS):
            tally.note(passes(drawing, seed, servers, told.shrink))
            if tally.failed and not told.keep_going:
                return
        print(f"seed {seed} is over: {tally}", flush=True)


def main() -> int:
    """Run seeds; the exit status."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    told = arguments()
    if told.mutants:
        return seek(told.mutants)
    tally = Tally(told.first)
    try:
        run_seeds(told, tally)
    except KeyboardInterrupt:
        print("ended from outside")
    print(tally, flush=True)
    return int(tally.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
