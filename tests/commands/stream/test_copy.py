"""`stream copy --data`: every message once and in order, also after a kill, into any context."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jsctl.commands.stream import copying
from tests.commands.conftest import KINDS, Result, Server
from tests.support.waiting import wait_for

Run = Callable[..., Result]
pytestmark = pytest.mark.parametrize("server", list(KINDS), indirect=True, scope="package")
MESSAGES = 40
PUB = (sys.executable, "-m", "jsctl", "pub")


@pytest.fixture
def source(run: Run, server: Server) -> None:
    """Messages with gaps between them, and ids; those of two are the same."""
    words = ("--subjects", "a.>", "--defaults", "--dupe-window", "100ms", "--description", "d")
    assert run("stream", "add", "A", *words).code == 0
    script = "".join(f"body {at}\n" for at in range(MESSAGES))
    for at in range(4):
        flags = ("-H", "H:1", "-H", "H:2", "-H", "Nats-Expected-Last-Sequence:" + str(at))
        assert run("pub", f"a.{at}", f"first {at}", "-J", "-q", *flags).code == 0
    done = subprocess.run(
        [*PUB, "-s", server.url, "a.more", "-J", "-q", "--send-on", "newline", "--force-stdin"],
        input=script.encode(),
        check=True,
        capture_output=True,
    )
    assert done.returncode == 0
    for at in (2, 9):
        assert run("stream", "rmm", "A", str(at), "-f").code == 0
    wait_for(lambda: _stored_twice(run), "the window is over, and an id is taken twice")


def _stored_twice(run: Run) -> bool:
    assert run("pub", "a.id", "same id", "-J", "-q", "-H", "Nats-Msg-Id:1").code == 0
    state = json.loads(run("stream", "info", "A", "-j").out)["state"]
    return bool(state["messages"] == MESSAGES + 4)


def stored(run: Run, stream: str) -> list[tuple[str, str, list[str]]]:
    """Subjects, bodies and headers of people."""
    state = json.loads(run("stream", "info", stream, "-j").out)["state"]
    found: list[tuple[str, str, list[str]]] = []
    for at in range(state["first_seq"], state["last_seq"] + 1):
        done = run("stream", "get", stream, str(at), "-j")
        if done.code:
            continue
        document = json.loads(done.out)
        lines = _headers(document.get("hdrs", ""))
        kept = [one for one in lines if not one.startswith(("Jsctl-", "Nats-"))]
        found.append((document["subject"], document["data"], kept))
    return found


def _headers(text: str) -> list[str]:
    from base64 import b64decode

    return [line for line in b64decode(text).decode().split("\r\n")[1:] if line]


@pytest.mark.usefixtures("source")
def test_a_copy_has_what_the_stream_has(run: Run) -> None:
    plain = run("stream", "copy", "A", "B", "--data")
    assert (plain.code, "needs --subjects" in plain.err) == (1, True)
    done = run("stream", "copy", "A", "B", "--prefix", "old", "--data")
    assert done.code == 0, done.err
    assert f"Copied {MESSAGES + 4} messages of stream A" in done.out, done.out
    theirs, ours = stored(run, "A"), stored(run, "B")
    assert [(f"old.{subject}", body, headers) for subject, body, headers in theirs] == ours
    assert ours[0][2] == ["H: 1", "H: 2"]
    again = run("stream", "copy", "A", "B", "--prefix", "old", "--data")
    assert (again.code, "Copied 0 messages" in again.out) == (0, True), again.out
    assert run("pub", "a.late", "late", "-J", "-q").code == 0
    more = run("stream", "copy", "A", "B", "--prefix", "old", "--data", "-j")
    assert (more.code, json.loads(more.out)["state"]["messages"]) == (0, MESSAGES + 5)


@pytest.mark.usefixtures("source")
def test_it_goes_on_where_it_was_killed(
    run: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed with a part of the messages stored, and no chance to note anything."""
    program = (
        "import os, signal; from jsctl.commands.stream import copying; copying.AHEAD = 7\n"
        "from jsctl.cli import main; from jsctl.commands.stream.copying import Copier\n"
        "kept, calls = Copier._answers, []\n"
        "def killed(self, count):\n"
        "    calls.append(count)\n"
        "    if len(calls) == 3: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return kept(self, count)\n"
        "Copier._answers = killed\n"
        f"main(['-s', {server.url!r}, 'stream', 'copy', 'A', 'B', '--prefix', 'old', '--data'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    part = len(stored(run, "B"))
    assert 14 <= part <= 21
    monkeypatch.setattr(copying, "AHEAD", 5)
    done_again = run("stream", "copy", "A", "B", "--prefix", "old", "--data")
    assert done_again.code == 0, done_again.err
    assert "Going on behind message" in done_again.out
    assert len(stored(run, "B")) == len(stored(run, "A"))
    assert [one[1:] for one in stored(run, "B")] == [one[1:] for one in stored(run, "A")]


@pytest.mark.usefixtures("source")
def test_another_writer_and_another_stream_are_noticed(run: Run) -> None:
    words = ("stream", "copy", "A", "B", "--prefix", "old", "--data")
    assert run(*words).code == 0
    assert run("pub", "old.a.x", "mine", "-J", "-q").code == 0
    done = run(*words)
    assert (done.code, "does not say what it is a copy of" in done.err) == (1, True)
    assert run("stream", "add", "OWN", "--subjects", "own", "--defaults").code == 0
    done = run("stream", "copy", "A", "OWN", "--prefix", "old", "--data")
    assert (done.code, "is no copy of A" in done.err) == (1, True)
    done = run("stream", "copy", "A", "A", "--prefix", "old", "--data")
    assert (done.code, "cannot be the same" in done.err) == (1, True)
    assert run("stream", "rm", "B", "-f").code == 0
    done = run("stream", "copy", "NONE", "B", "--prefix", "old", "--data")
    assert (done.code, "stream not found" in done.err) == (1, True)


@pytest.mark.usefixtures("source")
def test_a_copy_that_does_not_take_the_subjects_is_not_begun(run: Run) -> None:
    done = run("stream", "copy", "A", "B", "--subjects", "b.>", "--data")
    assert (done.code, done.out) == (1, "")
    assert "stream B does not take a.0, only b.>" in done.err
    assert "--prefix NAME" in done.err
    assert "--to CONTEXT" in done.err
    words = ("stream", "copy", "A", "B", "--prefix", "old", "--data", "--subjects", "old.a.*")
    assert run(*words[:-1], "old.none").code == 1
    assert run(*words, "--no-ack").err.startswith("jsctl: error: stream B does not say")
    assert run("stream", "info", "B").code == 1, "nothing was made"
    done = run(*words)
    assert done.code == 0, done.err
    assert run("stream", "edit", "B", "--subjects", "b.>", "-f").code == 0
    assert run("stream", "add", "OTHER", "--subjects", "old.a.>", "--defaults").code == 0
    done = run(*words)
    assert (done.code, "stream B does not take old.a.0, only b.>" in done.err) == (1, True)
    assert json.loads(run("stream", "info", "OTHER", "-j").out)["state"]["messages"] == 0


def test_what_comes_meanwhile_and_is_not_taken_goes_into_no_other_stream(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("stream", "add", "A", "--subjects", "a.>", "--defaults").code == 0
    assert run("stream", "add", "OTHER", "--subjects", "old.a.2", "--defaults").code == 0
    for at in (1, 2, 3):
        assert run("pub", f"a.{at}", "body", "-J", "-q").code == 0

    async def unchecked(*_: object) -> None:
        """As if all of it came later."""

    monkeypatch.setattr(copying.Copier, "check", unchecked)
    words = ("stream", "copy", "A", "B", "--prefix", "old", "--data", "--subjects")
    for subjects, refused in (("old.a.1", "old.a.2"), ("old.a.1,old.a.3", "old.a.2")):
        done = run(*words, subjects)
        assert (done.code, f"does not take {refused}" in done.err) == (1, True), done.err
        assert run("stream", "rm", "B", "-f").code == 0
    assert run("stream", "rm", "OTHER", "-f").code == 0
    done = run(*words, "old.a.1")
    assert (done.code, "does not take old.a.2" in done.err) == (1, True), done.err


def test_a_copy_does_not_transform_what_is_transformed(run: Run) -> None:
    ends = ("--transform-source", "*.*", "--transform-destination", "t.{{wildcard(1)}}.x")
    assert run("stream", "add", "A", "--subjects", "a.>", "--defaults", *ends).code == 0
    assert run("pub", "a.1", "body", "-J", "-q").code == 0
    words = ("stream", "copy", "A", "B", "--prefix", "old", "--data")
    done = run(*words)
    assert (done.code, "does not take old.t.a.x" in done.err) == (1, True), done.err
    assert run(*words, "--subjects", "old.t.>").code == 0
    assert "old.t.a.x" in run("stream", "subjects", "B", "--names").out


@pytest.mark.usefixtures("source")
def test_a_copy_is_fed_by_a_mirror_or_by_sources(run: Run) -> None:
    """The configuration is that of the original, the messages come from elsewhere."""
    assert run("stream", "copy", "A", "M", "--mirror", "A", "--max-msgs", "7").code == 0
    config = json.loads(run("stream", "info", "M", "-j").out)["config"]
    assert (config["mirror"], config["max_msgs"], "subjects" in config) == ({"name": "A"}, 7, False)
    assert run("stream", "add", "OWN", "--subjects", "own", "--defaults").code == 0
    assert run("stream", "copy", "A", "S", "--source", "A", "--source", "OWN").code == 0
    config = json.loads(run("stream", "info", "S", "-j").out)["config"]
    assert [one["name"] for one in config["sources"]] == ["A", "OWN"]
    done = run("stream", "copy", "A", "B", "--data", "--mirror", "A")
    assert (done.code, "not both" in done.err) == (1, True)


def test_into_another_context(
    run: Run, cli: Run, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variables of the first context's login mean nothing there."""
    from jsctl.testing import Broker

    assert run("stream", "add", "A", "--subjects", "a.>", "--defaults").code == 0
    for at in range(3):
        assert run("pub", f"a.{at}", f"body {at}", "-J", "-q").code == 0
    with Broker(jetstream=True) as other:
        assert cli("context", "add", "west", "--server", other.url).code == 0
        monkeypatch.setenv("NATS_URL", server.url)
        done = run("stream", "copy", "A", "A", "--to", "west", "--data")
        assert done.code == 0, done.err
        monkeypatch.delenv("NATS_URL")
        shown = cli("--server", other.url, "stream", "get", "A", "3")
        assert (shown.code, "body 2" in shown.out) == (0, True)
    nowhere = run("stream", "copy", "A", "A", "--to", "nowhere", "--data")
    assert (nowhere.code, "nowhere" in nowhere.err) == (1, True)
