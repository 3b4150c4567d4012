"""Servers that stay up for all tests of a session or package once one has asked for them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from typing import TypeVar

T = TypeVar("T")


def kept(start: Callable[[str], AbstractContextManager[T]]) -> Iterator[Callable[[str], T]]:
    """A fixture of a session or package: it gives the server of a kind, started at most once.

    A fixture with parameters alone would stop one kind whenever a test asks for the other one.
    """
    with ExitStack() as running:
        yield cache(lambda kind: running.enter_context(start(kind)))
