"""Command lines of ours, each in a process that is forked from one that has their modules.

A start of `jsctl` takes 0.17 s of a processor, nearly all of it for loading modules; a fork takes a
fifth. What runs is what `python -m jsctl` runs, from where it begins, with its own words,
variables, working directory, input and outputs. For tests of what commands do; those of how the
program starts and ends start it.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from atexit import register
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import IO

from jsctl.testing.forked import POSSIBLE

SERVER = "tests.support.command_server"
ROOT = Path(__file__).parent.parent.parent
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
    line = [sys.executable, "-m", "jsctl", *words]
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
        code = _server().run(words, variables, [file.fileno() for file in files], timeout)
        return subprocess.CompletedProcess(line, code, *map(_text, files[1:]))


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

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], files: list[int], timeout: float
    ) -> int:
        """The exit status. Raises subprocess.TimeoutExpired."""
        asked = {"words": [*words], "environment": environment, "directory": str(Path.cwd())}
        pid = self._ask(asked, files)
        handle = os.pidfd_open(pid)
        try:
            poller = select.poll()
            poller.register(handle, select.POLLIN)
            ended = bool(poller.poll(timeout * 1000))
            if not ended:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
        status = self._ask({"ended": pid}, [])
        if not ended:
            raise subprocess.TimeoutExpired(["jsctl", *words], timeout)
        return status

    def _ask(self, asked: Mapping[str, object], files: list[int]) -> int:
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
