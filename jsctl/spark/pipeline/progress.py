"""What a person sees while Spark works: phases from the first second, then a bar a reader.

Readers publish how far they are on a core NATS subject; this side subscribes with a connection of
its own, in a thread. Losing such a message is harmless. Off a terminal nothing is shown.
"""

import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from jsctl.errors import JsctlError
from jsctl.settings import Settings

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, Task, TaskID

    from jsctl.spark.connection.wire import Wire

LISTEN_S = 0.5
BARS_MAX = 16
"""More readers than that share one bar."""


def new_subject() -> str:
    """A subject of one run."""
    return f"_JSCTL.progress.{secrets.token_hex(8)}"


def _columns() -> "tuple[ProgressColumn, ...]":
    from rich.progress import (
        BarColumn,
        ProgressColumn,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """Messages a second."""

        def render(self, task: "Task") -> Text:
            """The rate once it is known."""
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f}/s" if speed else "", justify="right")

    return (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )


class Display:
    """Phases and bars on a terminal; silence elsewhere."""

    def __init__(self, stderr: TextIO, settings: Settings, *, enabled: bool = True) -> None:
        self.enabled = enabled and stderr.isatty()
        self.subject = new_subject() if self.enabled else ""
        self._settings = settings
        self._stderr = stderr
        self._progress: Progress | None = None
        self._phase: TaskID | None = None
        self._bars: dict[str, TaskID] = {}
        self._done = threading.Event()
        self._lock = threading.Lock()

    def phase(self, text: str) -> None:
        """What is being done now."""
        if self._progress is not None and self._phase is not None:
            self._progress.update(self._phase, description=text)

    def note(self, text: str) -> None:
        """A part is done: its bars go, `text` says what was done."""
        self.clear()
        self.phase(text)

    def advance(self, name: str, completed: int, total: int) -> None:
        """Move one bar; made when it is new."""
        progress = self._progress
        if progress is None:
            return
        with self._lock:
            if name not in self._bars:
                if len(self._bars) >= BARS_MAX:
                    progress.remove_task(self._bars.pop(next(iter(self._bars))))
                self._bars[name] = progress.add_task(name, total=max(1, total))
            progress.update(self._bars[name], completed=completed, total=max(1, total))

    def clear(self) -> None:
        """Remove all bars, before the next batch."""
        with self._lock:
            for task in self._bars.values():
                if self._progress is not None:
                    self._progress.remove_task(task)
            self._bars.clear()

    @contextmanager
    def shown(self, phase: str) -> "Iterator[Display]":
        """The display, as long as the work takes."""
        if not self.enabled:
            yield self
            return
        from rich.console import Console
        from rich.progress import Progress

        console = Console(file=self._stderr)
        with Progress(*_columns(), console=console, transient=True) as progress:
            self._progress = progress
            self._phase = progress.add_task(phase, total=None)
            listener = threading.Thread(target=self._listen, daemon=True)
            listener.start()
            try:
                yield self
            finally:
                self._done.set()
                listener.join(2 * LISTEN_S)
                self._progress = None

    def _listen(self) -> None:
        while not self._done.is_set():
            try:
                self._follow()
            except (JsctlError, OSError):
                self._done.wait(LISTEN_S)

    def _follow(self) -> None:
        from jsctl.spark.connection.wire import open_wire

        wire = open_wire(self._settings)
        try:
            wire.subscribe(self.subject)
            while not self._done.is_set():
                self._take(wire)
        finally:
            wire.close()

    def _take(self, wire: "Wire") -> None:
        try:
            message = wire.receive(time.monotonic() + LISTEN_S)
        except TimeoutError:
            return
        try:
            told = json.loads(message.payload)
            first, last, seq = (int(told[key]) for key in ("first", "last", "seq"))
            name = f"{told['stream']} {first:,} to {last:,}"
        except (ValueError, KeyError, TypeError):
            return
        self.phase("reading")
        self.advance(name, seq - first + 1, last - first + 1)
