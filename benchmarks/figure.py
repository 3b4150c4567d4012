"""One measured value, and the watch that takes it: time, and the CPU that the servers spent."""

import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.wire import Address

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value; `higher` says which direction is better.

    `cpu_us`: microseconds of CPU, user and system, that all servers together spent on each
    message; 0 where it was not taken. It is steady where throughput is noisy.
    """

    value: float
    unit: str
    higher: bool = True
    cpu_us: float = 0.0


def median(figures: Sequence[Figure]) -> Figure:
    """The middle value, and beside it the middle CPU, which may come from another run."""
    first = figures[0]
    return Figure(
        statistics.median(one.value for one in figures),
        first.unit,
        first.higher,
        statistics.median(one.cpu_us for one in figures),
    )


class Stopwatch:
    """Runs from when it is made."""

    def __init__(self, at: Address) -> None:
        self._pids = at.pids
        self._cpu_s = cpu_s(at.pids)
        self._start = time.perf_counter()

    def rate(self, count: int) -> Figure:
        """`count` messages went through until now: how many a second."""
        took = time.perf_counter() - self._start
        return Figure(count / took, "msg/s", cpu_us=self._cpu_us(count))

    def latencies(self, times_s: Sequence[float]) -> tuple[Figure, Figure]:
        """p50 and p99 of as many messages, taken one after the other until now."""
        cpu_us = self._cpu_us(len(times_s))
        cuts = statistics.quantiles(times_s, n=100)
        return (
            Figure(cuts[49] * 1e6, "us", higher=False, cpu_us=cpu_us),
            Figure(cuts[98] * 1e6, "us", higher=False, cpu_us=cpu_us),
        )

    def _cpu_us(self, count: int) -> float:
        return (cpu_s(self._pids) - self._cpu_s) / count * 1e6


def cpu_s(pids: Sequence[int]) -> float:
    """Seconds of CPU, user and system, that processes have spent; in steps of 10 ms."""
    ticks = 0
    for pid in pids:
        # The name of the program, in parentheses, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS_PER_S
