"""The whole process with the echo node: log, files, signals, exit status."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jsctl import OWNER
from jsctl.broker.app import main
from jsctl.broker.conf.units import size_text
from jsctl.broker.errors import ConfigError
from jsctl.broker.machine import jetstream_limits, new_server_id
from jsctl.broker.options import GIB, JetStreamOptions, Options
from jsctl.broker.routing.setup import peer_id
from jsctl.broker.server import signals
from jsctl.broker.server.turns import NodeLike
from jsctl.testing import Broker, find_real_server
from tests.broker.server.echo_node import EchoNode
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes

DEADLINE_S = 30.0
ECHO = (sys.executable, str(Path(__file__).parent / "echo_node.py"))


class EchoBroker(Broker):
    """The broker's edge in a process, with the echo node in it."""

    program = ECHO


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EchoBroker]:
    made = EchoBroker("-js", name="A", directory=tmp_path)
    yield made
    made.close()


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*ECHO, *words], capture_output=True, text=True, timeout=20, check=False)


def test_the_log_has_what_operators_look_for(broker: EchoBroker) -> None:
    broker.start()
    for line in (
        "Starting nats-server",
        "  Version:  2.15.1",
        "  Name:     A",
        "  Node:     NUmM6cRx",
        f"Starting http monitor on 127.0.0.1:{broker.monitor_url.rpartition(':')[2]}",
        "Starting JetStream",
        f'  Store Directory: "{broker.store_dir}/jetstream"',
        "  Sync:            always",
        f"Listening for client connections on 127.0.0.1:{broker.port}",
        "Server is ready",
    ):
        assert f"[INF] {line}" in broker.logs
    stamp = r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{6} \[INF\] Server is ready"
    assert re.search(rf"\[{broker.pid}\] " + stamp, broker.logs)
    assert broker.stop() == 0
    assert 'Trapped "terminated" signal' in broker.logs


def test_it_loads_nothing_of_the_front_end() -> None:
    """How long the start takes is a benchmark: `python -m benchmarks`."""
    code = "import sys, jsctl.commands.broker; print(*sys.modules)"
    words = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"rich", "click", "nats", "httpx", "textual", "bcrypt"} & set(words)


