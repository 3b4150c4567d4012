"""`subscribe --backup`: what is received becomes a backup that either tool reads."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jsctl.backups.archive import ArchiveReader, MessageEntry
from jsctl.cli import main
from jsctl.commands.messages.subscribe.show import stored_of
from tests.commands.conftest import Result
from tests.support.nats_process import real_server
from tests.support.real_cli import Answer, differences, nats, needs_nats

Run = Callable[..., Result]
pytestmark = [needs_nats, pytest.mark.processes]
WAIT_S = 30
FLAGS = (
    "sub a.> --quiet",
    "sub a.> --quiet --backup {new} --dump {new}",
    "sub a.> --backup {new} --graph",
    "sub a.> --backup {new} --report-subjects",
    "sub --stream S --direct --last-per-subject --backup {new}",
    "sub a.> --backup {full} --count 1",
    "sub a.> --count 1 --backup {dotted}",
)
RECORDED = (
    "sub a.> --stream S --all --terminate-at-end",
    "sub --stream S --direct --all --terminate-at-end",
    "sub a.1 --stream S --start-sequence 3 --terminate-at-end --quiet",
)


@pytest.fixture(scope="module", name="url")
def with_a_stream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with real_server(tmp_path_factory.mktemp("server")) as url:
        words = ("--subjects", "a.>", "--description", "all of a", "--defaults")
        assert main(["-s", url, "stream", "add", "S", *words]) == 0
        for at in range(6):
            headers = ("-H", f"N:{at}", "-H", "N:again", "-H", "A:b")
            assert main(["-s", url, "pub", f"a.{at % 2}", f"body {at}", *headers, "-J", "-q"]) == 0
        yield url


def read(directory: Path) -> tuple[dict[str, object], list[MessageEntry]]:
    with (directory / "stream.arc.s2").open("rb") as file:
        found = [one for one in ArchiveReader(file) if isinstance(one, MessageEntry)]
    return json.loads((directory / "backup.json").read_text()), found


@pytest.mark.parametrize("line", RECORDED)
def test_a_stream_is_recorded_as_the_real_tool_does(
    line: str, cli: Run, url: str, tmp_path: Path
) -> None:
    for name, run in (("theirs", nats), ("ours", cli)):
        done: Answer | Result = run("-s", url, *line.split(), "--backup", str(tmp_path / name))
        assert done.code == 0, done.err
        assert "messages (" in done.err, done.err
        assert ("body" in done.out) == ("quiet" not in line)
    (them, theirs), (we, ours) = read(tmp_path / "theirs"), read(tmp_path / "ours")
    assert [(one.subject, one.sequence, one.time_ns, one.payload) for one in ours] == [
        (one.subject, one.sequence, one.time_ns, one.payload) for one in theirs
    ]
    lines = [sorted(one.headers.split(b"\r\n")) for one in ours]
    assert lines == [sorted(one.headers.split(b"\r\n")) for one in theirs]
    assert b"N: again" in ours[0].headers
    for document in (them, we):
        source = document["source"]
        assert isinstance(source, dict)
        assert source.pop("started") < source.pop("ended")
    assert (we["source"], we["state"]) == (them["source"], them["state"])
    assert nats("backup", "validate", str(tmp_path / "ours")).code == 0


def test_what_no_stream_keeps_is_numbered(cli: Run, url: str, tmp_path: Path) -> None:
    """Ended by a signal: what came so far is there, and can be restored."""
    target = tmp_path / "NEW"
    words = ("-s", url, "sub", "b.>", "--backup", str(target), "--quiet")
    with subprocess.Popen(
        [sys.executable, "-m", "jsctl", *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stderr is not None
        assert b"Subscribing on b.>" in program.stderr.readline()
        for at in range(3):
            assert cli("-s", url, "pub", f"b.{at}", f"x{at}", "-H", "N:1", "-q").code == 0
        assert cli("-s", url, "sub", "b.>", "--count", "1", "--wait", "10ms").code == 0
        program.send_signal(signal.SIGTERM)
        out, err = program.communicate(timeout=WAIT_S)
    assert (program.returncode, out) == (0, b""), err
    assert b"Backup of 3 messages" in err
    document, found = read(target)
    assert [(one.subject, one.sequence, one.payload) for one in found] == [
        ("b.0", 1, b"x0"),
        ("b.1", 2, b"x1"),
        ("b.2", 3, b"x2"),
    ]
    assert document["config"]["name"] == "NEW"  # type: ignore[index] # a document
    assert nats("-s", url, "backup", "restore", "stream", str(target)).code == 0
    assert "x1" in cli("-s", url, "stream", "get", "NEW", "2").out
    assert not list(tmp_path.glob(".*"))


def test_what_cannot_be_meant_is_refused(cli: Run, url: str, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    places = {
        "new": tmp_path / "new",
        "full": tmp_path / "full",
        "dotted": tmp_path / "a b",
    }
    pairs: list[tuple[str, Answer, Answer]] = []
    for line in FLAGS:
        words = ["-s", url, *(word.format(**places) for word in line.split())]
        ours = cli(*words)
        pairs.append((line, nats(*words), Answer(ours.code, ours.out, ours.err)))
    told = differences(pairs)
    assert not told, told
    assert not (tmp_path / "new").exists()


def test_a_durable_that_owes_messages_is_refused(cli: Run, url: str, tmp_path: Path) -> None:
    assert cli("-s", url, "consumer", "add", "S", "C", "--pull", "--defaults").code == 0
    assert cli("-s", url, "consumer", "next", "S", "C", "--no-ack").code == 0
    words = ("sub", "--stream", "S", "--durable", "C", "--backup", str(tmp_path / "new"))
    done = cli("-s", url, *words)
    assert (done.code, "1 unacknowledged messages" in done.err) == (1, True)


def test_a_reply_with_numbers_that_no_server_has_is_one_like_others() -> None:
    """Whoever publishes chooses it; a backup with such a time could not be restored."""
    told = "$JS.ACK.S.C.1.{}.1.{}.0"
    found = stored_of(told.format(2, 3))
    assert found is not None
    assert (found.stream_seq, found.time_ns) == (2, 3)
    for wrong in (told.format(2, 10**30), told.format(10**30, 3), told.format("x", 3), "a.b"):
        assert stored_of(wrong) is None
