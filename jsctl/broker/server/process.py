"""What the operating system says of this process: memory, processor, cores; and what memory of it
goes back there.
"""

import gc
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from jsctl.broker.turn import ProcessFacts

SAMPLE_NS = 1_000_000_000
LOOK_S = 2.0
"""So long after a turn it is looked whether the process may give memory back."""
QUIET_TURNS_MAX = 100
"""A server that ran no more turns than this between two looks is quiet."""
QUIET_LOOKS = 3
"""What a quiet server still lets go of (the log's last part, tables) is free by the third look."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Of `malloc.h`."""
PIECE_BYTES_MAX = 32 << 20
"""The largest that glibc takes."""
KEPT_BYTES_MAX = 64 << 20
"""What lies free at the end of the heap; more goes back at once."""
GROWN_BYTES = 4 << 20
"""So much more than after the last time has to be resident."""
YOUNG_OBJECTS = 2_000
"""So many that the collector has not looked at: whose they are is asked long before it does, as one
turn may make many."""
ASSET_OBJECTS = 250
"""So many are made for a stream, and two thirds of them for a consumer."""
STATM = Path("/proc/self/statm")


class ProcessMeter:
    """Measures at most once a second."""

    def __init__(self) -> None:
        self._cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        self._cores = self._cores or os.cpu_count() or 1
        self._runtime = f"python{sys.version.split()[0]}"
        self._measured_ns = 0
        self._cpu_ns = 0

    def sample(self, steady_ns: int) -> ProcessFacts | None:
        """A measurement, or None when the last one is young. `steady_ns` is monotonic."""
        elapsed_ns = steady_ns - self._measured_ns
        if self._measured_ns and elapsed_ns < SAMPLE_NS:
            return None
        cpu_ns = time.process_time_ns()
        used_ns = cpu_ns - self._cpu_ns if self._measured_ns else 0
        self._measured_ns, self._cpu_ns = steady_ns, cpu_ns
        return ProcessFacts(
            memory_bytes=memory_bytes(),
            cpu_percent=round(100 * used_ns / elapsed_ns, 1),
            cores=self._cores,
            runtime=self._runtime,
        )


class MemoryRelief:
    """Has the process give back what it does not use once a burst of work is over: what batches
    held at their peak is free then, and the C library keeps it."""

    __slots__ = ("_call_later", "_give_back", "_kept_bytes", "_looks", "_resident", "_turns")

    def __init__(
        self,
        call_later: Callable[[float, Callable[[], None]], object],
        resident: Callable[[], int] | None = None,
        give_back: Callable[[], None] | None = None,
    ) -> None:
        self._call_later = call_later
        self._resident = resident or memory_bytes
        self._give_back = give_back or give_back_memory
        self._turns = 0
        """Since the last look."""
        self._looks = 0
        """How many are left; 0: none is planned."""
        self._kept_bytes = 0
        """Resident when the last relief was over."""

    def turned(self) -> None:
        """A turn was run."""
        self._turns += 1
        if not self._looks:
            self._plan(QUIET_LOOKS)

    def _plan(self, looks: int) -> None:
        self._looks = looks
        if looks:
            self._call_later(LOOK_S, self._look)

    def _look(self) -> None:
        turns, self._turns = self._turns, 0
        if turns > QUIET_TURNS_MAX:
            self._plan(QUIET_LOOKS)
            return
        if self._resident() > self._kept_bytes + GROWN_BYTES:
            self._give_back()
            self._kept_bytes = self._resident()
        self._plan(self._looks - 1)


class LongLived:
    """Has the collector pass over what streams and consumers are made of.

    It would look at each of these objects twice and find that they stay: a tenth of what it takes
    to make a stream. When they are removed they go by themselves, as nothing of them holds itself.
    """

    __slots__ = ("_assets", "_known")

    def __init__(self, assets: Callable[[], int]) -> None:
        self._assets = assets
        self._known = 0
        """How many there were when they were last put aside, or fewer."""

    def turned(self) -> None:
        """A turn was run."""
        young = gc.get_count()[0]
        if young < YOUNG_OBJECTS:
            return
        assets = self._assets()
        if (assets - self._known) * ASSET_OBJECTS >= young:
            gc.freeze()
            self._known = assets
        else:
            self._known = min(self._known, assets)


def memory_bytes() -> int:
    """Resident memory; its peak where the current value is not told."""
    try:
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def keep_memory() -> None:
    """Have large pieces come from memory that the process keeps, until `MemoryRelief`.

    By itself the C library asks the system for each chunk of input from 128 KiB on and returns it
    at once, so that every page of it is made anew: that took more time than the messages in it.
    """
    import ctypes  # loaded late: a server that is ready has the time

    adjust = getattr(ctypes.CDLL(None), "mallopt", None)  # only glibc has it
    if adjust is not None:
        adjust(M_MMAP_THRESHOLD, PIECE_BYTES_MAX)
        adjust(M_TRIM_THRESHOLD, KEPT_BYTES_MAX)


def give_back_memory() -> None:
    """Let the system have what the process holds and does not use; takes some ms.

    The C library keeps freed memory that lies between used, for ever if nobody asks.
    """
    import ctypes  # loaded late: the first time is long after the start

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
    if trim is not None:
        trim(0)
