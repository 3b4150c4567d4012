"""pytest plugin and plain helpers: a broker, or a cluster of brokers, inside a test.

    def test_publish(jsctl_broker):
        broker = jsctl_broker("-js")
        ...connect to broker.url...

Every broker is a real process with its own directory. Ports are reserved by sockets that stay
bound, without listening, for as long as the helper lives: nobody else gets them, so a broker
comes back on the same ports after a restart. `RealServer` is the same handle for nats-server, so
that a contract test can run against both.

Nothing heavy is imported before a broker is started.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

READY_LINE = "Server is ready"
READY_S = 30.0
STOP_S = 30.0
LEADER_S = 30.0
PAUSE_S = 0.01
HOST = "127.0.0.1"
SYSTEM_USER = "sys"
SYSTEM_PASSWORD = "sys"
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


class Broker:
    """One broker process. Use it as a context manager, or call `start` and `stop`."""

    program: Sequence[str] = (sys.executable, "-m", "jsctl", "broker")

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
        self._process: subprocess.Popen[bytes] | None = None
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
            path.write_text(self.config)
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
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment,
            )

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
        """Freeze the process, as a machine that hangs."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen process go on."""
        self.signal(signal.SIGCONT)

    def monitor(self, path: str, timeout_s: float = 5.0) -> Json:
        """The JSON of a monitoring page such as `/jsz?streams=1`. Raises OSError."""
        from urllib.request import urlopen

        with urlopen(self.monitor_url + path, timeout=timeout_s) as answer:
            found: Json = json.load(answer)
        return found

    def close(self) -> None:
        """Kill what still runs, give the ports back and delete a directory made here."""
        self.kill()
        for port in self._ports:
            port.release()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def __enter__(self) -> "Broker":
        return self if self.running else self.start()

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


