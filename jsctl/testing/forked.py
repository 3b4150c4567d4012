"""Brokers forked from a process that has their modules: ready in a fraction of the time.

Most of what a broker costs until it is ready, and in its first tenth of a second, is the loading of
modules; a suite that starts hundreds of them pays it hundreds of times. Here one process for each
test process loads them once, is asked for brokers and forks. What runs is what `jsctl broker` runs,
with the same words, working directory and environment, in a process of its own. Only its command
line is that of this module (`ps` shows it). If the test process is killed, what it started is
killed too.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

SERVER = "jsctl.forkserver"
PACKET_BYTES = 1 << 16
"""The longest request that it reads; what is longer is not forked."""
EARLY = ("PYTHON", "LD_")
"""Variables of these names say how a program is loaded; a fork comes too late for other ones."""
POSSIBLE = sys.platform == "linux" and hasattr(os, "pidfd_open")


class NotForked(Exception):
    """The fork server cannot make this one: start a program of its own."""


class Forked:
    """A child of the fork server, with what is used of `subprocess.Popen`."""

    def __init__(self, server: "ForkServer", pid: int) -> None:
        self._server = server
        self._handle = os.pidfd_open(pid)
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, as `Popen` has it, or None while it runs."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, once there is one. Raises subprocess.TimeoutExpired."""
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(["jsctl", "broker"], timeout or 0.0)
        return status

    def kill(self) -> None:
        """End it without warning; nothing where it has ended."""
        if self.returncode is None:
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def _ended(self, timeout_s: float | None) -> int | None:
        if self.returncode is None:
            wait_ms = None if timeout_s is None else timeout_s * 1000
            poller = select.poll()
            poller.register(self._handle, select.POLLIN)
            if poller.poll(wait_ms):
                self.returncode = self._status()
                os.close(self._handle)
        return self.returncode

    def _status(self) -> int:
        try:
            return self._server.status_of(self.pid)
        except NotForked:  # It was killed itself, and with it went what it knew: no good end.
            return -signal.SIGKILL


class ForkServer:
    """The process that forks, as who asks it sees it. Begins when it is made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._loaded_with = _early(os.environ)
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, ExitStack() as failed:
            failed.callback(self._socket.close)
            self._process = subprocess.Popen(
                [sys.executable, "-m", SERVER, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
            failed.pop_all()

    def launch(self, words: Sequence[str], environment: Mapping[str, str], log: int) -> Forked:
        """A broker with these words behind `jsctl broker`; `log` is a file for what it prints.

        Raises NotForked.
        """
        if _early(environment) != self._loaded_with:
            raise NotForked("modules were loaded in another environment")
        place = str(Path.cwd())
        asked = {"words": [*words], "directory": place, "environment": dict(environment)}
        request = json.dumps(asked).encode()
        if len(request) > PACKET_BYTES:
            raise NotForked("too long a command line")
        return Forked(self, self._ask(request, [log]))

    def status_of(self, pid: int) -> int:
        """The exit status of a child that has ended."""
        return self._ask(json.dumps({"ended": pid}).encode(), [])

    def watch(self, pid: int) -> None:
        """Have a child of this process killed, too, if this process is."""
        handle = os.pidfd_open(pid)
        try:
            self._ask(json.dumps({"other": pid}).encode(), [handle])
        finally:
            os.close(handle)

    @property
    def running(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def close(self) -> None:
        """No more brokers; those that run go on. A copy in a fork of this process ends nothing."""
        if os.getpid() == self._owner:
            with suppress(OSError):
                self._socket.send(json.dumps({"goodbye": True}).encode())
        self._socket.close()
        self._process.wait()

    def _ask(self, request: bytes, files: list[int]) -> int:
        # However long it takes: an answer that nobody waited for would be taken for the next one's.
        with self._lock:
            try:
                socket.send_fds(self._socket, [request], files)
                answer = self._socket.recv(PACKET_BYTES)
            except OSError as error:
                raise NotForked(str(error)) from None
        if not answer:
            raise NotForked("the fork server has ended")
        return int(answer)


def _early(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(EARLY)}
