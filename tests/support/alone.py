"""Tests that measure time run alone, also when others run in parallel.

Every test holds a lock together with the others; one marked `alone` holds it for itself. Whoever
waits for that keeps the gate, so that no new test starts meanwhile. Tests that only calculate may
sit beside it, on all processors but one: a seat is a lock, too. The locks are of files, which the
system gives back when a process ends in whatever way.
"""

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def taking_part(directory: Path, *, alone: bool, seats: int = 0) -> Iterator[None]:
    """Run a test beside those of other processes with this directory, or `alone`; or on one of so
    many `seats`, if one is free."""
    with ExitStack() as held:
        if not any(_locked(held, directory / f"seat{n}", fcntl.LOCK_NB) for n in range(seats)):
            with ExitStack() as waiting:
                _locked(waiting, directory / "gate")
                _locked(held, directory / "running", 0 if alone else fcntl.LOCK_SH)
        yield


def _locked(held: ExitStack, path: Path, how: int = 0) -> bool:
    """Have a lock until `held` ends: for itself, unless `how` says it is shared. Whether it is had:
    always, where `how` does not say not to wait."""
    file = held.enter_context(path.open("w"))
    try:
        fcntl.flock(file, how if how & fcntl.LOCK_SH else how | fcntl.LOCK_EX)
    except BlockingIOError:
        return False
    held.callback(fcntl.flock, file, fcntl.LOCK_UN)
    return True
