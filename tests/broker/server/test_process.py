"""What is measured of the process."""

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jsctl.broker.server.process import (
    ASSET_OBJECTS,
    GROWN_BYTES,
    QUIET_LOOKS,
    SAMPLE_NS,
    YOUNG_OBJECTS,
    LongLived,
    MemoryRelief,
    ProcessMeter,
    memory_bytes,
)


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


@pytest.fixture
def young() -> Iterator[None]:
    """The collector looks at nothing by itself, and at all of it afterwards."""
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(10 * YOUNG_OBJECTS, 10, 10)
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.mark.parametrize(
    ("explained", "kept"), [(0, False), (YOUNG_OBJECTS // 2, False), (3 * YOUNG_OBJECTS, True)]
)
def test_objects_of_streams_are_put_aside(young: None, explained: int, kept: bool) -> None:
    """As many as new streams explain, and not those of anything else."""
    count = 0
    long_lived = LongLived(lambda: count)
    frozen = gc.get_freeze_count()
    made: list[list[int]] = [[] for _ in range(YOUNG_OBJECTS // 2)]
    long_lived.turned()
    assert gc.get_freeze_count() == frozen, "there are few yet"
    made += [[] for _ in range(YOUNG_OBJECTS)]
    count = explained // ASSET_OBJECTS
    long_lived.turned()
    assert (gc.get_freeze_count() >= frozen + len(made)) == kept
    assert (gc.get_count()[0] < YOUNG_OBJECTS) == kept


def test_streams_that_went_explain_nothing(young: None) -> None:
    count = YOUNG_OBJECTS
    long_lived = LongLived(lambda: count)
    made: list[list[int]] = [[] for _ in range(2 * YOUNG_OBJECTS)]
    long_lived.turned()
    frozen = gc.get_freeze_count()
    count = 10
    made += [[] for _ in range(2 * YOUNG_OBJECTS)]
    long_lived.turned()
    assert gc.get_freeze_count() == frozen
    count += YOUNG_OBJECTS // 10
    long_lived.turned()
    assert gc.get_freeze_count() > frozen


@pytest.mark.processes
@pytest.mark.parametrize("when", ["import", "node"])
def test_an_interrupt_while_it_starts_is_no_bug(tmp_path: Path, when: str) -> None:
    """Before the signal is trapped: while modules are loaded, and while the node is made."""
    code = f"""
import builtins, os, signal, sys
real = builtins.__import__
def interrupted(name, *rest, **named):
    if name == {"jsctl.commands.broker" if when == "import" else "jsctl.broker.node"!r}:
        os.kill(os.getpid(), signal.SIGINT)
    return real(name, *rest, **named)
builtins.__import__ = interrupted
from jsctl.__main__ import main
sys.argv = ["jsctl", "broker", "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", {str(tmp_path)!r}]
sys.exit(main())
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 130
    assert "Traceback" not in ended.stderr
    assert "Server is ready" not in ended.stderr


class Process:
    """What grows and shrinks, and a clock that the test moves."""

    def __init__(self) -> None:
        self.used = 10 << 20
        self.free = 0
        self.given_back = 0
        self.planned: list[tuple[float, Callable[[], None]]] = []
        self.relief = MemoryRelief(self._call_later, lambda: self.used + self.free, self._give)

    def _call_later(self, delay_s: float, work: Callable[[], None]) -> None:
        self.planned.append((delay_s, work))

    def _give(self) -> None:
        self.given_back += 1
        self.free = 0

    def look(self) -> None:
        ((_, work),) = self.planned
        self.planned = []
        work()

    def work(self, turns: int) -> None:
        for _ in range(turns):
            self.relief.turned()
        assert len(self.planned) == 1


def test_memory_goes_back_when_a_burst_of_work_is_over() -> None:
    process = Process()
    process.work(1000)
    process.free = 50 << 20
    process.look()
    assert process.given_back == 0, "it is at work"
    process.work(3)
    process.look()
    assert process.given_back == 1
    process.free = 20 << 20  # The log lets go of its last part
    process.look()
    assert process.given_back == 2
    process.look()
    assert not process.planned, "nobody looks at a server that does nothing"


def test_what_is_used_is_no_reason_to_look_for_more() -> None:
    process = Process()
    process.used = 500 << 20
    process.work(1)
    for _ in range(QUIET_LOOKS):
        process.look()
    assert process.given_back == 1
    process.work(1)
    process.free = GROWN_BYTES
    for _ in range(QUIET_LOOKS):
        process.look()
    assert process.given_back == 1
    process.work(1)
    process.free = GROWN_BYTES + 1
    process.look()
    assert process.given_back == 2
