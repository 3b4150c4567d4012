"""A test that nothing can wake is named as failed, and the others run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.processes, pytest.mark.slow]
ROOT = Path(__file__).parent.parent
CONFTEST = """
import pytest
from tests.support.hangs import begin_again, keep_errors, limited, raise_again
from tests.support.sharing import Sharing

def pytest_configure(config):
    keep_errors(config)

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    with limited(item.config, 2):
        return (yield)

@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(settings):
    made = yield
    raise_again(settings.timeout, 0.5)
    return made

@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node):
    begin_again(node.config, 2)

@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return Sharing(config, log)
"""
TESTS = """
import asyncio
import signal
import threading
import pytest

def hang():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    threading.Event().wait()

@pytest.fixture
def never_ends():
    yield
    hang()

def test_before():
    pass

def test_hangs():
    hang()

def test_fails_and_hangs_at_its_end(never_ends):
    raise ValueError

def test_loop_goes_on():
    async def wait():
        loop = asyncio.get_running_loop()
        loop.call_soon(busy.wait)
        await loop.create_future()

    busy = threading.Event()
    asyncio.run(wait())

def test_after():
    pass
"""


def test_what_hangs_costs_its_worker_and_not_the_run(tmp_path: Path) -> None:
    tmp_path.joinpath("conftest.py").write_text(CONFTEST)
    tmp_path.joinpath("test_any.py").write_text(TESTS)
    words = ["-q", "-n", "1", "--dist", "loadfile", "-p", "no:cacheprovider", "--timeout", "1"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *words, f"--rootdir={tmp_path}", str(tmp_path)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1
    assert "in hang" in ended.stderr, "where it was is not told"
    failed = re.findall(r"^FAILED test_any\.py::(\w+)", ended.stdout, re.MULTILINE)
    assert {*failed} == {"test_hangs", "test_fails_and_hangs_at_its_end", "test_loop_goes_on"}
    assert "crashed while running 'test_any.py::test_hangs'" in ended.stdout
    assert "crashed while running 'test_any.py::test_loop" not in ended.stdout
    assert "2 passed" in ended.stdout
