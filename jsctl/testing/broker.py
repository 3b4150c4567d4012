"""A broker, or a nats-server, as a process that tests start, stop, kill and pause."""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO

import pytest

from jsctl.testing.forked import Forked, ForkServer, NotForked

READY_LINE = "Server is ready"
READY_S = 30.0
STOP_S = 30.0
PAUSE_S = 0.01
HOST = "127.0.0.1"
LOG_TAIL_LINES = 100

Scalar = str | int | float | bool | None
Json = Scalar | list["Json"] | dict[str, "Json"]


class BrokerFailed(AssertionError):
    """A broker did not start, stop or answer in time; the end of its log is in the text."""


def temporary_directory() -> tempfile.TemporaryDirectory[str]:
    """A directory that is deleted in the end, whatever a killed broker left in it."""
    return tempfile.TemporaryDirectory(prefix="jsctl-", ignore_cleanup_errors=True)


class ReservedPort:
    """A free port of this machine that stays ours until `release`."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((HOST, 0))
        self.number: int = self._socket.getsockname()[1]

    def release(self) -> None:
        """Let others have it."""
        self._socket.close()


def _is_still(pid: int) -> bool:
    """Whether no thread of a process runs, as far as the system tells."""
    threads = Path(f"/proc/{pid}/task")
    with suppress(OSError):
        stats = [(one / "stat").read_text() for one in threads.iterdir()]
        # The state is behind the name, which may have brackets and spaces.
        return all(stat.rpartition(")")[2].split()[0] in "TtZX" for stat in stats)
    return True


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Handlers of signals run behind the block. One that raises in the middle of a start, as at
    Ctrl-C or a test's time limit, would leave a process that nobody knows of."""
    if threading.current_thread() is not threading.main_thread():
        yield  # They do not run here.
        return
    came: list[int] = []
    found = {number: signal.getsignal(number) for number in signal.valid_signals()}
    handlers = {number: one for number, one in found.items() if callable(one)}
    try:
        for number in handlers:
            signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for each in came:
            signal.raise_signal(each)


_fork_servers: dict[int, ForkServer] = {}
"""The one of this process, by the process's id: a child of it needs another one."""
_beginning: dict[int, threading.Lock] = {}
"""By the same, as a lock that another thread has when the process forks is never free there."""


def fork_server() -> ForkServer:
    """The one of this process; begun when it is first asked for."""
    with _beginning.setdefault(os.getpid(), threading.Lock()):
        found = _fork_servers.get(os.getpid())
        if found is None or not found.running:
            _fork_servers.clear()
            found = _fork_servers[os.getpid()] = ForkServer()
            atexit.register(found.close)
        return found


