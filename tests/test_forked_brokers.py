"""Brokers that are forked from a process which has loaded them: the same as started ones."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import urlopen

import pytest

from jsctl.testing import Broker, BrokerFactory, BrokerFailed, Cluster
from jsctl.testing.forked import POSSIBLE, Forked, ForkServer, NotForked
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not POSSIBLE, reason="needs Linux, which has process handles"),
]
DEADLINE_S = 60.0
ASKED_S = 0.2
"""So long another thread, or who forks, has to come to the same place."""


class Started(Broker):
    """Never forked."""

    forked = False


@pytest.fixture
def server() -> Iterator[ForkServer]:
    made = ForkServer()
    yield made
    made.close()


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def page_of(broker: Broker) -> Any:
    return broker.monitor("/varz")


@pytest.mark.parametrize("kind", [Broker, Started])
def test_a_life(jsctl_broker: BrokerFactory, kind: type[Broker]) -> None:
    broker = jsctl_broker("-js", server=kind, name="A", config="max_payload: 1MB")
    assert ("forkserver" in command_of(broker.pid)) == (kind is Broker)
    first = page_of(broker)
    assert (first["server_name"], first["max_payload"]) == ("A", 1_048_576)
    assert first["jetstream"]["config"]["store_dir"].startswith(str(broker.store_dir))
    broker.pause()
    broker.resume()
    broker.restart()
    broker.restart(kill=True)
    again = page_of(broker)
    assert again["server_id"] != first["server_id"]
    assert broker.stop() == 0
    assert not broker.running
    broker.start()
    broker.signal(signal.SIGKILL)
    assert broker.stop() == -signal.SIGKILL


def test_one_that_cannot_start_tells_why() -> None:
    broker = Broker("--nope")
    with pytest.raises(BrokerFailed, match="flag provided but not defined: -nope"):
        broker.start()
    assert not broker.running
    assert broker.stop() == 1
    broker.close()


def test_nothing_is_drawn_twice() -> None:
    """What is drawn when a module is loaded would be the same in all children."""
    with Cluster(3) as cluster:
        pages = [page_of(broker) for broker in cluster]
    assert len({page["server_id"] for page in pages}) == 3


def test_each_has_its_own_environment() -> None:
    with Broker(environment={"JSCTL_PURE": "1"}) as broker:
        assert "forkserver" in command_of(broker.pid)
        assert "pure" in broker.logs


def test_what_says_how_modules_are_loaded_takes_a_program_of_its_own() -> None:
    with Broker(environment={"PYTHONOPTIMIZE": "1"}) as broker:
        assert "forkserver" not in command_of(broker.pid)


def test_who_is_gone_is_replaced(server: ForkServer, tmp_path: Path) -> None:
    with (tmp_path / "log").open("ab") as log:
        child = server.launch(["--help"], os.environ, log.fileno())
        assert child.wait(DEADLINE_S) == 0
        server._process.kill()
        server._process.wait()
        with pytest.raises(NotForked):
            server.launch(["--help"], os.environ, log.fileno())
    assert not server.running


def test_its_brokers_end_with_it_when_it_is_killed(server: ForkServer, tmp_path: Path) -> None:
    """One that is still loading, too; the process that asked for them lives on."""
    words = ["-a", "127.0.0.1", "-p", "-1"]
    with (tmp_path / "log").open("ab") as log:
        children = [server.launch(words, os.environ, log.fileno()) for _ in range(3)]
    handles = [os.pidfd_open(one.pid) for one in children]
    wait_for(lambda: "Server is ready" in (tmp_path / "log").read_text(), "one is ready")
    try:
        server._process.kill()
        assert all(ended(one, DEADLINE_S) for one in handles)
    finally:
        put_an_end_to(handles)


def test_an_end_that_several_threads_see_is_asked_for_once() -> None:
    """Who forks ended when it was asked again, and with it went what it knew of all others."""
    ended = subprocess.Popen(["true"])
    asked: list[int] = []

    def status() -> int:
        asked.append(ended.pid)
        other = Thread(target=child.poll)
        if len(asked) == 1:
            other.start()
            other.join(ASKED_S)
        return 0

    child = Forked(ended.pid, status)
    assert child.wait(DEADLINE_S) == 0
    assert asked == [ended.pid]
    ended.wait()


def test_who_is_interrupted_leaves_nobody(server: ForkServer, tmp_path: Path) -> None:
    """Ctrl-C while a broker is asked for: it is made nevertheless, and nobody would know of it."""

    def interrupt(*_: object) -> None:
        server._process.send_signal(signal.SIGCONT)
        raise KeyboardInterrupt

    words = ["-a", "127.0.0.1", "-p", "-1"]
    with (tmp_path / "log").open("ab") as log:
        other = server.launch(words, os.environ, log.fileno())
    reading, writing = os.pipe()
    before = signal.signal(signal.SIGALRM, interrupt)
    server._process.send_signal(signal.SIGSTOP)
    signal.setitimer(signal.ITIMER_REAL, ASKED_S)
    with pytest.raises(KeyboardInterrupt):
        server.launch(words, os.environ, writing)
    signal.signal(signal.SIGALRM, before)
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as output:
        poller = select.poll()
        poller.register(output)
        wait_for(lambda: bool(poller.poll(0)) and not output.read(1 << 16), "its end")
    assert other.poll() is None
    other.kill()
    assert other.wait(DEADLINE_S) == -signal.SIGKILL


def test_the_directory_is_the_callers(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.conf").write_text("nonsense: 5")
    monkeypatch.chdir(tmp_path)
    with Path("log").open("ab") as log:
        child = server.launch(["-t", "-c", "a.conf"], os.environ, log.fileno())
    assert child.wait(DEADLINE_S) == 1
    assert "nonsense" in Path("log").read_text()
    with pytest.raises(NotForked, match="too long"), Path("log").open("ab") as log:
        server.launch(["x" * 100_000], os.environ, log.fileno())


BEGINNING = """
import os, signal, sys
from jsctl.testing import Broker, RealServer
Broker.forked = True


