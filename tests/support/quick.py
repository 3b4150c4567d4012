"""The quick run, `pytest --quick`: what starts no server and takes no long time.

Nothing slips in: a program that a test of a quick run starts is refused, and the test fails.
"""

import os
import sys
from pathlib import Path

import pytest

LEFT_OUT = ("processes", "slow", "spark_long")
DIRECTORIES = ("acceptance", "contract", "simulation")
"""Below `tests`, where every test is left out."""
FIXTURES = frozenset(
    {
        "broker",
        "cluster",
        "jsctl_broker",
        "jsctl_cluster",
        "jsctl_session_broker",
        "jsctl_session_cluster",
        "server",
        "spark",
    }
)
"""Whoever uses one of these needs a process."""
TOOLS = frozenset({"git", "ldconfig", "openssl"})
"""Programs that do one thing and end; `ctypes` asks `ldconfig` where a library is."""


def is_quick(item: pytest.Item) -> bool:
    """Whether the quick run has this test."""
    if any(item.get_closest_marker(name) for name in LEFT_OUT):
        return False
    return not FIXTURES.intersection(getattr(item, "fixturenames", ()))


def is_left_out(path: Path, tests: Path) -> bool:
    """Whether the quick run need not even look into a directory or file."""
    return path.parent == tests and path.name in DIRECTORIES


def refuse_programs() -> None:
    """From now on, and until this process ends, a test that starts a program fails."""
    sys.addaudithook(_heard)


def _heard(event: str, words: tuple[object, ...]) -> None:
    test = os.environ.get("PYTEST_CURRENT_TEST")
    if event != "subprocess.Popen" or test is None:
        return
    program = words[0]
    assert isinstance(program, str | bytes | os.PathLike)
    if Path(os.fsdecode(program)).name not in TOOLS:
        raise RuntimeError(f"{test} starts {program!r}: mark it with pytest.mark.processes")
