"""Runs a command to its end, through one interrupt or several.

A command is told of its first interrupt as the cancellation of its task, between two steps of the
loop: in the middle of a step it might end what is about to be answered. Interrupts right behind
the first one are taken for the same; a later one ends whatever runs, be it what takes half-written
files away. From before there is a loop until after it is closed interrupts are heard of here: what
Python makes of one while a loop is made or closed is a loop that is half there.

What asks the process to end (`kill`, a terminal that closes) is told in the same way, so that
nothing half-written is left and the terminal is as it was. Then the process ends by that very
signal, as it would have without, and after `ASKED_S` wherever it is.
"""

import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

TOLD_AGAIN_S = 1.5
"""How long a command has at least to end after an interrupt, its cleaning up included."""
ENDED_S = 1.0
"""How long what a command leaves behind has to end, as the making of a connection."""
ASKED_S = 10.0
"""How long a process that is asked to end has for it, whatever keeps it."""
READER_LEFT = 128 + signal.SIGPIPE
"""As a shell says it of a program that the signal ends, which Python does not hear of."""
UNHEARD: Mapping[signal.Signals, "Callable[[int, FrameType | None], object] | signal.Handlers"] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
"""Signals that are heard of, where nothing else was to become of them: `nohup` ignores one."""
_waiting: "list[Hearing]" = []
"""Of commands without a loop; one may run another."""
CO_COROUTINE = 0x80
"""As in `inspect`, which takes long to load."""

Begin = Callable[[], Awaitable[int | None]]
Run = Callable[[], int | None]
T = TypeVar("T")


def prepared(function: Callable[[T], "int | Awaitable[int | None] | None"], call: T) -> Run:
    """What runs a command's function. What that needs is loaded before: an interrupt while it is
    loaded would be lost."""
    running = partial(function, call)
    code = getattr(function, "__code__", None)
    if code is None or not code.co_flags & CO_COROUTINE:
        return partial(_for_a_reader, partial(_without_loop, cast(Run, running)))
    import_module("asyncio")
    return partial(_for_a_reader, partial(finished, cast(Begin, running)))


def _for_a_reader(run: Run) -> int | None:
    """What it comes to, or READER_LEFT for one that is broken off as nobody reads what it says.

    What was done before, and only not read to its end, stays what it is.
    """
    whole, result = False, None
    try:
        result = run()
        whole = True
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return result if whole else READER_LEFT


def _without_loop(command: Run) -> int | None:
    """What a command comes to that is soon over, but where it waits for a person or has much to do:
    there alone signals are heard of."""
    hearing = Hearing()
    _waiting.append(hearing)
    try:
        return command()
    finally:
        _waiting.remove(hearing)
        hearing.end_if_asked()


def waiting_hearing() -> "Hearing | None":
    """Who hears of signals where a command without a loop does so."""
    return _waiting[-1] if _waiting else None


def finished(command: Begin) -> int | None:
    """What it comes to. Raises KeyboardInterrupt for one that an interrupt ended."""
    from asyncio import CancelledError, new_event_loop, set_event_loop

    with _heard() as hearing:
        loop = new_event_loop()
        set_event_loop(loop)
        loop.set_exception_handler(_reported)
        try:
            return loop.run_until_complete(_awaited(command, hearing))
        except CancelledError:
            if hearing is None or not hearing.told:
                raise
            raise KeyboardInterrupt from None
        finally:
            try:
                _end_the_rest(loop)
            finally:
                set_event_loop(None)
                loop.close()  # A thread that looks for the address of a host is not waited for.


async def _awaited(command: Begin, hearing: "Hearing | None") -> int | None:
    """What it comes to; one that was interrupted before does not begin."""
    import asyncio

    if hearing is None:
        return await command()
    task = asyncio.current_task()
    assert task is not None
    with hearing.by(task):
        await asyncio.sleep(0)
        return await command()


def _end_the_rest(loop: "AbstractEventLoop") -> None:
    """Ends the tasks that are left, which may not wait for what never comes."""
    import asyncio

    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        waiting = loop.create_task(asyncio.wait(left, timeout=ENDED_S))
        while not waiting.done():
            with suppress(KeyboardInterrupt):  # One that was broken off tells it to those around.
                loop.run_until_complete(waiting)
    loop.run_until_complete(loop.shutdown_asyncgens())
    for task in left:
        if task.done() and not task.cancelled():
            task.exception()  # Nobody is left who could make anything of it.


