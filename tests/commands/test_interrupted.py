"""Ctrl-C ends whatever runs long: at once, with a status, and nothing half-written is left."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path

import pytest

from jsctl.api.times import SECOND_NS
from jsctl.backups.directory import description_of
from jsctl.cli import main
from jsctl.client.backup import restore_stream
from jsctl.client.manager import open_manager
from jsctl.commands.toolkit.invocation import finishing
from jsctl.commands.toolkit.invocation.finishing import finished
from jsctl.errors import Unreachable
from jsctl.settings import Context, Settings
from jsctl.testing import Broker, BrokerFactory, RealServer
from tests.support.interrupted import begun
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes
END_S = 60
SILENT_S = 0.3
"""Much longer than until an interrupt is told again, where a test says so."""
TIMEOUT_S = 0.5
INTERRUPTED, LEFT = 130, 0
"""Broken off; or ended the way that is meant to end it, as reports that are watched."""
CONFIG = """
accounts {
  SYS { users [ { user: sys, password: x } ] }
  A { jetstream: enabled, users [ { user: a, password: x } ] }
  B { jetstream: enabled, users [ { user: b, password: x } ] }
  C { jetstream: enabled, users [ { user: c, password: x } ] }
}
system_account: SYS
no_auth_user: a
"""
CHECKS = "checks:\n  - {name: a, kind: stream, properties: {stream_name: ST}}\n"
TROUBLE = ("Traceback", "never retrieved", "was destroyed", "Exception ignored", "never awaited")
MESSAGES = 400
LARGE = 96 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Long:
    """A line that goes on, what it shows when it does (else: it is connected), and its status."""

    line: str
    shown: str = ""
    code: int | None = INTERRUPTED
    """None where it shows nothing by itself, and is broken off before or in its loop."""
    clients: int = 1
    system: bool = False
    left: tuple[str, ...] = ()
    """What is in the folder afterwards, beside what was there."""


LONG = (
    Long("sub x", "Subscribing on x"),
    Long("sub x -o csv", "Subscribing on x"),
    Long("sub x --raw"),
    Long("sub x --report-subjects", "Subscribing on x"),
    Long("sub x --dump FOLDER/dumped", left=("dumped",)),
    Long("sub --stream ST --last", "last received"),
    Long("sub --stream ST --durable D --ack"),
    Long("sub x --match-replies"),
    Long("sub st.> --stream ST --direct --new", "Subscribing to JetStream Stream (direct)"),
    Long("sub x --backup FOLDER/whole", "Subscribing on x", LEFT, left=("whole",)),
    Long("reply r hello", "Listening on", LEFT),
    Long("request st.r x --replies 5 --timeout 60s", "Received with rtt"),
    Long("pub x {{.Count}} --count 100000000 --sleep 10ms"),
    Long("pub x hello --count 100000000 -q"),
    Long("pub x --force-stdin"),
    Long("kv put K key"),
    Long("object put O --name endless"),
    Long("events --js-advisory --js-metric --no-srv-advisory", "Listening for Metrics"),
    Long("events --all -o csv"),
    Long("events --stream NONE", "Listening for Events in stream"),
    Long("events", "Listening for Authentication", system=True),
    Long("stream report --watch 1", "Stream Report", LEFT),
    Long("consumer report ST --watch 1", "EMPTY", LEFT),
    Long("account report statistics --watch 1", "tatistics", LEFT),
    Long("account report connections --watch 1", "Connections", LEFT),
    Long("server report jetstream --watch 1", "JetStream Summary", LEFT, system=True),
    Long("server report connections --watch 1 -o json", "cid", LEFT, system=True),
    Long("server watch jetstream", "│", LEFT, system=True),
    Long("server watch accounts", "│", LEFT, system=True),
    Long("server watch servers", "│", LEFT, system=True),
    Long("server watch api requests", "", None, system=True),
    Long("top n1", "n1", LEFT, system=True),
    Long("kv watch K"),
    Long("kv watch K -o json"),
    Long("object watch O"),
    Long("consumer next ST EMPTY --wait 60s"),
    Long("consumer next ST EMPTY --count 5 --wait 60s"),
    Long("consumer sub ST PUSH", "st.1"),
    Long("traffic st.>", "General Traffic"),
    Long("latency --server-b URL --duration 1m", "Pub Server RTT", clients=2),
    Long("latency --server-b URL --duration 1m --rate 1000000000", "Target Band", clients=2),
    Long("bench pub x --msgs 1000000000", "Starting Core NATS publisher"),
    Long("bench pub x --msgs 1000000000 --clients 2", clients=2),
    Long("bench sub x --msgs 100", "Starting Core NATS subscriber"),
    Long("bench sub x --msgs 100 --clients 2", clients=2),
    Long("bench service serve s", "Starting"),
    Long("bench js pub sync bench.x --create --stream BENCH --msgs 100000000", "Starting"),
    Long("bench js consume --stream ST --msgs 100000000", "Starting"),
    Long("bench kv put --bucket BENCH --msgs 100000000", "Starting"),
    Long("service serve foo"),
    Long("server check exporter --config FOLDER/checks.yaml --port 0", "listening on"),
    Long("stream copy ST COPY --data --prefix copy --subjects copy.>", "", clients=1),
)


@pytest.fixture(scope="module")
def broker(jsctl_session_broker: BrokerFactory) -> Broker:
    return jsctl_session_broker("-js", config=CONFIG, name="n1")


@pytest.fixture(scope="module")
def filled(broker: Broker) -> Broker:
    """With what the lines name."""
    for line in (
        "stream add ST --subjects st.> --allow-direct --defaults",
        "stream add NONE --subjects none --defaults",
        f"pub st.{{{{.Count}}}} x -J -q --count {MESSAGES}",
        "consumer add ST EMPTY --pull --filter none.st --defaults",
        "consumer add ST PUSH --target pushed --deliver all --defaults",
        "kv add K",
        "object add O",
        "kv add BENCH",
    ):
        assert main(["-s", broker.url, *line.split(" ")]) == 0, line
    return broker


def connections(broker: Broker) -> int:
    found = broker.monitor("/connz")
    assert isinstance(found, dict)
    count = found["num_connections"]
    assert isinstance(count, int)
    return count


@pytest.mark.parametrize("long", LONG, ids=[one.line for one in LONG])
def test_one_interrupt_ends_it(filled: Broker, long: Long, tmp_path: Path) -> None:
    (tmp_path / "checks.yaml").write_text(CHECKS)
    log = tmp_path / "log"
    line = long.line.replace("FOLDER", str(tmp_path)).replace("URL", filled.url)
    login = ["--user", "sys", "--password", "x"] if long.system else []
    words = [sys.executable, "-m", "jsctl", "-s", filled.url, *login, *line.split(" ")]
    wait_for(lambda: not connections(filled), "nobody is left of the line before")
    with begun(words, tmp_path) as process:

        def goes_on() -> bool:
            assert process.poll() is None, log.read_text()
            if long.shown:
                return long.shown in log.read_text()
            return connections(filled) >= long.clients

        wait_for(goes_on, "it goes on")
        process.send_signal(signal.SIGINT)
        codes = (INTERRUPTED, LEFT) if long.code is None else (long.code,)
        assert process.wait(END_S) in codes, log.read_text()
    said = log.read_text(errors="replace")
    assert not [word for word in TROUBLE if word in said], said
    assert "error" not in said, said
    assert {one.name for one in tmp_path.iterdir()} == {"log", "checks.yaml", *long.left}


@pytest.fixture(scope="module")
def large(filled: Broker, tmp_path_factory: pytest.TempPathFactory) -> Broker:
    """With a stream and an object that take a while."""
    file = tmp_path_factory.mktemp("large") / "object"
    file.write_bytes(os.urandom(LARGE))
    for line in (f"object put O {file} --name large", "stream ls"):
        assert main(["-s", filled.url, *line.split(" ")]) == 0, line
    return filled


@pytest.fixture(scope="module")
def saved(large: Broker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Backups of two of its streams, a small one and one that takes a while."""
    folder = tmp_path_factory.mktemp("saved")
    for name in ("KV_K", "OBJ_O"):
        assert main(["-s", large.url, "backup", "stream", name, f"{folder}/{name}"]) == 0
    return folder


