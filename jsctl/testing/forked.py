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
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

SERVER = "jsctl.forkserver"
PACKET_BYTES = 1 << 16
"""The longest request that it reads; what is longer is not forked."""
EARLY = ("PYTHON", "LD_")
"""Variables of these names say how a program is loaded; a fork comes too late for other ones."""
POSSIBLE = sys.platform == "linux" and hasattr(os, "pidfd_open")


class NotForked(Exception):
    """The fork server cannot make this one: start a program of its own."""


class Forked:
    """A child of a process that forks, with what is used of `subprocess.Popen`.

    `status` has that process tell how the child ended, and is asked once.
    """

    def __init__(self, pid: int, status: Callable[[], int]) -> None:
        self._ask = status
        self._handle = os.pidfd_open(pid)
        weakref.finalize(self, os.close, self._handle)
        self._lock = threading.Lock()
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, as `Popen` has it, or None while it runs."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, once there is one. Raises subprocess.TimeoutExpired."""
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(["jsctl"], timeout or 0.0)
        return status

    def kill(self) -> None:
        """End it without warning; nothing where it has ended."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def _ended(self, timeout_s: float | None) -> int | None:
        if self.returncode is None:
            wait_ms = None if timeout_s is None else timeout_s * 1000
            poller = select.poll()
            poller.register(self._handle, select.POLLIN)
            if poller.poll(wait_ms):
                with self._lock:  # Other threads may see the end, too: it is asked for once.
                    if self.returncode is None:
                        self.returncode = self._status()
        return self.returncode

    def _status(self) -> int:
        try:
            return self._ask()
        except NotForked:  # It was killed itself, and with it went what it knew: no good end.
            return -signal.SIGKILL


class ForkServer:
    """The process that forks, as who asks it sees it. Begins when it is made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = 0
        self._known: set[int] = set()
        """Children that somebody here knows of, and has not been told the end of."""
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
        asked: dict[str, Any] = {"words": [*words], "directory": place}
        try:
            pid = self._ask(asked | {"environment": dict(environment)}, [log], child=True)
            return Forked(pid, partial(self.status_of, pid))
        except NotForked:
            raise
        except BaseException:
            # Such as Ctrl-C: the child that is made nevertheless would be nobody's.
            self._ask({"strangers": True}, [])
            raise

    def status_of(self, pid: int) -> int:
        """The exit status of a child that has ended."""
        return self._ask({"ended": pid}, [])

    def watch(self, pid: int) -> None:
        """Have a child of this process killed, too, if this process is."""
        handle = os.pidfd_open(pid)
        try:
            self._ask({"other": pid}, [handle])
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
                self._socket.send(self._request({"goodbye": True}))
        self._socket.close()
        self._process.wait()

    def _request(self, asked: dict[str, Any]) -> bytes:
        self._asked += 1
        if "strangers" in asked or "goodbye" in asked:
            asked = asked | {"known": [*self._known]}
        return json.dumps(asked | {"number": self._asked}).encode()

    def _ask(self, asked: dict[str, Any], files: list[int], *, child: bool = False) -> int:
        """The answer, however long it takes. It has the number of its question: who was interrupted
        has left one that nobody waited for. That of a new `child` makes it known here."""
        if os.getpid() != self._owner:
            raise NotForked("a fork of whoever may ask")
        with self._lock:
            request = self._request(asked)
            if len(request) > PACKET_BYTES:
                raise NotForked("too long a command line")
            answered, answer = 0, 0
            try:
                socket.send_fds(self._socket, [request], files)
                while answered != self._asked:
                    if not (packet := self._socket.recv(PACKET_BYTES)):
                        raise NotForked("the fork server has ended")
                    answered, answer = json.loads(packet)
            except OSError as error:
                raise NotForked(str(error)) from None
            if child:
                self._known.add(answer)
            elif "ended" in asked:
                self._known.discard(asked["ended"])
        return answer


def _early(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(EARLY)}