def _reported(loop: "AbstractEventLoop", context: dict[str, object]) -> None:
    """As usual; but that a later interrupt broke something off is no news to who sent it."""
    if not isinstance(context.get("exception"), KeyboardInterrupt):
        loop.default_exception_handler(context)


@contextmanager
def _heard() -> "Iterator[Hearing | None]":
    """Signals are heard of within; None where nobody is to hear of them, or somebody else.

    Does not return if one asked for the end of the process.
    """
    ours = threading.current_thread() is threading.main_thread()
    heard = [one for one, before in UNHEARD.items() if ours and signal.getsignal(one) == before]
    if not heard:
        yield None
        return
    hearing = Hearing()
    for number in heard:
        signal.signal(number, hearing)
    try:
        yield hearing
    finally:
        for number in heard:
            signal.signal(number, UNHEARD[number])
        hearing.end_if_asked()


@contextmanager
def asked_by_interrupt() -> Iterator[None]:
    """Within it SIGTERM is to a command what an interrupt is, and nothing else."""
    handler = signal.getsignal(signal.SIGTERM)
    if not isinstance(handler, Hearing):
        yield
        return
    signal.signal(signal.SIGTERM, lambda _number, frame: handler(signal.SIGINT, frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


@contextmanager
def asked_to_stop(stop: Callable[[], None]) -> Iterator[None]:
    """Within it the first interrupt or SIGTERM only calls `stop`, between two steps of the loop.

    Those right behind it are taken for the same; a later one is what it is elsewhere.
    """
    from asyncio import get_running_loop

    loop, first = get_running_loop(), 0.0
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    heard = {number: one for number, one in before.items() if isinstance(one, Hearing)}

    def came(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if not first:
            first = monotonic()
            loop.call_soon_threadsafe(stop)
        elif monotonic() > first + TOLD_AGAIN_S:
            heard[signal.Signals(number)](number, frame)

    for number in heard:
        signal.signal(number, came)
    try:
        yield
    finally:
        for number, handler in heard.items():
            signal.signal(number, handler)
            handler.knows_of(first)


class Hearing:
    """Hears of interrupts and tells the task of a command."""

    def __init__(self) -> None:
        self._task: Task[int | None] | None = None
        self._first = 0.0
        """When the first one came; 0 until then."""
        self._number = signal.SIGINT
        """Which one that was."""
        self._late: threading.Timer | None = None
        self.told = False
        """Whether the command knows of it."""

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        """One came."""
        if not self._first:
            self._note(number)
            self._ask()
        elif monotonic() > self._first + TOLD_AGAIN_S:
            self.told = True
            raise KeyboardInterrupt

    def at_once(self, number: int, _frame: FrameType | None) -> None:
        """One came where nothing is lost if the rest is not done."""
        if not self._first:
            self._note(number)
        self.told = True
        raise KeyboardInterrupt

    def knows_of(self, moment: float) -> None:
        """One that came then was the first, and the command was told of it; 0 for none."""
        self._first = self._first or moment

    def _note(self, number: int) -> None:
        self._first, self._number = monotonic(), signal.Signals(number)
        if self._number is not signal.SIGINT:
            self._late = threading.Timer(ASKED_S, os._exit, [128 + number])
            self._late.daemon = True
            self._late.start()

    def end_if_asked(self) -> None:
        """Ends the process by the signal that asked for it; nobody hears of that any more."""
        if self._late is None:
            return
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        signal.signal(self._number, signal.SIG_DFL)
        signal.raise_signal(self._number)

    @contextmanager
    def by(self, task: "Task[int | None]") -> "Iterator[None]":
        """Within it this task hears of it, also of one that came before."""
        self._task = task
        if self._first:
            self._ask()
        try:
            yield
        finally:
            self._task = None

    def take(self) -> bool:
        """Whether the first one came that nobody was told of yet: whoever asks is by this, as a
        step that waits for something keeps the loop from the next one."""
        taken = bool(self._first) and not self.told
        self.told = self.told or taken
        return taken

    def _ask(self) -> None:
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        if self._task is not None and not self.told:
            self.told = True
            self._task.cancel()
            self._task.get_loop().call_later(TOLD_AGAIN_S, self._tell_again)

    def _tell_again(self) -> None:
        """Until it ends: what it waits for may make something else of its cancellation, and then
        it would go on for ever."""
        if self._task is not None and self._task.cancelling():
            self._task.uncancel()  # Who counts finds the one interrupt that there was.
            self._task.cancel()
            self._task.get_loop().call_later(TOLD_AGAIN_S, self._tell_again)
