"""`python -m jsctl`, and where the program `jsctl` begins.

From here on Ctrl-C ends the process without a word, whatever is being loaded, until the command
itself begins; when it comes earlier Python shows where it was. So nothing is loaded here that
Python has not loaded already.
"""

import _signal  # type: ignore[import-not-found]  # what `signal` wraps; that one takes longer
import atexit
import os
import sys

from jsctl import INTERRUPTED


def main() -> int:
    """Run the command line; the exit status is returned.

    An interrupt that is ignored, as in a background job, stays so. One that comes behind the
    command, while threads are waited for, ends the process too; once Python is taken apart, which
    is soon over, it is ignored: it would kill a process that ends with another status.
    """
    early = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
    if early:
        _signal.signal(_signal.SIGINT, _end)
        atexit.register(_signal.signal, _signal.SIGINT, _signal.SIG_IGN)
    from jsctl.entry import run

    def begin() -> None:
        # Not before: Python shows and forgets what is raised just as it lets go of a module.
        if early:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)

    try:
        return run(begin)
    except KeyboardInterrupt:  # behind the command
        return INTERRUPTED
    finally:
        if early:
            _signal.signal(_signal.SIGINT, _end)


def _end(_number: int, _frame: object) -> None:
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
