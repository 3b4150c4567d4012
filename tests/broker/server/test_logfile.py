"""The operator's log: format, levels, files that are moved away, rotation."""

import io
import logging
import os
import re
import sys
from pathlib import Path

import pytest

from jsctl.broker.errors import ConfigError
from jsctl.broker.options import LogOptions
from jsctl.broker.server.logfile import LINE_CHARS_MAX, LoopMessages, ServerLog
from jsctl.broker.turn import LogLevel, LogLine

LINES = [LogLine(level, level.name.lower()) for level in LogLevel]


@pytest.mark.parametrize(
    ("options", "tags"),
    [
        (LogOptions(), ["FTL", "ERR", "WRN", "INF"]),
        (LogOptions(debug=True), ["FTL", "ERR", "WRN", "INF", "DBG"]),
        (LogOptions(trace=True), ["FTL", "ERR", "WRN", "INF", "TRC"]),
    ],
)
def test_levels(options: LogOptions, tags: list[str]) -> None:
    output = io.StringIO()
    ServerLog(options, output).write(LINES)
    assert re.findall(r"\[([A-Z]{3})\]", output.getvalue()) == tags


def test_a_line_with_and_without_time() -> None:
    line = LogLine(LogLevel.INFO, "text")
    assert ServerLog(LogOptions(logtime=False)).format(line) == f"[{os.getpid()}] [INF] text\n"
    for utc in (False, True):
        text = ServerLog(LogOptions(logtime_utc=utc)).format(line)
        assert re.fullmatch(r"\[\d+\] \d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{6} \[INF\] text\n", text)


def test_a_file_is_reopened_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = ServerLog(LogOptions(file=str(path)))
    log.line(LogLevel.INFO, "one")
    path.rename(tmp_path / "old")
    log.reopen()
    log.line(LogLevel.INFO, "two")
    log.close()
    assert "one" in (tmp_path / "old").read_text()
    assert "two" in path.read_text() and "one" not in path.read_text()


def test_a_file_is_rotated_and_old_ones_are_deleted(tmp_path: Path) -> None:
    log = ServerLog(LogOptions(file=str(tmp_path / "log"), size_bytes_max=200, files_max=2))
    for number in range(40):
        log.line(LogLevel.INFO, f"line {number}")
    log.close()
    old = sorted(tmp_path.glob("log.*"))
    assert len(old) == 2
    assert all(path.stat().st_size < 400 for path in old)
    assert "line 39" in (tmp_path / "log").read_text() + old[-1].read_text()


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="error opening log file: No such file"):
        ServerLog(LogOptions(file=str(tmp_path / "no" / "log")))


def test_a_stream_that_is_closed_does_not_stop_the_server() -> None:
    output = io.StringIO()
    log = ServerLog(LogOptions(), output)
    output.close()
    log.line(LogLevel.INFO, "nobody reads this")


def test_messages_of_libraries_come_along() -> None:
    output = io.StringIO()
    handler = LoopMessages(ServerLog(LogOptions(logtime=False), output))
    handler.handle(logging.LogRecord("asyncio", logging.ERROR, "", 0, "oh %s", ("no",), None))
    assert output.getvalue() == f"[{os.getpid()}] [ERR] oh no\n"


@pytest.mark.parametrize("level", list(LogLevel))
def test_a_text_from_outside_is_one_line_without_control(level: LogLevel) -> None:
    output = io.StringIO()
    log = ServerLog(LogOptions(logtime=False, debug=True, trace=True), output)
    log.line(level, 'client "a\r\n[1] [INF] forged\x1b[2J\x9b1m\x85\u2028\u202e\0\ud800é" left')
    shown = r"a\r\n[1] [INF] forged\x1b[2J\x9b1m\x85\u2028\u202e\x00\ud800é"
    assert output.getvalue() == f'[{os.getpid()}] [{level.value}] client "{shown}" left\n'


def test_a_line_has_an_end() -> None:
    output = io.StringIO()
    log = ServerLog(LogOptions(logtime=False, trace=True), output)
    log.line(LogLevel.ERROR, "x" * LINE_CHARS_MAX)
    log.line(LogLevel.ERROR, "x" * (LINE_CHARS_MAX + 5))
    log.line(LogLevel.TRACE, "x" * (LINE_CHARS_MAX + 5))
    lengths = [line.count("x") for line in output.getvalue().splitlines()]
    assert lengths == [LINE_CHARS_MAX, LINE_CHARS_MAX, LINE_CHARS_MAX + 5]
    assert output.getvalue().splitlines()[1].endswith("... (5 more characters)")


def test_tracebacks_of_libraries_keep_their_lines() -> None:
    output = io.StringIO()
    handler = LoopMessages(ServerLog(LogOptions(logtime=False), output))
    try:
        raise ValueError("a\nb")
    except ValueError:
        caught = sys.exc_info()
    handler.handle(logging.LogRecord("asyncio", logging.ERROR, "", 0, "one\ntwo", None, caught))
    lines = output.getvalue().splitlines()
    prefix = f"[{os.getpid()}] [ERR] "
    assert all(line.startswith(prefix) for line in lines)
    said = [line.removeprefix(prefix) for line in lines]
    assert said[:2] == [r"one\ntwo", "Traceback (most recent call last):"]
    assert said[-2:] == ["ValueError: a", "b"]
