"""What a bundle of strangers may take of this machine before it is given up."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from jsctl.commands.toolkit.templating.budget import Budget
from jsctl.errors import JsctlError

STEPS_MAX = 500_000
WRITTEN_MAX = 64 * 1024 * 1024
STRETCH_READ = 8
"""So many characters of a template are a step when it is read."""
RENDER_S = 30
"""Of one file; a page takes milliseconds."""
CHECK_S = 2
"""Of one condition or one text of a form: a pattern may go astray where no step is counted."""


def new_budget() -> Budget:
    """Of everything that a bundle writes, or of one text of its form."""
    return Budget(STEPS_MAX, WRITTEN_MAX)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Ends with JsctlError what takes longer, loops of the interpreter's own libraries too.

    There is one alarm in a process, and only its main thread hears it; in others there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise JsctlError(f"the bundle works for more than {seconds:g} s on one thing")

    before = signal.signal(signal.SIGALRM, ring)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, before)
