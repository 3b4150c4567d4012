"""What an interrupt leaves behind, said in a line before the program ends."""

from asyncio import CancelledError
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jsctl.commands.toolkit.invocation.call import Call


@contextmanager
def told(call: Call, left: Callable[[], str]) -> Iterator[None]:
    """`left` says it, after the body has tidied up."""
    try:
        yield
    except (CancelledError, KeyboardInterrupt):
        call.output.note(f"interrupted: {left()}")
        raise