@dataclass(frozen=True, slots=True)
class Silent:
    """A line that is broken off when it shows something, or when a file is there."""

    line: str
    said: str
    shown: str = ""
    file: str = ""
    user: str = "a"
    left: tuple[str, ...] = ()
    """What is in the folder afterwards."""
    streams: tuple[str, ...] = ()
    """Of an account that was empty."""


SILENT = (
    Silent("object get O large --output FOLDER/made -f", "", file="*made*"),
    Silent("stream backup OBJ_O FOLDER/made", "there is no backup in", file="made/*"),
    Silent("backup stream OBJ_O FOLDER/made", "there is no backup in", file="made/*"),
    Silent(
        "account backup FOLDER/all -f", " backed up in ", file="all/OBJ_O/stream*", left=("all",)
    ),
    Silent(
        "stream restore SAVED/OBJ_O",
        "nothing was restored, but the server may have a part of OBJ_O",
        "Starting restore",
        user="b",
    ),
    Silent(
        "account restore SAVED",
        "restored KV_K, but the server may have a part of OBJ_O",
        'Starting restore of Stream "OBJ_O"',
        user="c",
        streams=("KV_K",),
    ),
    Silent(
        "audit gather --output FOLDER/made", "nothing was written to", file="*made*", user="sys"
    ),
)