def test_pid_and_ports_files_come_and_go(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    config = f"ports_file_dir: '{tmp_path}'\ncluster {{ name: c, listen: '127.0.0.1:-1' }}"
    with EchoBroker("-P", str(pid_file), config=config) as broker:
        assert pid_file.read_text() == str(broker.pid)
        found = json.loads((tmp_path / f"nats-server_{broker.pid}.ports").read_text())
        assert found["nats"] == [broker.url]
        assert found["monitoring"] == [broker.monitor_url]
        assert found["cluster"][0].startswith("nats://127.0.0.1:")
        assert "[INF] Listening for route connections on 127.0.0.1:" in broker.logs
    assert not pid_file.exists()
    assert not list(tmp_path.glob("*.ports"))


def test_a_device_is_no_pid_file_to_take_away(tmp_path: Path) -> None:
    pid_file = tmp_path / "null"
    pid_file.symlink_to(os.devnull)
    with EchoBroker("-P", str(pid_file)) as broker:
        assert broker.url
    assert list(tmp_path.iterdir()) == [pid_file] and pid_file.is_symlink()


def test_signals(broker: EchoBroker, tmp_path: Path) -> None:
    log = tmp_path / "log"
    broker.flags = (*broker.flags, "-l", str(log), "-c", str(tmp_path / "c.conf"))
    (tmp_path / "c.conf").write_text("debug: false")
    broker.launch()

    def logged(text: str) -> None:
        wait_for(lambda: log.exists() and text in log.read_text(), text)

    logged("Server is ready")
    log.rename(tmp_path / "log.1")
    broker.signal(signal.SIGUSR1)
    logged("File log re-opened")
    (tmp_path / "c.conf").write_text("debug: maybe")
    broker.signal(signal.SIGHUP)
    logged("Failed to reload server configuration")
    (tmp_path / "c.conf").write_text("max_subscriptions: 5\ndebug: true")
    broker.signal(signal.SIGHUP)
    logged("config reload not supported for MaxSubs: old=0, new=5")
    (tmp_path / "c.conf").write_text("debug: true\nmax_payload: 1k")
    assert signals.find(str(broker.pid)) == [broker.pid]
    signals.send(f"reload={broker.pid}")
    logged("Reloaded server configuration")
    logged("Command: reload")
    logged("[DBG] max_payload is 1000 now")
    broker.signal(signal.SIGUSR2)
    logged("Command: lame duck")
    broker.signal(signal.SIGTERM)
    logged('Trapped "terminated" signal')
    assert broker.running
    broker.signal(signal.SIGINT)
    wait_for(lambda: not broker.running, "it has ended")
    assert broker.stop() == 0


def test_a_taken_port_is_fatal_and_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("-a", "127.0.0.1", "-p", str(port))
    assert done.returncode == 1
    assert f"[FTL] Error listening on port: 127.0.0.1:{port}" in done.stderr
    assert "address already in use" in done.stderr


def test_a_taken_port_is_told_before_the_node_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []

    def make_node(options: Options, server_id: str, store: Path | None) -> NodeLike:
        made.append(server_id)
        return EchoNode(options)

    pid = tmp_path / "pid"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = ["-a", "127.0.0.1", "-p", "-1", "-m", str(port), "-P", str(pid)]
        assert main(words, make_node) == 1
        assert f"Error listening on port: 127.0.0.1:{port}" in capsys.readouterr().err
        assert made == []
        assert not pid.exists()
        pid.write_text("1")
        assert main(words, make_node) == 1
    assert pid.read_text() == "1", "it is that of the server that has the port"


@pytest.mark.parametrize("words", [("-P", "no/pid"), ("--ports_file_dir", "no"), ("-l", "no/log")])
def test_a_file_that_cannot_be_written_is_told_before_anything_is_made(
    words: tuple[str, str], tmp_path: Path
) -> None:
    flag, path = words
    done = run("-js", "-sd", str(tmp_path / "store"), "-p", "-1", flag, str(tmp_path / path))
    assert done.returncode == 1
    assert str(tmp_path / path) in done.stderr
    assert "No such file or directory" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("/etc/passwd", "Can't start JetStream: storage directory is not a directory"),
        ("/proc/x/y", "Can't start JetStream: could not create storage directory - "),
    ],
)
def test_a_bad_store_directory_is_fatal(where: str, text: str) -> None:
    done = run("-js", "-sd", where, "-p", "-1")
    assert done.returncode == 1
    assert f"[FTL] {text}" in done.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--version"], "nats-server: v2.15.1 (jsctl "),
        (["version"], "nats-server: v2.15.1 (jsctl "),
        (["--help"], "Usage: jsctl broker [options]"),
        (["--help_tls"], "--tlscert"),
    ],
)
def test_what_only_prints(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert text in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--nope"], "flag provided but not defined: -nope\n\nUsage: jsctl broker"),
        (["foo"], 'jsctl broker: unrecognized command: "foo"'),
        (["-c", "none.conf"], "jsctl broker: none.conf: cannot be read: No such file"),
        (["-t"], "jsctl broker: no configuration file to test"),
        (["--routes", "nats://a:1"], "solicited routes require cluster capabilities"),
        (["--signal", "stop=x"], "'x' is neither a pid nor a pid file"),
        (["--signal", f"stop={2**31}"], "'2147483648' is neither a pid nor a pid file"),
        (["--signal", f"stop={'9' * 5000}"], "cannot be read: File name too long"),
        (["--signal", "jump=1"], "unknown signal 'jump'"),
    ],
)
def test_what_is_refused(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"\xff", b"0", b"1" * 5000])
def test_a_pid_file_without_a_pid(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="is neither a pid nor a pid file"):
        signals.find(str(path))


def test_all_errors_of_a_file_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.conf"
    path.write_text("foo: 1\nbar: 2")
    assert main(["-c", str(path)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" (")[0] for line in lines] == [
        f'jsctl broker: {path}:1:1: unknown field "foo"',
        f'jsctl broker: {path}:2:1: unknown field "bar"',
    ]
    path.write_text("cluster {")
    assert main(["-c", str(path)]) == 1
    assert "Parse error" in capsys.readouterr().err


def test_warnings_are_in_the_log() -> None:
    with EchoBroker("--user", "a", "--pass", "b", config="websocket { no_tls: true }") as broker:
        assert "[WRN] Plaintext passwords detected, use nkeys or bcrypt" in broker.logs
        assert '"websocket" has no effect in this server' in broker.logs


