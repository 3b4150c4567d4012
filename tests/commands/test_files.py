"""Files that commands write: whole or not there, and one line where they cannot be written."""

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from jsctl.cli import main
from jsctl.commands.toolkit.invocation.files import save
from jsctl.errors import JsctlError
from jsctl.testing import BrokerFactory
from tests.commands.conftest import Result

Run = Callable[..., Result]
LITTLE = 700
"""An operator's claims are shorter, those of its system account longer."""


def limited() -> None:
    """A process that may write files of so many bytes, as on a disk that is full."""
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LITTLE, LITTLE))


def test_a_file_is_replaced_in_one_step_and_keeps_its_readers(tmp_path: Path) -> None:
    target = tmp_path / "made.json"
    save(target, "one")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    target.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(target)
    save(link, b"two")
    assert (target.read_text(), link.is_symlink()) == ("two", True)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "made.json"]


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    save(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "none" / "x"
    with pytest.raises(JsctlError, match=f"^open {missing}: no such file or directory$"):
        save(missing, "x")


@pytest.mark.processes
def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "kept"
    target.write_text("old")
    program = (
        "import sys; from pathlib import Path; from jsctl.errors import JsctlError\n"
        "from jsctl.commands.toolkit.invocation.files import save\n"
        "try: save(Path(sys.argv[1]), 'x' * 5000)\n"
        "except JsctlError as error: print(error)"
    )
    words = [sys.executable, "-c", program, str(target)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, preexec_fn=limited)
    assert done.stdout == f"write {target}: file too large\n"
    assert target.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["kept"]


@pytest.mark.processes
@pytest.mark.parametrize("target", ["none/made.json", "made.json"])
def test_a_configuration_that_cannot_be_written(run: Run, tmp_path: Path, target: str) -> None:
    """Never a traceback, and nothing half written."""
    words = ("stream", "add", "S", "--subjects", "s", "--defaults", "--output")
    if target == "made.json":
        (tmp_path / "made.json").mkdir()
    refused = run(*words, str(tmp_path / target))
    reason = "is a directory" if target == "made.json" else "no such file or directory"
    wanted = f"jsctl: error: open {tmp_path / target}: {reason}\n"
    assert (refused.code, refused.out, refused.err) == (1, "", wanted)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("line", "file"),
    [
        (f"context add c --description {'x' * LITTLE}", "nats/context/c.json"),
        ("auth operator add OP", "SYSTEM.jwt"),
        ("sub --stream S --last --terminate-at-end --dump .", "1.json"),
    ],
)
def test_on_a_full_disk_nothing_is_half_made(
    line: str, file: str, jsctl_session_broker: BrokerFactory, tmp_path: Path
) -> None:
    broker = jsctl_session_broker("-js")
    for words in ("stream add S --subjects s --defaults", f"pub s {'x' * LITTLE} -J -q"):
        assert main(["-s", broker.url, *words.split(" ")]) == 0
    own = {"NATS_URL": broker.url, "XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "jsctl", *line.split(" ")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, **own},
        preexec_fn=limited,
    )
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, last.startswith("jsctl: error: ")) == (1, True), done.stderr
    assert f"{file}: " in last
    assert "file too large" in last.lower()
    left = {one.name for one in tmp_path.rglob("*") if one.is_file() and one.suffix != ".nk"}
    assert left <= {".gitignore"}, left


@pytest.mark.processes
def test_a_full_standard_output_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "jsctl", "cheat"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("jsctl: error: ")
    assert done.stderr.endswith("no space left on device\n")
    assert done.stderr.count("\n") == 1


def left(words: Sequence[str]) -> tuple[int, str]:
    """What a command ends with, and says, whose output nobody reads any more."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "jsctl", *words],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    return done.returncode, done.stderr


@pytest.mark.processes
@pytest.mark.parametrize("words", [("--help",), ("broker", "--help")])
def test_a_pager_that_is_left_is_no_error(words: tuple[str, ...]) -> None:
    assert left(words) == (0, "")


@pytest.mark.processes
@pytest.mark.parametrize(
    "words", [("stream", "info", "-%"), ("no-such-command",), ("kv", "--bogus")]
)
def test_the_page_below_an_error_may_be_left(words: tuple[str, ...]) -> None:
    code, told = left(words)
    assert code == 1, told
    assert "error: " in told
    assert "Traceback" not in told and "ignored" not in told
