"""Signals at any moment: a command ends soon, by that signal, and leaves everything tidy.

What `kill`, `timeout` or a terminal that closes sends is no reason for half-written files or for a
terminal on which nobody sees what he types.
"""

import fcntl
import os
import pty
import random
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from zipfile import is_zipfile

import pytest

from jsctl.cli import main
from jsctl.testing import Broker, BrokerFactory
from tests.support.interrupted import COLUMNS, LINES, begun, started
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes
END_S = 60
LOADED_S = 0.3
"""Before that Python itself may show where an interrupt found it."""
LATEST_S = 2.0
DRAWS = 12
LARGE = 48 * 1024 * 1024
MANY = 60_000
OTHER_SCREEN, OWN_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"
NO_CURSOR, CURSOR = b"\x1b[?25l", b"\x1b[?25h"
TROUBLE = (b"Traceback", b"never retrieved", b"was destroyed", b"never awaited", b"RuntimeError")
CONFIG = """
accounts {
  SYS { users [ { user: sys, password: x } ] }
  A { jetstream: enabled, users [ { user: a, password: x } ] }
}
system_account: SYS
no_auth_user: a
"""
DRAWN = (
    "sub x",
    "sub x --report-subjects",
    "sub --stream ST --durable D --ack",
    "sub st.> --graph",
    "reply r hello",
    "pub x {{.Count}} --count 100000000 --sleep 10ms",
    "pub x hello --count 100000000 -q",
    "pub x --force-stdin",
    "object put O --name endless",
    "object get O large --output FOLDER/made -f",
    "stream backup OBJ_O FOLDER/made",
    "sys audit gather --output FOLDER/made",
    "events --all -o csv",
    "stream report --watch 1",
    "consumer report ST --watch 1",
    "sys server report jetstream --watch 1",
    "sys server watch jetstream",
    "sys server watch accounts",
    "sys server graph n1",
    "sys top n1",
    "stream graph ST",
    "kv watch K",
    "consumer next ST EMPTY --wait 60s",
    "traffic st.>",
    "latency --server-b URL --duration 1m",
    "bench pub x --msgs 1000000000",
    "bench js pub sync b.x --create --stream B --msgs 100000000",
    "service serve foo",
    "stream copy ST COPY --data --prefix copy --subjects copy.>",
)
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BY_INTERRUPT = {130, 0, 1}
"""Broken off, ended the way that is meant to end it, or at a question."""


@dataclass(slots=True)
class Terminal:
    """What a program sees as one; what it writes is read as a person would."""

    screen: int
    terminal: int
    found: bytearray = field(default_factory=bytearray)

    def look(self, seconds: float) -> None:
        """What comes in so long."""
        end = monotonic() + seconds
        while (left := end - monotonic()) > 0:
            if select.select([self.screen], [], [], left)[0]:
                self.found += os.read(self.screen, 65536)

    def has(self, wanted: bytes) -> bool:
        """Whether that was written."""
        self.look(0.02)
        return wanted in self.found

    def is_over(self, process: "subprocess.Popen[bytes]") -> bool:
        """Whether the process is; reads on meanwhile."""
        self.look(0.02)
        return process.poll() is not None


@contextmanager
def a_terminal() -> Iterator[Terminal]:
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    before = termios.tcgetattr(terminal)
    made = Terminal(screen, terminal)
    try:
        yield made
        made.look(0.02)
        assert termios.tcgetattr(terminal) == before
        assert made.found.rfind(OTHER_SCREEN) <= made.found.rfind(OWN_SCREEN)
        assert made.found.rfind(NO_CURSOR) <= made.found.rfind(CURSOR)
        assert not [word for word in TROUBLE if word in made.found], bytes(made.found)
    finally:
        os.close(screen)
        os.close(terminal)


@pytest.fixture(scope="module")
def filled(jsctl_session_broker: BrokerFactory, tmp_path_factory: pytest.TempPathFactory) -> Broker:
    """With what the lines name."""
    broker = jsctl_session_broker("-js", config=CONFIG, name="n1")
    file = tmp_path_factory.mktemp("large") / "object"
    file.write_bytes(os.urandom(LARGE))
    for line in (
        "stream add ST --subjects st.> --defaults",
        "pub st.{{.Count}} x -J -q --count 100",
        "consumer add ST EMPTY --pull --filter none.st --defaults",
        "kv add K",
        "object add O",
        f"object put O {file} --name large --no-progress",
    ):
        assert main(["-s", broker.url, *line.split(" ")]) == 0, line
    return broker


def program(broker: Broker, line: str, folder: Path) -> list[str]:
    words = shlex.split(line.replace("FOLDER", str(folder)).replace("URL", broker.url))
    login = ["--user", "sys", "--password", "x"] if words[0] == "sys" else []
    return [sys.executable, "-m", "jsctl", "-s", broker.url, *login, *words[bool(login) :]]


def is_whole(path: Path) -> bool:
    """What a line made, and ended just before a signal came."""
    if path.name != "made":
        return False
    if path.is_dir():
        return (path / "backup.json").exists()
    return path.stat().st_size == LARGE or is_zipfile(path)