class Broker:
    """One broker process. Use it as a context manager, or call `start` and `stop`."""

    program: Sequence[str] = (sys.executable, "-m", "jsctl", "broker")
    forked = False
    """Whether `program`, as it is here, may be forked from a process that has loaded it: ready in
    a fraction of the time, but `ps` does not show its words. Tests have it so: see `testing`."""

    def __init__(
        self,
        *flags: str,
        config: str = "",
        name: str = "",
        directory: Path | None = None,
        jetstream: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`flags` and `config` are nats-server's; host, ports and the store directory are set
        here, and flags given here win over those. `jetstream` is short for the flag `-js`."""
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if directory is None:
            self._temporary = temporary_directory()
            directory = Path(self._temporary.name)
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.name = name
        self.flags = (*flags, "-js") if jetstream else flags
        self.config = config
        self.environment = {**os.environ, **(environment or {})}
        self._ports = [ReservedPort(), ReservedPort()]
        self._process: subprocess.Popen[bytes] | Forked | None = None
        self._read_from = 0

    @property
    def port(self) -> int:
        """The client port."""
        return self._ports[0].number

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"nats://{HOST}:{self.port}"

    @property
    def monitor_url(self) -> str:
        """The root of the monitoring pages, without a trailing slash."""
        return f"http://{HOST}:{self._ports[1].number}"

    @property
    def store_dir(self) -> Path:
        """What `--store_dir` was set to; files lie in `jetstream` below it."""
        return self.directory / "store"

    @property
    def log_file(self) -> Path:
        """What all lives of the broker wrote to stdout and stderr."""
        return self.directory / "broker.log"

    @property
    def logs(self) -> str:
        """The text of the log file."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    @property
    def pid(self) -> int:
        """The process; BrokerFailed if none runs."""
        if self._process is None:
            raise self._failed("is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def command(self) -> list[str]:
        """The whole command line."""
        words = [*self.program, "-a", HOST, "-p", str(self.port)]
        words += ["-m", str(self._ports[1].number), "-sd", str(self.store_dir)]
        if self.name:
            words += ["-n", self.name]
        if self.config:
            path = self.directory / "broker.conf"
            path.write_text(self.config, encoding="utf-8")
            words += ["-c", str(path)]
        return [*words, *self.flags]

    def start(self, ready_s: float = READY_S) -> "Broker":
        """Start and wait until clients can connect. Raises BrokerFailed."""
        self.launch()
        self.wait_ready(ready_s)
        return self

    def launch(self) -> None:
        """Start the process and do not wait."""
        if self.running:
            raise self._failed("is already running")
        self._read_from = self.log_file.stat().st_size if self.log_file.exists() else 0
        with self.log_file.open("ab") as log:
            self._process = self._new_process(self.command(), log)

    def _new_process(self, words: list[str], log: IO[bytes]) -> subprocess.Popen[bytes] | Forked:
        if self.forked and self.program is Broker.program:
            try:
                behind = words[len(self.program) :]
                return fork_server().launch(behind, self.environment, log.fileno())
            except NotForked:
                pass  # A program of its own then.
        with _undisturbed():
            self._process = started = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment,
            )
        if self.forked:
            with suppress(NotForked):
                fork_server().watch(started.pid)
        return started

    def wait_ready(self, ready_s: float = READY_S) -> None:
        """Wait for the line that says so. Raises BrokerFailed, at once if the process ended."""

        def ready() -> bool:
            if not self.running:
                raise self._failed("ended before it was ready")
            with self.log_file.open("rb") as log:
                log.seek(self._read_from)
                return READY_LINE.encode() in log.read()

        self._wait(ready, ready_s, "is not ready")

    def wait_log(self, text: str, deadline_s: float = READY_S) -> None:
        """Wait until the log has a text. Raises BrokerFailed."""
        self._wait(lambda: text in self.logs, deadline_s, f"has not logged {text!r}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def stop(self, deadline_s: float = STOP_S) -> int:
        """End it in peace (TERM) and give its exit status; killed if it takes too long."""
        if self._process is None:
            return 0
        if self.running:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
        try:
            return self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self._failed(f"did not stop within {deadline_s} s") from None

    def kill(self) -> None:
        """End it without warning (KILL)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def restart(self, *, kill: bool = False) -> "Broker":
        """Stop or kill it, then start it on the same ports and store."""
        if kill:
            self.kill()
        else:
            self.stop()
        return self.start()

    def pause(self) -> None:
        """Freeze the process, as a machine that hangs. Where the system tells (Linux), it stands
        still when this returns; elsewhere threads that are at work may take a moment."""
        self.signal(signal.SIGSTOP)
        self._wait(lambda: _is_still(self.pid), STOP_S, "does not stand still")

    def resume(self) -> None:
        """Let a frozen process go on."""
        self.signal(signal.SIGCONT)

    def monitor(self, path: str, timeout_s: float = 5.0) -> Json:
        """The JSON of a monitoring page such as `/jsz?streams=1`. Raises OSError, also where the
        broker ends in the middle of it."""
        from http.client import HTTPException
        from urllib.request import urlopen

        try:
            with urlopen(self.monitor_url + path, timeout=timeout_s) as answer:
                found: Json = json.load(answer)
        except HTTPException as error:
            raise ConnectionError(str(error)) from error
        return found

    def close(self) -> None:
        """Kill what still runs, give the ports back and delete a directory made here."""
        with ExitStack() as rest:  # All of it, also if somebody interrupts a part.
            if self._temporary is not None:
                rest.callback(self._temporary.cleanup)
                self._temporary = None
            for port in self._ports:
                rest.callback(port.release)
            self.kill()

    def __enter__(self) -> "Broker":
        try:
            return self if self.running else self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        finally:
            self.close()

    def _wait(self, fact: Callable[[], bool], deadline_s: float, what: str) -> None:
        end = time.monotonic() + deadline_s
        while not fact():
            if time.monotonic() > end:
                raise self._failed(f"{what} after {deadline_s} s")
            time.sleep(PAUSE_S)

    def _failed(self, what: str) -> BrokerFailed:
        tail = "\n".join(self.logs.splitlines()[-LOG_TAIL_LINES:])
        return BrokerFailed(f"{self.name or type(self).__name__} {what}\n{tail}")


class RealServer(Broker):
    """The same for nats-server, from PATH or beside this Python."""

    @property
    def program(self) -> Sequence[str]:  # type: ignore[override]  # looked up late
        """The binary; pytest skips the test if there is none."""
        return (find_real_server(),)


def find_real_server() -> str:
    """The path of nats-server; skips the running test if there is none."""
    from shutil import which

    beside = Path(sys.executable).parent / "nats-server"
    found = which("nats-server") or (str(beside) if beside.exists() else None)
    if found is None:
        pytest.skip("nats-server is not installed")
    return found
