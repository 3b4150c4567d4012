"""A bar for work that takes a while, on stderr, and only for people who see it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from jsctl.commands.toolkit.invocation.call import Call

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import ProgressColumn


class Progress:
    """One bar of bytes; nothing is shown off a terminal, without a total, or when unwanted."""

    def __init__(self, call: Call, total_bytes: int) -> None:
        self._bars: Bars | None = None
        wanted = call.flag("progress") and not call.settings.trace
        if wanted and total_bytes and call.output.stderr.isatty():
            self._bars = self._started(call, total_bytes)

    def _started(self, call: Call, total_bytes: int) -> "Bars":
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )
        from rich.progress import Progress as Bars

        columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        bars = Bars(*columns, console=Console(file=call.output.stderr))
        bars.add_task("", total=total_bytes)
        bars.start()
        return bars

    def add(self, done_bytes: int) -> None:
        """So much more is done."""
        if self._bars is not None:
            self._bars.advance(self._bars.task_ids[0], done_bytes)

    def end(self) -> None:
        """Leaves the bar as it is."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None


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
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns: list[ProgressColumn] = [
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    ]
    with Bars(*columns, console=Console(file=call.output.stderr)) as bars:
        tasks = {what: bars.add_task(what, total=total)} if total else {}

        def told(left: int, of: str = "") -> None:
            name = of or what
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=left)
            task = bars.tasks[bars.task_ids.index(tasks[name])]
            most = max(left, int(task.total or 0))
            bars.update(tasks[name], total=most, completed=most - left)

        yield told
