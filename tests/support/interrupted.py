"""Commands that go on until Ctrl-C: run as processes, in a pipe or on a terminal."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import IO

from tests.support.command_line import FOREIGN

PATIENCE_S = 30.0
LINES, COLUMNS = 50, 120


def until(descriptor: int, wanted: bytes, times: int) -> bytes:
    """What comes until it holds the words so often."""
    found, deadline = b"", monotonic() + PATIENCE_S
    while found.count(wanted) < times:
        assert monotonic() < deadline, found
        if select.select([descriptor], [], [], 0.1)[0]:
            found += os.read(descriptor, 65536)
    return found


@contextmanager
def running(words: tuple[str, ...], out: int) -> Iterator["subprocess.Popen[bytes]"]:
    """A command line of ours; it ends with the test."""
    run = [sys.executable, "-m", "jsctl", *words]
    with started(run, stdin=out, stdout=out, stderr=subprocess.DEVNULL) as process:
        yield process


@contextmanager
def started(
    program: Sequence[str],
    *,
    stdin: int,
    stdout: "int | IO[bytes]",
    stderr: "int | IO[bytes]",
    folder: Path | None = None,
    session: bool = False,
    buffered: bool = False,
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that signals end as if a person had begun it, whatever runs the tests; it ends with
    the body. `session` gives it its input as its own terminal; what it writes is seen at once
    unless it is `buffered`, as it is in a pipe."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    environment.pop("PYTHONUNBUFFERED", None)
    if not buffered:
        environment["PYTHONUNBUFFERED"] = "1"

    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        if session:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        program,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=folder,
        env=environment,
        preexec_fn=prepare,
        start_new_session=session,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def in_a_pipe(words: tuple[str, ...], wanted: bytes, times: int) -> bytes:
    """What it writes until the words came so often; then Ctrl-C has to end it with status 0."""
    with running(words, subprocess.PIPE) as process:
        assert process.stdout is not None
        found = until(process.stdout.fileno(), wanted, times)
        process.send_signal(signal.SIGINT)
        found += process.stdout.read()
        assert process.wait(PATIENCE_S) == 0
    return found


def on_a_terminal(words: tuple[str, ...], wanted: bytes, times: int) -> tuple[bytes, bytes]:
    """The same on a terminal: what was on its other screen, and what is left on its own."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    with running(words, terminal) as process:
        found = until(screen, wanted, times)
        process.send_signal(signal.SIGINT)
        found += until(screen, b"\x1b[?1049l", 1)
        assert process.wait(PATIENCE_S) == 0
    while select.select([screen], [], [], 0)[0]:
        found += os.read(screen, 65536)
    os.close(terminal)
    os.close(screen)
    shown, _, left = found.partition(b"\x1b[?1049l")
    return shown, left


@contextmanager
def begun(
    program: Sequence[str], folder: Path, name: str = "log"
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process whose input never ends, with its output in a file."""
    with (
        (folder / name).open("wb") as log,
        started(program, stdin=subprocess.PIPE, stdout=log, stderr=log, folder=folder) as process,
    ):
        yield process