def test_the_peer_id_is_that_of_nats_server(tmp_path: Path) -> None:
    words = [find_real_server(), "-js", "-sd", str(tmp_path / "file"), "-n", "some-server"]
    (tmp_path / "file").write_text("a file: the server stops after its banner")
    theirs = subprocess.run(words, capture_output=True, text=True, check=False).stderr
    assert f"Node:     {peer_id('some-server')}" in theirs


def test_small_values(tmp_path: Path) -> None:
    identity = new_server_id()
    assert len(identity) == 56 and identity.startswith("N")
    assert size_text(3 * GIB // 2) == "1.50 GB"
    assert size_text(10) == "10 B"
    assert jetstream_limits(JetStreamOptions(memory_bytes_max=1, store_bytes_max=2), tmp_path) == (
        1,
        2,
    )
    memory, store = jetstream_limits(JetStreamOptions(), tmp_path)
    assert memory > 0 and store > 0
    assert os.getpid() not in signals.servers()


def test_a_bug_is_told_in_the_log_and_ends_the_server(broker: EchoBroker) -> None:
    broker.start()
    with socket.create_connection(("127.0.0.1", broker.port)) as peer:
        peer.sendall(b"BUG\r\n")
        wait_for(lambda: not broker.running, "it has ended")
    assert "[FTL] Internal error, the server stops" in broker.logs
    assert "ValueError: a bug" in broker.logs
    assert broker.stop() == 1


def test_the_process_is_gone_once_the_server_has_ended() -> None:
    code = (
        "import atexit, sys; atexit.register(print, 'taken apart');"
        "sys.argv = ['jsctl', 'broker', '--version'];"
        "from jsctl.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("nats-server: v")
    assert "taken apart" not in done.stdout


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system has no /proc")
def test_the_process_is_gone_when_clients_see_their_connection_end() -> None:
    """Memory goes before files: a process whose sockets the system closes has none any more."""
    with Broker("-js") as broker, socket.create_connection(("127.0.0.1", broker.port)) as peer:
        peer.settimeout(DEADLINE_S)
        peer.sendall(b"CONNECT {}\r\nPING\r\n")
        received = b""
        while b"PONG" not in received:
            received += peer.recv(4096)
        broker.signal(signal.SIGTERM)
        while peer.recv(4096):
            pass
        pages = Path(f"/proc/{broker.pid}/statm").read_text().split()
        assert not any(map(int, pages))
        assert broker.stop() == 0


def test_clients_get_all_that_was_written_before_the_process_goes(broker: EchoBroker) -> None:
    broker.start()
    size = 20_000_000
    with socket.create_connection(("127.0.0.1", broker.port)) as peer:
        peer.settimeout(DEADLINE_S)
        peer.sendall(b"FLOOD %d\r\n" % size)
        received = 0
        while received < 10_000:  # More than INFO: the rest lies with the server.
            received += peer.recv(4096).count(b"x")
        broker.signal(signal.SIGTERM)
        wait_for(lambda: "Trapped" in broker.logs, "the signal is heard")
        while chunk := peer.recv(1 << 20):
            received += chunk.count(b"x")
    assert received == size
    assert broker.stop() == 0


@pytest.mark.parametrize("let_go", [False, True])
def test_a_server_ends_with_who_has_the_other_end_of_its_pipe(let_go: bool) -> None:
    theirs, ours = os.pipe()
    command = [*ECHO, "-a", "127.0.0.1", "-p", "-1"]
    with subprocess.Popen(
        command,
        stdin=theirs,
        stderr=subprocess.PIPE,
        env={**os.environ, OWNER: "0"},
        text=True,
    ) as process:
        os.close(theirs)
        assert process.stderr is not None
        for line in process.stderr:
            if "Server is ready" in line:
                break
        if let_go:
            os.write(ours, b".")
        os.close(ours)
        if let_go:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.5)
            process.send_signal(signal.SIGTERM)
        assert "Server Exiting" in process.stderr.read()
    assert process.returncode in (0, -signal.SIGTERM)


@pytest.mark.parametrize("text", ["x", "-1", "99999", "9" * 30, "1.5"])
def test_an_owner_is_a_pipe(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(OWNER, text)
    assert main(["-a", "127.0.0.1", "-p", "-1"]) == 1
    assert f"{OWNER}: {text!r} is no open pipe" in capsys.readouterr().err
    assert OWNER not in os.environ
