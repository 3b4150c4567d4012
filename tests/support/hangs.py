"""A test that hangs costs its worker, not the run.

Where a test takes too long, `pytest-timeout` raises in it. An event loop catches that where it
comes in the middle of a callback, so it is done again. It helps nobody where the interpreter is not
asked (in C), or where what a test put up hangs as it is taken down. Behind that limit stands this
one: it writes down where each thread is and ends the process; xdist says which test it was, counts
it as failed, and gives the rest to another worker.
"""

import faulthandler
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

LONGEST_S = 2_400
"""For a test and what is made for it, and for those it waits for: one that has the machine for
itself waits for those that run, and the others for that. The longest limit of a test is 1,500 s."""
AGAIN_S = 30
"""Between what is raised in a test; enough for what it put up to be taken down."""
ERRORS = pytest.StashKey[int]()


def keep_errors(config: pytest.Config) -> None:
    """Have where errors go, before they are taken to be shown with a test."""
    config.stash[ERRORS] = os.dup(2)


@contextmanager
def limited(config: pytest.Config, seconds: float = LONGEST_S) -> Iterator[None]:
    """End this process if what runs here takes longer."""
    begin_again(config, seconds)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def begin_again(config: pytest.Config, seconds: float = LONGEST_S) -> None:
    """Count from now on. Pytest stops the count where something is raised, also in the test."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=config.stash[ERRORS])


def raise_again(first_s: float, again_s: float = AGAIN_S) -> None:
    """What is to be raised after so long in the test that begins is raised again and again."""
    if signal.getsignal(signal.SIGALRM) not in (signal.SIG_DFL, signal.SIG_IGN, None):
        signal.setitimer(signal.ITIMER_REAL, first_s, again_s)
