"""Brokers that are forked from a process which has loaded them: the same as started ones."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jsctl.testing import Broker, BrokerFactory, BrokerFailed, Cluster
from jsctl.testing.forked import POSSIBLE, Forked, ForkServer, NotForked
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not POSSIBLE, reason="needs Linux, which has process handles"),
]
ALL_LOADED = 5
"""Modules that a start may load although everything was loaded before."""
DEADLINE_S = 60.0


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


def test_children_outlive_who_forks(tmp_path: Path) -> None:
    """As started ones outlive a test process that is killed."""
    code = (
        "import os\n"
        "from jsctl.testing import Broker\n"
        "Broker.forked = True\n"
        "broker = Broker()\n"
        "broker.start()\n"
        "print(broker.pid, flush=True)\n"
        "os._exit(0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, cwd=tmp_path
    )
    pid = int(done.stdout)
    handle = os.pidfd_open(pid)
    try:
        assert "forkserver" in command_of(pid)
    finally:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.close(handle)


def test_what_is_forked_has_everything_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    server = ForkServer()
    (tmp_path / "a.conf").write_text(
        json.dumps({"listen": "127.0.0.1:-1", "jetstream": {"store_dir": str(tmp_path / "store")}})
    )

    def loads_nothing() -> bool:
        log = tmp_path / "log"
        log.write_bytes(b"")
        with log.open("ab") as file:
            words = ["-c", str(tmp_path / "a.conf")]
            child: Forked = server.launch(words, os.environ, file.fileno())
        try:
            wait_for(lambda: "Server is ready" in log.read_text(), "ready")
        finally:
            child.kill()
            child.wait(DEADLINE_S)
        return log.read_text().count("import time:") <= ALL_LOADED

    try:
        wait_for(loads_nothing, "a start that loads nothing")
    finally:
        server.close()
