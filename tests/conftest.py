"""What holds for all tests: signals, the quick run, and the order of parallel runs."""

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from xdist.remote import Producer

from tests.support.alone import taking_part
from tests.support.hangs import begin_again, keep_errors, limited, raise_again
from tests.support.peers import forget_attempts, try_again
from tests.support.quick import choose_profile, is_left_out, is_quick, refuse_programs
from tests.support.reporting import tell_less
from tests.support.sharing import BESIDE, Sharing

# What fails in a walk is told with its values, as in a test.
pytest.register_assert_rewrite("tests.matrix")
TESTS = Path(__file__).parent
LONGEST_FIRST = (
    "spark/test_kills.py",
    "spark/test_outages.py",
    "spark/pipeline/test_kills.py",
    "spark/pipeline/test_commands.py",
    "spark/pipeline",
    "spark",
    "simulation",
    "acceptance",
    "dashboard",
    "test_testing_plugin.py",
    "contract/test_replicated_schedules.py",
    "contract",
    "commands/parity",
    "commands/test_interrupted.py",
    "commands",
    "docs",
    "fuzz",
    "test_tidy.py",
)
"""Where parallel runs begin; at the end, short tests let all workers end at the same time."""
COLLECT_AFTER = (20_000, 20, 20)
"""As in a broker that runs. With the interpreter's own (700 objects) a quarter of the time of the
dashboard's tests goes into looking through what will stay."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--quick`."""
    text = "only tests that start no servers and take no long time"
    parser.addoption("--quick", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Ctrl-C has its usual meaning in the programs that tests start and interrupt.

    A shell that starts the tests in the background has them ignore it, and what is ignored stays
    so in every process below.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(*COLLECT_AFTER)
    keep_errors(config)
    tell_less(config)
    choose_profile(quick=config.getoption("quick"))
    if config.getoption("quick"):
        refuse_programs()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A quick run does not import what it leaves out."""
    return True if config.getoption("quick") and is_left_out(collection_path, TESTS) else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """The garbage collector does not look meanwhile: nearly all that is made stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not quick, if so asked; in parallel, begin with what takes longest.

    Cases of the real server alone are tried again.
    """
    if config.getoption("quick"):
        config.hook.pytest_deselected(items=[one for one in items if not is_quick(one)])
        items[:] = [one for one in items if is_quick(one)]
    try_again(items)
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=_turn)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """The garbage collector looks no more through what stays until the end: 11,000 tests, and all
    modules that they need. It would do so twice after the last test, and at each of its full turns.
    """
    gc.freeze()


def _turn(item: pytest.Item) -> tuple[bool, int]:
    """Tests that run alone come last, when nobody else has much to do."""
    name = item.path.relative_to(TESTS).as_posix() if item.path.is_relative_to(TESTS) else ""
    turn = next((n for n, one in enumerate(LONGEST_FIRST) if name.startswith(one)), 99)
    return item.get_closest_marker("alone") is not None, turn


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> object:
    """Files stay whole, and those with a Spark session together."""
    return Sharing(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """A test that measures time has the machine for itself, but for those that only calculate on
    the other processors; one that was tried again leaves nothing behind."""
    try:
        if "PYTEST_XDIST_WORKER" not in os.environ:
            return (yield)
        shared = Path(item.config.option.basetemp).parent  # Of all workers of this run
        alone = item.get_closest_marker("alone") is not None
        seats = (os.cpu_count() or 1) - 1 if item.nodeid.startswith(BESIDE) else 0
        with limited(item.config), taking_part(shared, alone=alone, seats=seats):
            return (yield)
    finally:
        if getattr(item, "execution_count", 1) > 1:
            forget_attempts()


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(settings: Any) -> Generator[None, object, object]:
    """See `hangs`."""
    made = yield
    raise_again(settings.timeout)
    return made


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """What is left of a test that failed, its fixtures' ends, can hang as well."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        begin_again(node.config)
