"""A bar for work that takes a while, on stderr, and only for people who see it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from jsctl.commands.toolkit.invocation.call import Call

if TYPE_CHECKING:
    from rich.progress import ProgressColumn


@contextmanager
def bar_of(call: Call, total_bytes: int) -> "Iterator[Callable[[int], None]]":
    """A bar while the body runs, and what is told of so many more bytes that are done.

    However that ends, the terminal is as it was. Nothing is shown off a terminal, without a total,
    or when unwanted.
    """
    wanted = call.flag("progress") and not call.settings.trace
    if not (wanted and total_bytes and call.output.stderr.isatty()):
        yield lambda done_bytes: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=call.output.stderr)) as bars:
        task = bars.add_task("", total=total_bytes)
        yield lambda done_bytes: bars.advance(task, done_bytes)


class Counted(Protocol):
    """What hears how many are left, or how far each of several is."""

    def __call__(self, left: int, of: str = "") -> None: ...


@contextmanager
def counting(call: Call, total: int = 0, what: str = "") -> "Iterator[Counted]":
    """Bars of what is left: one of `total`, or one for each name, as long as it was at first.

    Nothing is shown off a terminal.
    """
    if not call.output.stderr.isatty() or call.settings.trace:
        yield lambda left, of="": None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns: list[ProgressColumn] = [
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    ]
    with Progress(*columns, console=Console(file=call.output.stderr)) as bars:
        tasks = {what: bars.add_task(what, total=total)} if total else {}

        def told(left: int, of: str = "") -> None:
            name = of or what
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=left)
            task = bars.tasks[bars.task_ids.index(tasks[name])]
            most = max(left, int(task.total or 0))
            bars.update(tasks[name], total=most, completed=most - left)

        yield told
