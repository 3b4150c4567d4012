"""A bar for work that takes a while, on stderr, and only for people who see it."""

from typing import TYPE_CHECKING

from jsctl.commands.toolkit.invocation.call import Call

if TYPE_CHECKING:
    from rich.progress import Progress as Bars


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
