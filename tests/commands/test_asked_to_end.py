"""Signals at any moment: a command ends soon, by that signal, and leaves everything tidy.

What `kill`, `timeout` or a terminal that closes sends is no reason for half-written files or for a
terminal on which nobody sees what he types.
"""

import random
import signal
import sys
from pathlib import Path

import pytest

from jsctl.cli import main
from jsctl.testing import Broker, BrokerFactory
from tests.support.interrupted import begun, started
from tests.support.signalled import (
    CONFIG,
    DRAWN,
    LATEST_S,
    LOADED_S,
    OTHER_SCREEN,
    a_terminal,
    fill,
    is_whole,
    program,
)
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes
END_S = 60
DRAWS = 12
MANY = 60_000
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BY_INTERRUPT = {130, 0, 1}
"""Broken off, ended the way that is meant to end it, or at a question."""


@pytest.fixture(scope="module")
def filled(jsctl_session_broker: BrokerFactory, tmp_path_factory: pytest.TempPathFactory) -> Broker:
    """With what the lines name."""
    broker = jsctl_session_broker("-js", config=CONFIG, name="n1")
    fill(broker, tmp_path_factory.mktemp("large") / "object")
    return broker


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
