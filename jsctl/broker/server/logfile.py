"""The operator's log, in the format that NATS operators and tools know.

    [4321] 2026/01/02 15:04:05.123456 [INF] Server is ready

Goes to stderr or to a file that may be reopened (for log rotation by others) or is rotated here.
"""

import logging
import os
import sys
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from jsctl.broker.errors import ConfigError
from jsctl.broker.options import LogOptions
from jsctl.broker.turn import LogLevel, LogLine

LEVELS = {
    logging.CRITICAL: LogLevel.FATAL,
    logging.ERROR: LogLevel.ERROR,
    logging.WARNING: LogLevel.WARNING,
    logging.INFO: LogLevel.INFO,
    logging.DEBUG: LogLevel.DEBUG,
}


LINE_CHARS_MAX = 8192
"""How much of a text a line shows. Lines of the protocol's trace have limits of their own:
`max_control_line`, and `max_traced_msg_len` for payloads."""


def one_line(text: str) -> str:
    """A text that may come from outside, as it may stand in a line of the log.

    Line breaks would start lines that nobody wrote, and a terminal obeys control characters: what
    is not printable is shown as an escape sequence.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


class ServerLog:
    """Formats and writes lines; levels that are off are dropped."""

    def __init__(self, options: LogOptions, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._file: TextIO | None = None
        self._size = 0
        self._prefix = f"[{os.getpid()}] "
        self.configure(options)

    def configure(self, options: LogOptions) -> None:
        """Take other options. Raises ConfigError if the file cannot be opened."""
        self.switch(options, self.opened(options))

    def opened(self, options: LogOptions) -> TextIO | None:
        """The file of other options, for `switch`. Raises ConfigError; nothing has changed then."""
        if not options.file:
            return None
        try:
            return Path(options.file).open("a", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise ConfigError(
                f"error opening log file: {error.strerror}",
                place=options.file,
                remedy="choose a path that can be written",
            ) from error

    def switch(self, options: LogOptions, file: TextIO | None) -> None:
        """Go on with other options, in a file that was `opened` for them."""
        self.close()
        self._file, self._size = file, file.tell() if file is not None else 0
        self._options = options
        self._shown = set(LogLevel)
        if not (options.trace or options.trace_verbose):
            self._shown.discard(LogLevel.TRACE)
        if not options.debug:
            self._shown.discard(LogLevel.DEBUG)

    def reopen(self) -> None:
        """Open the file anew, as it may have been moved. Raises ConfigError."""
        self.close()
        self.configure(self._options)

    def close(self) -> None:
        """Close the file; later lines go to stderr."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def write(self, lines: list[LogLine]) -> None:
        """Write a batch of lines with one call."""
        text = "".join(self.format(line) for line in lines if line.level in self._shown)
        if not text:
            return
        try:
            stream = self._file or self._stream
            stream.write(text)
            stream.flush()
        except (OSError, ValueError):
            return  # A full disk or a closed stderr must not stop the server.
        self._size += len(text)
        if self._file is not None and 0 < self._options.size_bytes_max < self._size:
            self._rotate()

    def line(self, level: LogLevel, text: str) -> None:
        """Write one line."""
        self.write([LogLine(level, text)])

    def fault(self, place: str, error: BaseException) -> None:
        """A bug that did not end the server: what it met, with its traceback."""
        trace = "".join(traceback.format_exception(error)).splitlines()
        head = f"Internal error in {place}, please report it: {error!r}"
        self.write([LogLine(LogLevel.ERROR, text) for text in (head, *trace)])

    def format(self, line: LogLine) -> str:
        """A line as it is written, its line break included."""
        stamp = ""
        if self._options.logtime:
            now = datetime.now(UTC) if self._options.logtime_utc else datetime.now()
            stamp = now.strftime("%Y/%m/%d %H:%M:%S.%f ")
        text = line.text
        if line.level is not LogLevel.TRACE and len(text) > LINE_CHARS_MAX:
            text = f"{text[:LINE_CHARS_MAX]}... ({len(text) - LINE_CHARS_MAX} more characters)"
        return f"{self._prefix}{stamp}[{line.level.value}] {one_line(text)}\n"

    def _rotate(self) -> None:
        path = Path(self._options.file)
        stamp = datetime.now(UTC).strftime("%Y.%m.%d.%H.%M.%S.") + f"{time.time_ns() % 10**9:09d}"
        try:
            path.rename(path.with_name(f"{path.name}.{stamp}"))
            old = sorted(path.parent.glob(f"{path.name}.[0-9]*"))
            if self._options.files_max > 0:
                for extra in old[: -self._options.files_max]:
                    extra.unlink(missing_ok=True)
            self.reopen()
        except (OSError, ConfigError):
            self.close()


class LoopMessages(logging.Handler):
    """What asyncio and libraries say through `logging` ends in the operator's log."""

    def __init__(self, log: ServerLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; each line of its traceback is a line."""
        level = LEVELS.get(record.levelno, LogLevel.ERROR)
        error = record.exc_info[1] if record.exc_info else None
        trace = "".join(traceback.format_exception(error)).splitlines() if error else []
        self._log.write([LogLine(level, text) for text in (record.getMessage(), *trace)])
