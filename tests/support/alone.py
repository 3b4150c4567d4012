"""Tests that measure time run alone, also when others run in parallel.

Every test holds a lock together with the others; one marked `alone` holds it for itself. Whoever
waits for that keeps the gate, so that no new test starts meanwhile. The locks are of files, which
the system gives back when a process ends in whatever way.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def taking_part(directory: Path, *, alone: bool) -> Iterator[None]:
    """Run a test beside those of other processes with this directory, or `alone`."""
    with (directory / "gate").open("w") as gate, (directory / "running").open("w") as running:
        fcntl.flock(gate, fcntl.LOCK_EX)
        try:
            fcntl.flock(running, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        finally:
            fcntl.flock(gate, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(running, fcntl.LOCK_UN)
