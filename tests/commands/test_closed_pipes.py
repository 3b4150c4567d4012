"""Output that nobody reads any more ends a command, without a word, and its status is no lie."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest

from jsctl.cli import main
from jsctl.testing import Broker, BrokerFactory
from tests.support.interrupted import PATIENCE_S, started
from tests.support.signalled import CONFIG, TROUBLE

pytestmark = pytest.mark.processes
READER_LEFT = 141
END_S = 60
TICKS = "pub ticks {{.Count}} --count 100000000 --sleep 5ms -q"
DONE = (
    "stream ls",
    "stream info ST -j",
    "consumer report ST",
    "kv ls K",
    "errors lookup 10059",
    "schema search info",
    "account info",
    "sys server report jetstream",
    "sys server ls -o json",
    "stream --help",
    "help stream add",
    "--help",
    "errors --help",
    "completion bash",
    "stream edit ST --description told -f",
    "pub st.told hello -J",
)
"""They have done all that they had to do, whoever reads of it."""
LIVE = (
    "sub ticks",
    "sub ticks --raw",
    "sub ticks -o csv",
    "sub ticks -o json",
    "sub st.> --stream ST --direct --all",
    "consumer next ST ALL --count 90",
    "stream report --watch 1",
    "stream report --watch 1 -o json",
    "consumer report ST --watch 1",
    "account report statistics --watch 1",
    "sys server report jetstream --watch 1",
    "sys server watch jetstream",
    "sys server watch accounts",
    "traffic >",
)
MANY = ("errors ls -o json", "schema info io.nats.jetstream.api.v1.stream_configuration")


@pytest.fixture(scope="module")
def ticking(jsctl_session_broker: BrokerFactory) -> Iterator[Broker]:
    """With what the lines name, and messages all the time."""
    broker = jsctl_session_broker("-js", config=CONFIG, name="n1")
    for line in (
        "stream add ST --subjects st.> --allow-direct --defaults",
        "pub st.{{.Count}} x -J -q --count 100",
        "consumer add ST ALL --pull --deliver all --defaults",
        "kv add K",
        "kv put K key value",
    ):
        assert main(["-s", broker.url, *line.split(" ")]) == 0, line
    words = [sys.executable, "-m", "jsctl", "-s", broker.url, *TICKS.split(" ")]
    nowhere = subprocess.DEVNULL
    with started(words, stdin=nowhere, stdout=nowhere, stderr=nowhere):
        yield broker


@contextmanager
def read(
    broker: Broker, line: str, lines: int, folder: Path, *, buffered: bool = True
) -> Iterator[tuple[int, bytes]]:
    """Its status, and what it said beside, when so many lines of it were read at the most."""
    words = line.split(" ")
    login = ["--user", "sys", "--password", "x"] if words[0] == "sys" else []
    run = [sys.executable, "-m", "jsctl", *words[bool(login) :]]
    if not words[0].startswith("-"):
        run[3:3] = ["-s", broker.url, *login]
    reading, writing = os.pipe()
    with (
        (folder / "beside").open("wb") as beside,
        started(
            run,
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=beside,
            folder=folder,
            buffered=buffered,
        ) as process,
    ):
        os.close(writing)
        deadline, found = monotonic() + PATIENCE_S, b""
        while found.count(b"\n") < lines and monotonic() < deadline:
            if select.select([reading], [], [], 0.1)[0]:
                more = os.read(reading, 64)
                if not more:
                    break
                found += more
        os.close(reading)
        status = process.wait(END_S)
    said = (folder / "beside").read_bytes()
    assert not [word for word in (*TROUBLE, b"Broken pipe", b"BrokenPipe") if word in said], said
    yield status, said


@pytest.mark.parametrize("line", DONE)
def test_what_is_done_keeps_its_status(ticking: Broker, line: str, tmp_path: Path) -> None:
    with read(ticking, line, 0, tmp_path) as (status, said):
        assert status == 0, said


@pytest.mark.parametrize("lines", [0, 1, 5])
@pytest.mark.parametrize("line", LIVE)
def test_what_goes_on_is_broken_off(ticking: Broker, line: str, lines: int, tmp_path: Path) -> None:
    with read(ticking, line, lines, tmp_path) as (status, said):
        assert status in (READER_LEFT, 0) if "next" in line else status == READER_LEFT, said


@pytest.mark.parametrize("lines", [0, 1, 20])
@pytest.mark.parametrize("line", MANY)
def test_much_is_read_in_part(ticking: Broker, line: str, lines: int, tmp_path: Path) -> None:
    with read(ticking, line, lines, tmp_path) as (status, said):
        assert status in (READER_LEFT, 0), said


@pytest.mark.parametrize("line", ["stream info NONE", "--none", "stream none"])
def test_an_error_stays_one(ticking: Broker, line: str, tmp_path: Path) -> None:
    with read(ticking, line, 0, tmp_path) as (status, said):
        assert (status, b"error: " in said) == (1, True)


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("line", ["backup stream ST made", "stream backup ST made"])
def test_a_backup_that_is_broken_off_is_none(
    ticking: Broker, line: str, buffered: bool, tmp_path: Path
) -> None:
    """Its first words stop one that does not keep them until it is done."""
    with read(ticking, line, 0, tmp_path, buffered=buffered) as (status, _):
        assert status == (0 if buffered else READER_LEFT)
    assert (tmp_path / "made" / "backup.json").exists() == buffered
    assert (tmp_path / "made").exists() == buffered


def test_a_finding_stays_one(ticking: Broker, tmp_path: Path) -> None:
    line = "server check stream --stream ST --msgs-critical 1000000 --msgs-warn 1000001"
    with read(ticking, line, 0, tmp_path) as (status, said):
        assert status == 2, said
