"""Which tests of a parallel run stay together: those of a file, of all files with one Java, and
those that run alone.

A worker that meets the first test with a Spark session starts Java and warms it up for half a
minute of CPU time; with a worker for all of them that is done once.

Which worker takes which: as many workers as there are processors begin with tests that calculate,
the others with tests that wait for servers. So the processors always have work, and servers that
tests share, which take their part of a processor even when nobody asks them, are started by few
workers. At the end one has the machine but for a processor for itself, with the tests that run
alone, and others do what only calculates beside it.
"""

import os
from collections.abc import Iterable

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SPARK_SESSION = frozenset(
    f"tests/spark/{name}.py"
    for name in (
        "pipeline/test_archive",
        "pipeline/test_commands",
        "pipeline/test_compaction",
        "pipeline/test_copies",
        "pipeline/test_example",
        "pipeline/test_jobs",
        "pipeline/test_replicas",
        "pipeline/test_run",
        "test_connections",
        "test_outages",
        "test_reading",
        "test_secrets",
        "test_streaming",
        "test_writing",
    )
)
"""Files with tests that use the session."""
ALONE = frozenset(
    {
        "tests/acceptance/test_demo.py",
        "tests/acceptance/test_demo_super.py",
        "tests/acceptance/test_outage.py",
        "tests/dashboard/test_badge.py",
    }
)
"""Files with tests that have the machine for themselves: last, when nobody else has much to do, and
one after the other by one worker, so that not all of them wait for it."""
BESIDE = "tests/simulation/test_simulation_far.py"
"""Tests that only calculate, for half a minute and more of a processor in all: they come last, for
who runs alone leaves all processors but one to them."""
ROOMS: dict[str, tuple[str, ...]] = {
    "contract": ("tests/contract/", "tests/acceptance/"),
    "commands": ("tests/commands/", "tests/docs/"),
    "others": (
        "tests/spark/test_",
        "tests/spark/pipeline/test_kills",
        "tests/dashboard/",
        "tests/faults/",
    ),
}
"""Tests that wait most of the time; those of one room share servers."""
SHARE_NOTHING = "tests/simulation/"
"""Every test makes its own world, and twenty of one file take minutes."""


def together(nodeid: str) -> str:
    """What a test shares with all that its worker is to run."""
    if nodeid.startswith(SHARE_NOTHING):
        return nodeid
    file = nodeid.partition("::")[0]
    if file in ALONE:
        return "alone"
    return "a Spark session" if file in SPARK_SESSION else file


def room(scope: str) -> str:
    """Among which tests something is: those that share servers, or wait alike."""
    if scope == "alone":
        return scope
    if scope.startswith(BESIDE):
        return "beside"
    return next((name for name, paths in ROOMS.items() if scope.startswith(paths)), "calculating")


def choose(scopes: Iterable[str], worker: int, processors: int) -> str:
    """What a worker takes next: the first one of the room that it likes best of those left."""
    if worker < processors:
        order = ("calculating", *ROOMS)
    else:
        shift = (worker - processors) % len(ROOMS)
        names = tuple(ROOMS)
        order = (*names[shift:], *names[:shift], "calculating")
    return min(scopes, key=lambda scope: (*order, "alone", "beside").index(room(scope)))


class Sharing(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """As `--dist loadfile`, but for the files with a Spark session and for who takes what."""

    def _split_scope(self, nodeid: str) -> str:
        return together(nodeid)

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """A file that a worker is done with is forgotten: all that it has are counted each time
        that something is told, and run again if it dies."""
        super().mark_test_complete(node, item_index, duration)
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][scope].values()):
            del self.assigned_work[node][scope]

    def remove_node(self, node: WorkerController) -> str | None:
        """The test during which a worker died is not run again by the one that replaces it: it
        would die of it, too, and so would the next."""
        scopes = self.assigned_work[node]
        left = ((scope, one) for scope, unit in scopes.items() for one in unit if not unit[one])
        scope, crashed = next(left, ("", None))
        if crashed is not None:
            scopes[scope][crashed] = True
            if all(scopes[scope].values()):
                del scopes[scope]
        super().remove_node(node)
        return crashed

    def _assign_work_unit(self, node: WorkerController) -> None:
        worker = int(node.gateway.id.removeprefix("gw"))
        scope = choose(self.workqueue, worker, os.cpu_count() or 1)
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)
