"""Ctrl-C just before a command begins to wait for its input ends it: the loop tells of an interrupt
between two of its steps, and the one that waits is the last."""

import os
import signal
import sys
from collections.abc import Iterator

import pytest

from jsctl.commands.toolkit.invocation.finishing import finished
from jsctl.commands.toolkit.invocation.prompts import Prompts
from jsctl.commands.toolkit.invocation.reading import interruptible
from jsctl.errors import Aborted


class Input:
    """Of a program: who reads it would wait for ever."""

    def __init__(self) -> None:
        self.is_read = False

    def readline(self) -> str:
        self.is_read = True
        return "y\n"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Iterator[Input]:
    """Input and signals as in a program's own process."""
    made = Input()
    monkeypatch.setattr(sys, "stdin", made)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield made
    signal.signal(signal.SIGINT, before)


def test_what_is_read_in_the_same_step_is_not_waited_for(given: Input) -> None:
    async def command() -> int:
        os.kill(os.getpid(), signal.SIGINT)
        interruptible(given.readline)
        return 0

    with pytest.raises(KeyboardInterrupt):
        finished(command)
    assert not given.is_read


def test_a_question_in_the_same_step_is_not_waited_for(given: Input) -> None:
    async def command() -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return int(Prompts().confirm("Go on?"))

    with pytest.raises((Aborted, KeyboardInterrupt)):
        finished(command)
    assert not given.is_read