class Cluster:
    """Brokers with JetStream, routes to each other and a system account (user sys, sys)."""

    def __init__(
        self,
        size: int = 3,
        *,
        name: str = "C1",
        config: str = "",
        directory: Path | None = None,
        server: type[Broker] = Broker,
    ) -> None:
        """`config` goes into every broker's configuration file. Names are n1, n2, ..."""
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if directory is None:
            self._temporary = temporary_directory()
            directory = Path(self._temporary.name)
        self.name = name
        self._ports = {f"n{number}": ReservedPort() for number in range(1, size + 1)}
        routes = ", ".join(f'"nats://{HOST}:{port.number}"' for port in self._ports.values())
        self.brokers: dict[str, Broker] = {}
        for node, port in self._ports.items():
            listen = f"{HOST}:{port.number}"
            text = (
                f'cluster {{ name: "{name}", listen: "{listen}", routes: [{routes}] }}\n'
                f"accounts {{ $SYS {{ users: [ {{ user: {SYSTEM_USER}, "
                f"password: {SYSTEM_PASSWORD} }} ] }} }}\n{config}\n"
            )
            self.brokers[node] = server("-js", name=node, config=text, directory=directory / node)

    @property
    def names(self) -> list[str]:
        """n1, n2, ..."""
        return list(self.brokers)

    @property
    def urls(self) -> list[str]:
        """Where clients connect, one URL a broker."""
        return [broker.url for broker in self.brokers.values()]

    def __getitem__(self, name: str) -> Broker:
        """The broker of a name."""
        return self.brokers[name]

    def __iter__(self) -> Iterator[Broker]:
        """The brokers in order."""
        return iter(self.brokers.values())

    def start(self, leader_s: float = LEADER_S) -> "Cluster":
        """Start all, wait for their routes and a meta leader. Raises BrokerFailed."""
        for broker in self:
            broker.launch()
        for broker in self:
            broker.wait_ready()
        self.wait_routes(leader_s)
        self.wait_meta_leader(leader_s)
        return self

    def kill(self, name: str) -> None:
        """Kill one broker."""
        self[name].kill()

    def restart(self, name: str, *, kill: bool = False) -> Broker:
        """Restart one broker on its ports and store."""
        return self[name].restart(kill=kill)

    def meta_leader(self) -> str:
        """The leader that every running broker names; empty while they disagree."""
        found: set[str] = set()
        for broker in self:
            if not broker.running:
                continue
            try:
                page = broker.monitor("/jsz")
            except OSError:
                return ""
            meta = page.get("meta_cluster") if isinstance(page, dict) else None
            leader = meta.get("leader") if isinstance(meta, dict) else None
            found.add(leader if isinstance(leader, str) else "")
        return found.pop() if len(found) == 1 else ""

    def wait_meta_leader(self, deadline_s: float = LEADER_S) -> str:
        """Wait until all running brokers name a running leader. Raises BrokerFailed."""
        found = ""

        def led() -> bool:
            nonlocal found
            found = self.meta_leader()
            return found != "" and self.brokers[found].running

        self._wait(led, deadline_s, "no meta leader")
        return found

    def wait_routes(self, deadline_s: float = LEADER_S) -> None:
        """Wait until all running brokers have all their routes to each other.

        A meta leader is elected over a part of them; answers get lost until the others are there:
        API requests go through a route of the system account. Raises BrokerFailed.
        """
        self._wait(self._has_routes, deadline_s, "not all routes")

    def _has_routes(self) -> bool:
        running = [broker for broker in self if broker.running]
        for broker in running:
            try:
                general: Any = broker.monitor("/varz")
                page: Any = broker.monitor("/routez")
            except OSError:
                return False
            pool = max(1, general["cluster"].get("pool_size", 1))
            system = general.get("system_account")
            found = Counter((one.get("remote_name"), one.get("account")) for one in page["routes"])
            for other in running:
                routes = found[other.name, None], found[other.name, system]
                if other is not broker and routes != (pool, 1):
                    return False
        return True

    def _wait(self, fact: Callable[[], bool], deadline_s: float, what: str) -> None:
        end = time.monotonic() + deadline_s
        while not fact():
            if time.monotonic() > end:
                logs = "\n".join(f"--- {b.name}\n{b.logs[-2000:]}" for b in self)
                raise BrokerFailed(f"{what} after {deadline_s} s\n{logs}")
            time.sleep(PAUSE_S * 5)

    def stop(self) -> None:
        """Stop all, the last one first."""
        for broker in reversed(self.brokers.values()):
            broker.stop()

    def close(self) -> None:
        """Kill what still runs and give everything back."""
        for broker in self:
            broker.close()
        for port in self._ports.values():
            port.release()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def __enter__(self) -> "Cluster":
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


BrokerFactory = Callable[..., Broker]
ClusterFactory = Callable[..., Cluster]


def _brokers() -> Iterator[BrokerFactory]:
    made: list[Broker] = []

    def make(
        *flags: str, server: type[Broker] = Broker, config: str = "", name: str = ""
    ) -> Broker:
        broker = server(*flags, config=config, name=name)
        made.append(broker)
        return broker.start()

    yield make
    for broker in reversed(made):
        broker.close()


def _clusters() -> Iterator[ClusterFactory]:
    made: list[Cluster] = []

    def make(size: int = 3, *, config: str = "", server: type[Broker] = Broker) -> Cluster:
        cluster = Cluster(size, config=config, server=server)
        made.append(cluster)
        return cluster.start()

    yield make
    for cluster in reversed(made):
        cluster.close()


@pytest.fixture
def jsctl_broker() -> Iterator[BrokerFactory]:
    """Call it with flags (and `config=`, `name=`, `server=`) for a started broker of this test."""
    yield from _brokers()


@pytest.fixture(scope="session")
def jsctl_session_broker() -> Iterator[BrokerFactory]:
    """The same for brokers that live until the end of the session."""
    yield from _brokers()


@pytest.fixture
def jsctl_cluster() -> Iterator[ClusterFactory]:
    """Call it with a size (and `config=`, `server=`) for a started cluster of this test."""
    yield from _clusters()


@pytest.fixture(scope="session")
def jsctl_session_cluster() -> Iterator[ClusterFactory]:
    """The same for clusters that live until the end of the session."""
    yield from _clusters()