class Program(Broker):
    program = [*Broker.program]


kinds = {"forked": Broker, "program": Program, "nats-server": RealServer}
started = [kinds[name]().start() for name in sys.argv[1:]]
started[0].pause()
print(*(one.pid for one in started), flush=True)
"""
KILLED = "os.kill(os.getpid(), signal.SIGKILL)"
AMID_A_REQUEST = """
from jsctl.testing.broker import fork_server
asked = b'{"number": 1, "words": ["--help"], "directory": "/", "environment": {}}'
for _ in range(3):
    with open("log", "ab") as log:
        socket.send_fds(fork_server()._socket, [asked], [log.fileno()])
"""
A_FORK_OF_IT_ENDS = """
from jsctl.testing.broker import fork_server
before = fork_server()
if not os.fork():
    sys.exit()
os.wait()
again = Broker().start()
assert "forkserver" in open(f"/proc/{again.pid}/cmdline").read()
assert fork_server() is before
again.close()
"""


def handles_after(end: str, kinds: list[str], directory: Path) -> list[int]:
    """Of what a process started that has ended since; it wrote nothing else."""
    with subprocess.Popen(
        [sys.executable, "-c", BEGINNING + "sys.stdin.readline()\n" + end, *kinds],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=directory,
    ) as process:
        assert process.stdin
        assert process.stdout
        handles = [os.pidfd_open(int(pid)) for pid in process.stdout.readline().split()]
        process.stdin.write("\n")
    assert process.returncode in (0, -signal.SIGKILL)
    assert len(handles) == len(kinds)
    return handles


def ended(handle: int, within_s: float) -> bool:
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    return bool(poller.poll(within_s * 1000))


ASKED_AT_ONCE = """
import sys
from threading import Barrier, Thread
from jsctl.testing.broker import fork_server
sys.setswitchinterval(1e-6)
found, all_here = [], Barrier(8)
def ask():
    all_here.wait()
    found.append(fork_server())
threads = [Thread(target=ask) for _ in range(8)]
for one in threads:
    one.start()
for one in threads:
    one.join()
