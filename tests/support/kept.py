"""Servers that stay up for the whole session once a test has asked for them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from typing import TypeVar

T = TypeVar("T")


def kept(start: Callable[[str], AbstractContextManager[T]]) -> Iterator[Callable[[str], T]]:
    """The body of a session's fixture: it gives the server of a kind, started at most once.

    A fixture with parameters alone would stop one kind whenever a test asks for the other one.
    """
    with ExitStack() as running:
        yield cache(lambda kind: running.enter_context(start(kind)))
