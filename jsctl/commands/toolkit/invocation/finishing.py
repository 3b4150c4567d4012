"""Runs a command to its end, through one interrupt or several."""

import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine
from importlib import import_module
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

TOLD_AGAIN_S = 2.0
"""How long a command has at least to end after an interrupt, its cleaning up included."""
CO_COROUTINE = 0x80
"""As in `inspect`, which takes long to load."""


def prepare_for(function: Callable[..., object]) -> None:
    """Load what `finished` needs for it: an interrupt while that is loaded would be lost."""
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & CO_COROUTINE:
        import_module("asyncio")


def finished(running: "Awaitable[int | None]") -> int | None:
    """What it comes to; one that an interrupt keeps from beginning is ended all the same."""
    before = signal.getsignal(signal.SIGINT)
    try:
        import asyncio

        return asyncio.run(_awaited(running))
    finally:
        if signal.getsignal(signal.SIGINT) is not before and _hears_signals():
            signal.signal(signal.SIGINT, before)
        if isinstance(running, Coroutine):
            running.close()


async def _awaited(running: "Awaitable[int | None]") -> int | None:
    """What it comes to. An interrupt is told again until it ends: below Python 3.12 `wait_for`
    forgets one that comes with what it waits for, and a command would go on for ever.

    Whether there was one the task does not know: below Python 3.13 a group whose parts fail leaves
    it as one that is to end.
    """
    import asyncio

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    timer = loop.call_later(TOLD_AGAIN_S, lambda: look(0))

    def look(before: int) -> None:
        nonlocal timer
        heard = task.cancelling() if hearing is not None and hearing.told else 0
        if before and heard:
            task.uncancel()  # Who counts finds the one interrupt that there was.
            task.cancel()
        timer = loop.call_later(TOLD_AGAIN_S, look, heard)

    hearing = _hear_once(loop)
    try:
        return await running
    except asyncio.CancelledError:
        while task.cancelling() > 1:
            task.uncancel()
        raise
    finally:
        timer.cancel()


def _hear_once(loop: "AbstractEventLoop") -> "Hearing | None":
    """From now on interrupts right behind the first one are taken for the same. None where nobody
    is to hear of them.

    The command is told of its first interrupt between two steps of the loop, or it might end what a
    step is about to answer. At any other the loop breaks off whatever runs, be it what takes
    half-written files away.
    """
    tell = signal.getsignal(signal.SIGINT)
    if not _hears_signals() or not callable(tell) or tell is signal.default_int_handler:
        return None
    hearing = Hearing(loop, tell)
    signal.signal(signal.SIGINT, hearing)
    return hearing


class Hearing:
    """Hears of interrupts instead of the loop, and tells it as `_hear_once` says."""

    def __init__(
        self, loop: "AbstractEventLoop", tell: Callable[[int, FrameType | None], object]
    ) -> None:
        self._loop = loop
        self._tell = tell
        self._first = 0.0
        """When the first one came; 0 until then."""
        self.told = False
        """Whether the loop knows of it."""

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """One came."""
        if not self._first:
            self._first = monotonic()
            self._loop.call_soon_threadsafe(self._tell_first)
        elif monotonic() > self._first + TOLD_AGAIN_S:
            self._tell_first()
            self._tell(number, frame)

    def take(self) -> bool:
        """Whether the first one came that nobody was told of yet: whoever asks is by this, as a
        step that waits for something keeps the loop from the next one."""
        taken = bool(self._first) and not self.told
        self.told = self.told or taken
        return taken

    def _tell_first(self) -> None:
        if not self.told:
            self.told = True
            self._tell(signal.SIGINT, None)


def _hears_signals() -> bool:
    """Only the main thread does."""
    return threading.current_thread() is threading.main_thread()
