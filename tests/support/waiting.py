"""Wait on a fact, with a deadline. The one place where tests pause."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PAUSE_S = 0.02


def wait_for(fact: Callable[[], T], what: str, deadline_s: float = 60.0) -> T:
    """Call `fact` until it gives something true; AssertionError naming `what` at the deadline."""
    end = time.monotonic() + deadline_s
    while True:
        value = fact()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s} s: {what} (last: {value!r})")
        time.sleep(PAUSE_S)


async def eventually(
    fact: Callable[[], Awaitable[T | None]], what: str, deadline_s: float = 60.0
) -> T:
    """Await `fact` until it gives something true; AssertionError naming `what` at the deadline."""
    end = time.monotonic() + deadline_s
    while True:
        value = await fact()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s} s: {what} (last: {value!r})")
        await asyncio.sleep(PAUSE_S)
