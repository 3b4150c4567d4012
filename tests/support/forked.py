"""Command lines of ours, each in a process that is forked from one that has their modules.

A start of `jsctl` takes 0.17 s of a processor, nearly all of it for loading modules; a fork takes a
fifth. What runs is what `python -m jsctl` runs, from where it begins, with its own words,
variables, working directory, input and outputs. For tests of what commands do; those of how the
program starts and ends start it.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from atexit import register
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Protocol

from jsctl.testing.forked import POSSIBLE, Forked

SERVER = "tests.support.command_server"
ROOT = Path(__file__).parent.parent.parent
PROGRAM = (sys.executable, "-m", "jsctl")
PACKET_BYTES = 64


def jsctl(
    words: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    given: str = "",
    timeout: float = 60.0,
) -> "subprocess.CompletedProcess[str]":
    """Run `jsctl` with these words; as `subprocess.run`, with both outputs.

    Raises subprocess.TimeoutExpired: it was killed then.
    """
    variables = dict(os.environ if environment is None else environment)
    line = [*PROGRAM, *words]
    if not POSSIBLE:
        return subprocess.run(
            line,
            env=variables,
            input=given,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    with ExitStack() as opened:
        files = [opened.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        files[0].write(given.encode())
        files[0].seek(0)
        begun = _begun(words, variables, [file.fileno() for file in files])
        try:
            code = begun.wait(timeout)
        except subprocess.TimeoutExpired:
            begun.kill()
            begun.wait()
            raise
        return subprocess.CompletedProcess(line, code, *map(_text, files[1:]))


class Session(Protocol):
    """A program that has a terminal for itself, with what is used of `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def kill(self) -> None: ...


@contextmanager
def session(
    line: Sequence[str],
    environment: Mapping[str, str],
    terminal: int,
    directory: Path | None = None,
) -> Iterator[Session]:
    """A program whose terminal this is: the inner end, which nobody else has then. It ends with the
    block. `jsctl`, as PROGRAM says it, is forked."""
    begun: Session
    if POSSIBLE and tuple(line[: len(PROGRAM)]) == PROGRAM:
        begun = _begun(line[len(PROGRAM) :], environment, [terminal], directory)
    else:
        begun = subprocess.Popen(
            line, env=environment, cwd=directory, preexec_fn=lambda: os.login_tty(terminal)
        )
    os.close(terminal)
    try:
        yield begun
    finally:
        if begun.poll() is None:
            begun.kill()
        begun.wait()


def _begun(
    words: Sequence[str],
    environment: Mapping[str, str],
    files: Sequence[int],
    directory: Path | None = None,
) -> Forked:
    """A forked command line; `files` are its input and outputs, or one terminal."""
    server, place = _server(), str(directory or Path.cwd())
    pid = server.ask({"words": [*words], "environment": {**environment}, "directory": place}, files)
    return Forked(pid, lambda: server.ask({"ended": pid}, []))


class CommandServer:
    """The process that forks, as who asks it sees it. Begins when it is made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", SERVER, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
            )

    def ask(self, asked: Mapping[str, object], files: Sequence[int]) -> int:
        """The answer: a process id, or an exit status."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(asked).encode()], files)
            return int(self._socket.recv(PACKET_BYTES))

    def close(self) -> None:
        """No more commands."""
        self._socket.close()
        self._process.wait()


@cache
def _server() -> CommandServer:
    server = CommandServer()
    register(server.close)
    return server


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()