print(len(set(found)))
"""


def test_threads_that_ask_first_at_once_have_one_server() -> None:
    asked = subprocess.run(
        [sys.executable, "-c", ASKED_AT_ONCE], capture_output=True, check=True, timeout=DEADLINE_S
    )
    assert asked.stdout == b"1\n"


class Interrupted(Exception):
    """Such as a test's time limit raises."""


def test_who_is_interrupted_in_a_start_knows_what_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[subprocess.Popen[bytes]] = []

    class Popen(subprocess.Popen[bytes]):
        """It is interrupted before anybody has it."""

        def __init__(self, *words: Any, **more: Any) -> None:
            super().__init__(*words, **more)
            made.append(self)
            signal.raise_signal(signal.SIGALRM)

    def interrupt(*_: object) -> None:
        raise Interrupted

    monkeypatch.setattr(subprocess, "Popen", Popen)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(Interrupted), Started():
            raise AssertionError("it is not ready")
        assert signal.getsignal(signal.SIGALRM) is interrupt
    finally:
        signal.signal(signal.SIGALRM, before)
    (started,) = made
    known = started.poll()
    started.kill()  # Where nobody knew of it.
    started.wait()
    assert known == -signal.SIGKILL


@pytest.mark.parametrize("end", [KILLED, "os._exit(0)", "import socket" + AMID_A_REQUEST + KILLED])
def test_who_is_killed_leaves_no_brokers(tmp_path: Path, end: str) -> None:
    """Also one that is paused, and those that are programs of their own."""
    kinds = ["forked", "program", "nats-server"]
    handles = handles_after(end, kinds, tmp_path)
    try:
        until = time.monotonic() + DEADLINE_S / 3
        times = (max(until - time.monotonic(), 0.0) for _ in kinds)
        found = {
            kind: ended(one, left) for kind, one, left in zip(kinds, handles, times, strict=True)
        }
    finally:
        put_an_end_to(handles)
    assert found == dict.fromkeys(kinds, True)


@pytest.mark.parametrize("end", ["pass", A_FORK_OF_IT_ENDS])
def test_children_outlive_who_says_goodbye(tmp_path: Path, end: str) -> None:
    """As started ones outlive a process that did not stop them."""
    kinds = ["program", "forked"]
    handles = handles_after(end, kinds, tmp_path)
    try:
        assert not any(ended(one, 0.5) for one in handles)
    finally:
        put_an_end_to(handles)


def test_what_is_sent_to_a_whole_group_does_not_end_who_forks(
    server: ForkServer, tmp_path: Path
) -> None:
    """Only a child ends by it, and also one that is not yet a broker."""
    with (tmp_path / "log").open("ab") as log:
        assert server.launch(["--help"], os.environ, log.fileno()).wait(DEADLINE_S) == 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            server._process.send_signal(number)
        words = ["-a", "127.0.0.1", "-p", "-1"]
        child = server.launch(words, os.environ, log.fileno())
        os.kill(child.pid, signal.SIGTERM)
        assert child.wait(DEADLINE_S) == -signal.SIGTERM
    assert server.running


def put_an_end_to(handles: list[int]) -> None:
    for handle in handles:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.close(handle)


def test_what_is_forked_has_everything_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    server = ForkServer()
    some = {"listen": "127.0.0.1:-1", "http": "127.0.0.1:-1"}
    (tmp_path / "a.conf").write_text(
        json.dumps({**some, "jetstream": {"store_dir": str(tmp_path / "store")}})
    )

    def loads_nothing() -> bool:
        log = tmp_path / "log"
        log.write_bytes(b"")
        with log.open("ab") as file:
            words = ["-c", str(tmp_path / "a.conf")]
            child: Forked = server.launch(words, os.environ, file.fileno())
        try:
            wait_for(lambda: "Server is ready" in log.read_text(), "ready")
            page = re.search("monitor on (.*)", log.read_text())
            assert page is not None
            with urlopen(f"http://{page[1]}/varz") as answer:
                assert answer.status == 200
        finally:
            child.kill()
            child.wait(DEADLINE_S)
        return "import time:" not in log.read_text()

    try:
        wait_for(loads_nothing, "a start and an answer that load nothing")
    finally:
        server.close()
