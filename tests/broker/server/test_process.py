"""What is measured of the process."""

import os

from jsctl.broker.server.process import SAMPLE_NS, ProcessMeter, memory_bytes


def test_measures_once_a_second() -> None:
    meter = ProcessMeter()
    first = meter.sample(1)
    assert first is not None
    assert first.cpu_percent == 0 and 1 <= first.cores <= (os.cpu_count() or 1)
    assert first.runtime.startswith("python3.")
    assert meter.sample(SAMPLE_NS) is None
    sum(range(200_000))
    second = meter.sample(SAMPLE_NS + 1)
    assert second is not None and second.cpu_percent > 0


def test_memory_is_that_of_this_process() -> None:
    assert 10_000_000 < memory_bytes() < 10_000_000_000
