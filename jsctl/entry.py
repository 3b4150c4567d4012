"""The command line, and a short way to the broker that loads nothing of the front end."""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import NoReturn

from jsctl import INTERRUPTED


def leave(status: int) -> NoReturn:
    """End the process as it stands.

    Taking the interpreter apart would keep it for tens of milliseconds, and nothing is left to do.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def serve_broker(words: Sequence[str], begin: Callable[[], None] = lambda: None) -> NoReturn:
    """Run `jsctl broker` with the words behind it, and end the process with it."""
    gc.disable()  # Nothing of what is loaded goes again; the broker begins to collect itself.
    try:
        from jsctl.commands.broker import main as run_broker

        begin()
        status = run_broker(words, leave)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:  # of its help in a pager that was left
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 0
    leave(status)


def _with_all_streams() -> None:
    """What a shell has closed (`>&-`) leads nowhere; else the next file or socket would get it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            setattr(sys, name, os.fdopen(_nowhere(number), mode, encoding="utf-8"))


def _with_all_texts() -> None:
    """What an encoding does not have is shown in escapes; bytes that are no text go out as they
    came in. Neither is an error: names and messages are anybody's."""
    if isinstance(sys.stdout, TextIOWrapper):
        whole = sys.stdout.encoding.lower() in ("utf-8", "utf8")
        sys.stdout.reconfigure(errors="surrogateescape" if whole else "backslashreplace")


def _nowhere(number: int) -> int:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    return number


def run(begin: Callable[[], None]) -> int:
    """Run the command line; the exit status is returned. `begin` is called when all that a command
    needs is loaded: from then on an interrupt is the command's."""
    _with_all_streams()
    _with_all_texts()
    if sys.argv[1:2] == ["broker"]:
        serve_broker(sys.argv[2:], begin)
    if sys.argv[1:2] == ["__complete"]:
        from jsctl.completion import main as run_completion

        leave(run_completion(sys.argv[2:]))
    from jsctl.cli import main as run_cli

    status = 1  # of an error whose page somebody has read enough of
    try:
        status = run_cli(sys.argv[1:], _near, begin)
        sys.stdout.flush()
    except BrokenPipeError:
        _nowhere(1)
    if _waits_for_an_address():
        leave(status)
    return status


def _waits_for_an_address() -> bool:
    """Whether a thread of the loop, which is over, looks for one: Python would wait for it, and
    nobody is left who wants it. Those that began processes end them first."""
    if "concurrent.futures.thread" not in sys.modules or "multiprocessing" in sys.modules:
        return False
    import threading

    return any(one.name.startswith("asyncio_") for one in threading.enumerate())


def _near(words: Sequence[str]) -> tuple[str, ...]:
    """Hints for a name that nobody knows; what they need is loaded only then."""
    from jsctl.completion.near import near_hints

    return near_hints(words, os.environ)
