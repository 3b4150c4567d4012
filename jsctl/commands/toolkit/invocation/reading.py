"""Reading of standard input, which Ctrl-C ends.

In a loop of asyncio the first interrupt only cancels the task, which hears of it at its next wait:
who reads a pipe that stays open would go on reading.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from jsctl.commands.toolkit.invocation.finishing import UNHEARD, Hearing, waiting_hearing

T = TypeVar("T")


def interruptible(read: "Callable[[], T]") -> "T":
    """What `read` returns. Raises KeyboardInterrupt when it is interrupted, or was just before.

    Only the main thread hears of signals; in others it is as it is without.
    """
    with broken_off():
        return read()


@contextmanager
def broken_off() -> Iterator[None]:
    """A signal ends the body at once. Raises KeyboardInterrupt for it, and for one that came
    before: who begins to wait in this step of a loop would not hear of that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in UNHEARD}
    hearing = next((one for one in before.values() if isinstance(one, Hearing)), None)
    alone = waiting_hearing() if hearing is None else None
    for number, handler in before.items():
        if isinstance(handler, Hearing):
            signal.signal(number, handler.at_once)
        elif alone is not None and handler == signal.SIG_DFL:
            signal.signal(number, alone.at_once)
    if hearing is None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if (hearing is not None and hearing.take()) or _is_cancelled():
            raise KeyboardInterrupt
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_cancelled() -> bool:
    if (asyncio := sys.modules.get("asyncio")) is None:
        return False  # It takes long to load, and no loop runs without it.
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs
        return False
    return task is not None and task.cancelling() > 0
