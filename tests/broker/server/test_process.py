"""What is measured of the process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