def right_end(number: signal.Signals) -> set[int]:
    return BY_INTERRUPT if number is signal.SIGINT else {-number}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_signal_at_any_moment(filled: Broker, seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    for at in range(DRAWS):
        line, number = draw.choice(DRAWN), draw.choice(ENDS)
        moment_s = draw.uniform(LOADED_S, draw.choice((2 * LOADED_S, LATEST_S)))
        what = (line, number.name, moment_s)
        folder = tmp_path / str(at)
        folder.mkdir()
        with a_terminal() as its:
            words, end = program(filled, line, folder), its.terminal
            with started(
                words, stdin=end, stdout=end, stderr=end, folder=folder, session=True
            ) as process:
                its.look(moment_s)
                over = process.poll() is not None
                process.send_signal(number)
                wait_for(lambda: its.is_over(process), f"{what} ends", END_S)
                assert over or process.returncode in right_end(number), (what, its.found)
        assert all(map(is_whole, folder.iterdir())), (what, [*folder.rglob("*")])


def test_what_is_watched_on_a_terminal_gives_it_back(filled: Broker, tmp_path: Path) -> None:
    """Keys are heard one by one and the screen is another one until then."""
    for number in ENDS:
        with a_terminal() as its:
            words, end = program(filled, "sys server watch accounts", tmp_path), its.terminal
            with started(words, stdin=end, stdout=end, stderr=end, session=True) as process:
                wait_for(lambda: its.has(OTHER_SCREEN), "it is watched")
                process.send_signal(number)
                wait_for(lambda: its.is_over(process), "it ends", END_S)
                assert process.returncode in right_end(number)


def test_what_is_being_written_is_taken_away(filled: Broker, tmp_path: Path) -> None:
    words = program(filled, "object get O large --output FOLDER/made -f", tmp_path)
    with begun(words, tmp_path) as process:

        def is_written() -> bool:
            assert process.poll() is None
            return any(tmp_path.glob("*made*"))

        wait_for(is_written, "it is at work")
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_S) == -signal.SIGTERM
    assert [one.name for one in tmp_path.iterdir()] == ["log"]


def test_an_edited_backup_is_taken_away(filled: Broker, tmp_path: Path) -> None:
    for line in (
        "stream add MANY --subjects many --defaults",
        f"bench js pub async many --stream MANY --msgs {MANY} --size 64 --no-progress",
        f"stream backup MANY {tmp_path}/whole --no-progress",
    ):
        assert main(["-s", filled.url, *line.split(" ")]) == 0, line
    for number in ENDS:
        words = program(filled, "backup edit FOLDER/whole FOLDER/made --obfuscate", tmp_path)
        with begun(words, tmp_path) as process:

            def is_begun() -> bool:
                assert process.poll() is None
                return any("made" in one.name for one in tmp_path.iterdir())

            wait_for(is_begun, "it is at work")
            process.send_signal(number)
            assert process.wait(END_S) in right_end(number)
        assert sorted(one.name for one in tmp_path.iterdir()) == ["log", "whole"]


def test_a_question_is_left_at_once(filled: Broker, tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        with a_terminal() as its:
            words, end = program(filled, "stream rm ST", tmp_path), its.terminal
            with started(words, stdin=end, stdout=end, stderr=end, session=True) as process:
                wait_for(lambda: its.has(b"(y/N)"), "it asks")
                process.send_signal(number)
                wait_for(lambda: its.is_over(process), "it ends", END_S)
                assert process.returncode == -number


def test_a_pick_list_gives_the_terminal_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a command that has no loop, too."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    contexts = tmp_path / "nats" / "context"
    contexts.mkdir(parents=True)
    for name in ("one", "two"):
        (contexts / f"{name}.json").write_text("{}")
    for number in ENDS:
        with a_terminal() as its:
            words, end = [sys.executable, "-m", "jsctl", "context", "select"], its.terminal
            with started(words, stdin=end, stdout=end, stderr=end, session=True) as process:
                wait_for(lambda: its.has(b"two"), "it asks")
                process.send_signal(number)
                wait_for(lambda: its.is_over(process), "it ends", END_S)
                assert process.returncode in right_end(number), its.found


def test_input_that_never_ends_is_left_at_once(filled: Broker, tmp_path: Path) -> None:
    with begun(program(filled, "kv put K key", tmp_path), tmp_path) as process:
        wait_for(lambda: _clients(filled) > 0, "it is connected")
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_S) == -signal.SIGTERM


def _clients(broker: Broker) -> int:
    found = broker.monitor("/connz")
    assert isinstance(found, dict)
    count = found["num_connections"]
    assert isinstance(count, int)
    return count


def test_a_terminal_that_closes_is_nothing_to_what_runs_behind_nohup(
    filled: Broker, tmp_path: Path
) -> None:
    words = ["nohup", *program(filled, "sub st.> --count 1", tmp_path)]
    with begun(words, tmp_path) as process:
        log = tmp_path / "log"
        wait_for(lambda: "Subscribing on" in log.read_text(), "it listens")
        process.send_signal(signal.SIGHUP)
        assert main(["-s", filled.url, "pub", "st.new", "told"]) == 0
        assert process.wait(END_S) == 0
        assert "told" in log.read_text()


BLOCKED = """
import time
from jsctl.commands.toolkit.invocation import finishing
async def blocked():
    print("at work", flush=True)
    time.sleep(60)
finishing.ASKED_S = 0.2
finishing.finished(blocked)
"""


def test_what_does_not_look_up_ends_in_time(tmp_path: Path) -> None:
    """As a pipe that nobody reads from keeps a command."""
    with begun([sys.executable, "-c", BLOCKED], tmp_path) as process:
        wait_for(lambda: "at work" in (tmp_path / "log").read_text(), "it is at work")
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_S) == 128 + signal.SIGTERM
