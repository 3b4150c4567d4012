"""Interrupts that come in the same moment as what is waited for."""

import asyncio


def heed_interrupt() -> None:
    """Raises CancelledError if the task is to end: `asyncio.wait_for` of Python 3.11 passes over
    that when it has an answer already, and who reads on would never hear of it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
