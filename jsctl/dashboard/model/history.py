"""Samples over time: counters become rates, numbers become trends."""

from collections import deque

from jsctl.api.times import SECOND_NS

SAMPLES_MAX = 60
"""So many samples make a trend; older ones are forgotten."""


class Trail:
    """The last samples of a number."""

    __slots__ = ("samples",)

    def __init__(self) -> None:
        self.samples: deque[float] = deque(maxlen=SAMPLES_MAX)

    def add(self, value: float) -> None:
        """One more sample."""
        self.samples.append(value)

    @property
    def last(self) -> float:
        """The newest sample, 0 without any."""
        return self.samples[-1] if self.samples else 0.0

    @property
    def change(self) -> float:
        """Growth from the older half to the newer one, as a fraction; 0 without a past."""
        if len(self.samples) < 4:
            return 0.0
        values = list(self.samples)
        half = len(values) // 2
        before, after = sum(values[:half]) / half, sum(values[half:]) / (len(values) - half)
        return (after - before) / before if before else 0.0

    def tuple(self) -> tuple[float, ...]:
        """All samples, oldest first."""
        return tuple(self.samples)


class Meter:
    """A counter of somebody else, read now and then, as a rate.

    A restart lets a counter fall: that sample is 0, never negative. Time is the owner's, so that
    a slow answer does not look like a slow server.
    """

    __slots__ = ("count", "time_ns", "trail")

    def __init__(self) -> None:
        self.trail = Trail()
        self.count = 0
        self.time_ns = 0

    def read(self, count: int, time_ns: int) -> None:
        """The counter at a time; a reading that is not newer than the last one is ignored."""
        elapsed_ns = time_ns - self.time_ns
        if self.time_ns and elapsed_ns <= 0:
            return
        if self.time_ns:
            self.trail.add(max(0, count - self.count) * SECOND_NS / elapsed_ns)
        self.count, self.time_ns = count, time_ns

    @property
    def rate(self) -> float:
        """A second, by the last two readings."""
        return self.trail.last
