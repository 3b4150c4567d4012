"""Reading of standard input, which Ctrl-C ends.

In a loop of asyncio the first interrupt only cancels the task, which hears of it at its next wait:
who reads a pipe that stays open would go on reading.
"""

import signal
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from jsctl.commands.toolkit.invocation.finishing import Hearing

T = TypeVar("T")


def interruptible(read: "Callable[[], T]") -> "T":
    """What `read` returns. Raises KeyboardInterrupt when it is interrupted, or was just before.

    Only the main thread hears of signals; in others it is as it is without.
    """
    if threading.current_thread() is not threading.main_thread():
        return read()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if was_interrupted(before):
            raise KeyboardInterrupt
        return read()
    finally:
        signal.signal(signal.SIGINT, before)


def was_interrupted(handler: object) -> bool:
    """Whether an interrupt came that this handler of signals, or the task, knows of: who begins to
    wait in this step of a loop would not hear of it."""
    return (isinstance(handler, Hearing) and handler.take()) or _is_cancelled()


def _is_cancelled() -> bool:
    if (asyncio := sys.modules.get("asyncio")) is None:
        return False  # It takes long to load, and no loop runs without it.
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs
        return False
    return task is not None and task.cancelling() > 0
