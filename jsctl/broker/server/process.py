"""What the operating system says of this process: memory, processor, cores."""

import ctypes
import os
import platform
import resource
import time
from pathlib import Path

from jsctl.broker.turn import ProcessFacts

SAMPLE_NS = 1_000_000_000
STATM = Path("/proc/self/statm")


class ProcessMeter:
    """Measures at most once a second."""

    def __init__(self) -> None:
        self._cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        self._cores = self._cores or os.cpu_count() or 1
        self._runtime = f"python{platform.python_version()}"
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


def memory_bytes() -> int:
    """Resident memory; its peak where the current value is not told."""
    try:
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def give_back_memory() -> None:
    """Let the system have what the process holds and does not use; takes some ms.

    The C library keeps freed memory that lies between used, for ever if nobody asks.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
    if trim is not None:
        trim(0)
