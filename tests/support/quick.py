"""The quick run, `pytest --quick`: what starts no server and takes no long time.

Nothing slips in: a program that a test of a quick run starts is refused, and the test fails.
"""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

T = TypeVar("T")

LEFT_OUT = ("processes", "slow", "spark_long")
DIRECTORIES = ("acceptance", "contract", "simulation", "commands/parity")
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

MARKS_OF_A_FILE = re.compile(r"^pytestmark = (?:\[[^]]*\]|.*)", re.MULTILINE)
A_MARK = re.compile(r"\bpytest\.mark\.(\w+)")

QUICK, WHOLE = "suite, quick", "suite"
"""Profiles of hypothesis."""
EXAMPLES = 100
"""Of a test that asks for no number, in a whole run; a quick run tries a fifth of all."""
STEP = 7
"""Of so many places a quick run tries one; not a factor of 8, so that all bits have their turn."""


def choose_profile(*, quick: bool) -> None:
    """How many examples the tests try; before their modules are read."""
    for name, count in ((WHOLE, EXAMPLES), (QUICK, EXAMPLES // 5)):
        settings.register_profile(
            name,
            deadline=None,
            max_examples=count,
            suppress_health_check=[HealthCheck.too_slow],  # Of a busy machine, not of a strategy
        )
    settings.load_profile(QUICK if quick else WHOLE)


def examples(count: int) -> int:
    """So many in a whole run, and of that a fifth in a quick one."""
    return max(1, count * settings().max_examples // EXAMPLES)


def places(every: Sequence[T]) -> Sequence[T]:
    """All of them in a whole run, and some in a quick one."""
    return every if settings().max_examples >= EXAMPLES else every[::STEP]


def is_quick(item: pytest.Item) -> bool:
    """Whether the quick run has this test."""
    if any(item.get_closest_marker(name) for name in LEFT_OUT):
        return False
    return not FIXTURES.intersection(getattr(item, "fixturenames", ()))


def is_left_out(path: Path, tests: Path) -> bool:
    """Whether the quick run need not even look into a directory or file.

    To read a test and all that it imports takes longer than many a test; a file whose own mark is
    one that leaves out has none to run.
    """
    if not path.is_relative_to(tests):
        return False
    if path.suffix != ".py" or path.is_dir():
        return path.relative_to(tests).as_posix() in DIRECTORIES
    marks = MARKS_OF_A_FILE.search(path.read_text())
    return marks is not None and not set(LEFT_OUT).isdisjoint(A_MARK.findall(marks[0]))


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
