"""Fresh seeds for as long as one wants.

    python -m tests.simulation --seconds 60 --from 1000

Each seed is run with three and with five servers: with plain streams and many faults, with streams
and consumers of all kinds, with messages that have a time to live, with disks that fail, with one
that rots, also under who reads everything anew, with servers that sync in their own loops, and with
requests that change streams and consumers all the time. One that fails is printed with what is
needed of its plan, and the run ends with status 1; the drawing that is named makes it again.
"""

import argparse
import sys
import time
from collections.abc import Callable
from itertools import count, product

from jsctl.broker.errors import BrokerError
from tests.simulation.plan import (
    Plan,
    draw,
    draw_changes,
    draw_copies,
    draw_damage,
    draw_kinds,
    draw_loop,
    draw_rot,
    draw_storage,
    draw_ttl,
    shrink,
)
from tests.simulation.run import Simulation, fails

SERVERS = (3, 5)
SHRINK_RUNS = 200
DRAWINGS: tuple[Callable[[int, int], Plan], ...] = (
    draw,
    draw_copies,
    draw_kinds,
    draw_ttl,
    draw_storage,
    draw_rot,
    draw_loop,
    draw_changes,
    draw_damage,
)


def passes(drawing: Callable[[int, int], Plan], seed: int, servers: int) -> bool:
    """Run one seed; tell what is needed of its plan when it fails."""
    plan = drawing(seed, servers)
    try:
        Simulation(plan).run()
    except (AssertionError, BrokerError) as error:
        print(f"{drawing.__name__}({seed}, {servers}): {type(error).__name__}: {error}")
        print(shrink(plan, fails, SHRINK_RUNS))
        return False
    return True


def main() -> int:
    """Run seeds until the time is over, or one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--from", dest="first", type=int, default=1_000, help="the first seed")
    parser.add_argument("--seeds", type=int, default=0, help="end after so many, too")
    told = parser.parse_args()
    end = time.monotonic() + told.seconds
    done = 0
    for seed in count(told.first):
        if time.monotonic() >= end or (told.seeds and seed - told.first >= told.seeds):
            break
        for drawing, servers in product(DRAWINGS, SERVERS):
            if not passes(drawing, seed, servers):
                return 1
            done += 1
    print(f"{done} runs from seed {told.first} on, none failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