@pytest.mark.parametrize("silent", SILENT, ids=[one.line for one in SILENT])
def test_what_is_broken_off_is_not_there_though_the_server_is_silent(
    large: Broker,
    saved: Path,
    silent: Silent,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    log = tmp_path / "log"
    line = silent.line.replace("FOLDER", str(tmp_path)).replace("SAVED", str(saved))
    login = ["-s", large.url, "--user", silent.user, "--password", "x"]

    def goes_on() -> bool:
        assert process.poll() is None, log.read_text()
        return silent.shown in log.read_text() and (
            not silent.file or any(tmp_path.glob(silent.file))
        )

    words = [sys.executable, "-m", "jsctl", *login, *line.split(" ")]
    with begun(words, tmp_path) as process:
        wait_for(goes_on, "it is at work")
        large.pause()
        try:
            process.send_signal(signal.SIGINT)
            assert process.wait(END_S) == INTERRUPTED, log.read_text()
        finally:
            large.resume()
    said = log.read_text().splitlines()
    assert not [one for one in said if any(word in one for word in TROUBLE)], said
    assert [silent.said in one for one in said if one.startswith("interrupted: ")] == (
        [True] if silent.said else []
    ), said
    assert {one.name for one in tmp_path.iterdir()} == {"log", *silent.left}
    for folder in tmp_path.glob("all/*"):
        assert (folder / "backup.json").exists(), "it is whole"
    if silent.user in "bc":
        capfd.readouterr()
        assert main([*login, "stream", "ls", "--all", "-n"]) == 0
        assert tuple(capfd.readouterr().out.split()) == silent.streams


@pytest.mark.parametrize("words", ["stream restore", "backup restore stream"])
def test_a_restore_that_is_broken_off_leaves_no_part_on_a_server_that_keeps_what_came(
    saved: Path, words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    with RealServer("-js") as server:
        login = ["-s", server.url]
        line = [sys.executable, "-m", "jsctl", *login, *words.split(" "), f"{saved}/OBJ_O"]

        def some_came() -> bool:
            found = server.monitor("/jsz")
            return isinstance(found, dict) and found["messages"] != 0

        with begun(line, tmp_path) as process:
            wait_for(some_came, "a part is there")
            assert process.poll() is None, log.read_text()
            process.send_signal(signal.SIGINT)
            assert process.wait(END_S) == INTERRUPTED, log.read_text()
        assert log.read_text().endswith("\ninterrupted: nothing was restored\n")
        capfd.readouterr()
        assert main([*login, "stream", "ls", "--all", "-n"]) == 0
        assert capfd.readouterr().out == ""


def test_an_interrupt_that_was_forgotten_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finishing, "TOLD_AGAIN_S", 0.01)

    async def forgetful() -> int | None:
        signal.raise_signal(signal.SIGINT)
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()
        return None

    with pytest.raises(KeyboardInterrupt):
        finished(forgetful)


class Ends(Enum):
    """What breaks a restore off."""

    INTERRUPT = auto()
    TWO_INTERRUPTS = auto()
    SILENCE = auto()


@pytest.mark.parametrize("ends", list(Ends))
def test_what_had_come_is_taken_back_when_the_server_is_there_again(
    saved: Path, ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What tells an interrupt again does not break that off; a second one of the user does, and
    he is told that a part may be left."""
    monkeypatch.setattr(finishing, "TOLD_AGAIN_S", 0.05)
    directory, sent, left = saved / "OBJ_O", list[int](), list[str]()
    description = description_of(directory)

    async def restoring() -> int | None:
        loop = asyncio.get_running_loop()

        def begun(size: int) -> None:
            if sent:
                return
            sent.append(size)
            server.pause()
            if ends is Ends.SILENCE:
                loop.call_later(2 * TIMEOUT_S, server.resume)
                return
            signal.raise_signal(signal.SIGINT)
            if ends is Ends.INTERRUPT:
                loop.call_later(SILENT_S, server.resume)
            else:
                loop.call_later(SILENT_S, signal.raise_signal, signal.SIGINT)

        settings = Settings(connection=Context(url=server.url))
        if ends is Ends.SILENCE:
            settings = replace(settings, timeout_ns=int(TIMEOUT_S * SECOND_NS))
        async with open_manager(settings) as manager:
            await restore_stream(
                manager,
                directory,
                description.config,
                description.state,
                progress=begun,
                part_left=lambda: left.append("a part"),
            )
        return None

    with RealServer("-js") as server:
        with pytest.raises(Unreachable if ends is Ends.SILENCE else KeyboardInterrupt):
            finished(restoring)
        if ends is Ends.TWO_INTERRUPTS:
            server.resume()
            assert left == ["a part"]
        else:
            found = server.monitor("/jsz", timeout_s=END_S)
            assert isinstance(found, dict)
            assert (found["streams"], left) == (0, [])


def test_what_a_command_makes_of_an_interrupt_counts() -> None:
    async def reported() -> int | None:
        signal.raise_signal(signal.SIGINT)
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return 3

    assert finished(reported) == 3


def test_an_interrupt_does_not_end_what_is_being_answered() -> None:
    """It comes between two instructions: behind the look whether anybody waits, as here."""
    answered: list[bool] = []

    async def waiting() -> int | None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()

        def answer() -> None:
            if not future.done():
                signal.raise_signal(signal.SIGINT)
                future.set_result(True)
                answered.append(True)

        loop.call_soon(answer)
        await future
        await asyncio.Event().wait()
        return None

    with pytest.raises(KeyboardInterrupt):
        finished(waiting)
    assert answered


def test_one_that_comes_right_behind_another_is_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    tidied: list[str] = []

    async def tidy() -> int | None:
        signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            signal.raise_signal(signal.SIGINT)
            tidied.append("all")
        return None

    with pytest.raises(KeyboardInterrupt):
        finished(tidy)
    assert tidied == ["all"]
    assert signal.getsignal(signal.SIGINT) is before
    assert capfd.readouterr() == ("", "")
