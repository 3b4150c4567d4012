"""`jsctl server run`: a server to develop with, its accounts and contexts, and how it ends."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands.conftest import Result
from tests.support.waiting import wait_for

Run = Callable[..., Result]
pytestmark = pytest.mark.processes
PATIENCE_S = 90


def free_port() -> int:
    """A port that is free, and those that belong to it as well."""
    for port in range(20_000 + os.getpid() % 5_000, 40_000, 7):
        if all(is_free(one) for at in range(3) for one in (port + at, port + 2000 + at)):
            return port
    raise AssertionError("no port is free")


def is_free(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) != 0


@contextmanager
def running(*words: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, object]]]:
    """The command, and what it says once its servers are ready."""
    command = [sys.executable, "-m", "jsctl", "server", "run", *words, "-j"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            lines = iter(process.stdout.readline, "")
            text = ""
            for line in lines:
                text += line
                if line == "}\n":
                    break
            yield process, json.loads(text)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)


def data_home() -> Path:
    return Path(os.environ["XDG_DATA_HOME"])


def context_names() -> set[str]:
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "nats" / "context"
    return {path.stem for path in folder.glob("*.json")}


@pytest.fixture(autouse=True)
def own_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def test_contexts_work_and_services_are_seen(cli: Run, tmp_path: Path) -> None:
    with running("dev", "--port", str(free_port()), "--select") as (process, told):
        assert context_names() == {"dev", "dev_service", "dev_system"}
        assert cli("stream", "add", "A", "--subjects", "a", "--defaults").code == 0
        assert cli("pub", "a", "kept", "-J").code == 0
        assert cli("--context", "dev_system", "server", "ls").code == 0
        assert cli("--context", "dev_service", "stream", "ls", "-n").out == ""
        words = [sys.executable, "-m", "jsctl", "--context", "dev_service", "reply", "service.x"]
        with subprocess.Popen([*words, "pong"]) as replier:
            try:
                wait_for(lambda: "pong" in cli("req", "service.x", "ping").out, "an answer")
            finally:
                replier.kill()
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    assert is_free(int(str(told["url"]).rpartition(":")[2]))
    secret = tmp_path / "data" / "jsctl" / "run" / "dev" / "passwords.json"
    assert secret.stat().st_mode & 0o777 == 0o600
    with running("dev", "--port", str(free_port())) as (_, again):
        assert again["passwords"] == told["passwords"]
        assert cli("--context", "dev", "stream", "ls", "-n").out == "A\n"


def test_nothing_is_left_of_a_clean_cluster(cli: Run, tmp_path: Path) -> None:
    with running("three", "--servers", "3", "--port", str(free_port()), "--clean") as (_, told):
        assert str(told["url"]).count("nats://") == 3
        words = ("stream", "add", "R", "--subjects", "r", "--replicas", "3", "--defaults")
        assert cli("--context", "three", *words).code == 0
    assert context_names() == set()
    assert not (tmp_path / "data" / "jsctl" / "run" / "three").exists()


@contextmanager
def hangups(handler: signal.Handlers) -> Iterator[None]:
    """Programs that are started meanwhile begin with this; the tests may have `nohup` in front."""
    before = signal.signal(signal.SIGHUP, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("flags", [(), ("--verbose",)])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGHUP])
def test_its_servers_end_with_it(how: signal.Signals, flags: tuple[str, ...]) -> None:
    words = ("gone", "--servers", "3", "--port", str(free_port()), *flags)
    with hangups(signal.SIG_DFL), running(*words) as (process, told):
        process.send_signal(how)
        process.wait(PATIENCE_S)
        ports = [int(url.rpartition(":")[2]) for url in str(told["url"]).split(",")]
        assert len(ports) == 3
        wait_for(lambda: all(is_free(port) for port in ports), "all servers are gone")


def test_a_terminal_that_closes_is_nothing_to_who_ignores_it() -> None:
    words = ("stays", "--port", str(free_port()))
    with hangups(signal.SIG_IGN), running(*words) as (process, told):  # As `nohup` does.
        process.send_signal(signal.SIGHUP)
        assert not is_free(int(str(told["url"]).rpartition(":")[2]))
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_names_and_folders_of_any_letters(cli: Run, tmp_path: Path) -> None:
    folder = tmp_path / 'jürgen "a\\b" \x07'
    with running("dév", "--port", str(free_port()), "--directory", str(folder)):
        assert (
            cli("--context", "dév", "stream", "add", "A", "--subjects", "a", "--defaults").code == 0
        )
    assert (folder / "n1" / "jetstream").is_dir()


def test_a_port_that_is_taken_is_named(cli: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        if port > 61_000:
            pytest.skip("the system gave a port that is too high")
        done = cli("server", "run", "--port", str(port))
    assert done.code == 1
    assert f"cannot listen on 127.0.0.1:{port}: " in done.err
    assert context_names() == set()
    assert not data_home().exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--servers", "0"), "--servers is a number from 1 to 9, got 0"),
        (("--port", "65000"), "--port is a number from 1 to"),
        (("../up",), "invalid server name"),
        (("x", "--directory", "no\udcfftext"), "is no text that a configuration may have"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    cli: Run, words: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = cli("server", "run", *words)
    assert (done.code, told in done.err) == (1, True)
    assert list(tmp_path.iterdir()) == []
