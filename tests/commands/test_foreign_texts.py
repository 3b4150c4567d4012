"""Names and texts that others have chosen: they move no cursor, and stand for nothing else."""

import base64
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jsctl.commands.toolkit.invocation.prompts import Prompts
from jsctl.completion import main as complete_words
from jsctl.completion import words
from jsctl.completion.words import Answer
from jsctl.render.reports.events.text import extended
from tests.commands.conftest import Result, Run

ESCAPE = "\x1b[2J"


def test_errors_and_hints_show_what_is_not_seen(cli: Run) -> None:
    cli("context", "add", f"prod{ESCAPE}")
    found = cli("context", "select", f"prof{ESCAPE}")
    assert (found.code, ESCAPE in found.err) == (1, False)
    assert found.err.count("\\x1b[2J") == 3, found.err  # in the error, and in two hints
    assert ESCAPE not in cli(f"unknown{ESCAPE}").err


def test_a_question_shows_what_is_not_seen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = Prompts()
    prompts.possible = True
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n1\n"))
    monkeypatch.setenv("TERM", "dumb")
    assert prompts.confirm(f"Really delete A{ESCAPE}\rB")
    assert prompts.choose("Which", [f"C{ESCAPE}"]) == f"C{ESCAPE}"
    assert capsys.readouterr().err == (
        "? Really delete A\\x1b[2J\\rB (y/N)   1) C\\x1b[2J\n? Which (C\\x1b[2J) "
    )


def test_powershell_gets_words_that_mean_themselves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It takes what is offered over as it is: `;` would begin a command of its own."""
    names = ("ORDERS", "a;calc", "$(calc)", "it's", "\u2019;x", "@a", "a\nb")
    asked: list[list[str]] = []

    def complete(given: list[str], _environ: object) -> Answer:
        asked.append(given)
        return Answer(tuple((name, "stream\x1b\n:file") for name in names))

    monkeypatch.setattr("jsctl.completion.complete", complete)
    assert complete_words(["--shell", "powershell", "--", "stream", "'it''s'", "'a;"]) == 0
    assert asked == [["stream", "it's", "a;"]]
    shown = [line.split("\t") for line in capsys.readouterr().out.split("\n")[:-1]]
    plain = ["ORDERS", "'a;calc'", "'$(calc)'", "'it''s'", "'\u2019\u2019;x'", "'@a'"]
    assert shown == [[name, "stream\\x1b\\n:file"] for name in plain]
    assert words.complete is not complete


def test_an_event_stays_on_its_lines() -> None:
    event = {
        "type": "io.nats.jetstream.advisory.v1.max_deliver",
        "timestamp": "2026-01-02T03:04:05Z",
        "stream": f"S\n[03:04:05] [x] another one{ESCAPE}",
        "consumer": "C",
    }
    shown = extended(event)
    assert ESCAPE not in shown
    assert "S\\n[03:04:05] [x] another one\\x1b[2J" in shown


@pytest.mark.processes
@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_what_an_encoding_does_not_have_is_shown(cli: Run, encoding: str) -> None:
    cli("context", "add", "a", "--description", "gr\xfc\xdf", "--user", "u", "--password", "p")
    done = subprocess.run(
        [sys.executable, "-m", "jsctl", "context", "info", "a"],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = b"gr\\xfc\\xdf" if encoding == "ascii" else "gr\xfc\xdf".encode()
    assert b"Description: " + shown in done.stdout


def test_a_title_has_no_escapes(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli("errors", "lookup", "10059").out.startswith("NATS Error Code: 10059\n")


@pytest.mark.parametrize("server", ["nats-server", "jsctl"], indirect=True, scope="package")
class TestOnServers:
    """What is sent and kept is what was given."""

    def test_bodies_go_out_as_they_came_in(
        self, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run("stream", "add", "B", "--subjects", "b", "--defaults")
        for body in (b"a\r\nb\rc\n", b"\xff\xfe\r\n"):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(body)))
            assert run("pub", "-J", "-q", "b", "--force-stdin").code == 0
            got = json.loads(run("stream", "get", "B", "--last-for", "b", "-j").out)
            assert base64.b64decode(got["data"]) == body
        lines = b"one\r\n\xff\n"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
        assert run("pub", "-J", "-q", "b", "--force-stdin", "--send-on", "newline").code == 0
        got = json.loads(run("stream", "get", "B", "4", "-j").out)
        assert base64.b64decode(got["data"]) == b"\xff"

    def test_a_header_may_be_named_status(self, run: Callable[..., Result]) -> None:
        run("stream", "add", "H", "--subjects", "h", "--defaults")
        run("consumer", "add", "H", "C", "--pull", "--defaults")
        for status in ("503", "408", "shipped"):
            run("pub", "-J", "-q", "h", status, "-H", f"Status:{status}", "-H", "A:1", "-H", "A:2")
        found = run("consumer", "next", "H", "C", "--count", "3", "--ack")
        assert found.code == 0, found.err
        for status in ("503", "408", "shipped"):
            assert f"  A: 1\n  A: 2\n  Status: {status}\n" in found.out

    def test_all_values_of_a_header_are_told(
        self, run: Callable[..., Result], tmp_path: Path
    ) -> None:
        run("stream", "add", "V", "--subjects", "v", "--defaults")
        run("pub", "-J", "-q", "v", "x", "-H", "A:1", "-H", "A:2")
        words = ("sub", "v", "--all", "--count", "1")
        assert json.loads(run(*words, "-o", "json").out)["Header"] == {"A": ["1", "2"]}
        assert run(*words, "--dump", str(tmp_path)).code == 0
        dumped = json.loads((tmp_path / "1.json").read_text())
        assert dumped["Header"] == {"A": ["1", "2"]}

    def test_a_value_of_another_kind_in_a_file_is_refused(
        self, run: Callable[..., Result], tmp_path: Path
    ) -> None:
        path = tmp_path / "config.json"
        wrongs: tuple[dict[str, object], ...]
        wrongs = ({"subjects": "foo"}, {"max_msgs": "5"}, {"metadata": []}, {"retention": 1})
        for wrong in wrongs:
            path.write_text(json.dumps({"name": "X", **wrong}))
            found = run("stream", "add", "X", "--config", str(path))
            assert (found.code, found.err.startswith(f"jsctl: error: {path}: ")) == (1, True), wrong
        assert run("stream", "ls", "-n").out == ""

    def test_the_order_of_a_backoff_is_edited(
        self, run: Callable[..., Result], tmp_path: Path
    ) -> None:
        run("stream", "add", "K", "--subjects", "k", "--defaults")
        path, second = tmp_path / "config.json", 1_000_000_000
        config = {"durable_name": "C", "ack_policy": "explicit", "max_deliver": 4}
        for verb, steps in (("add", (1, 5, 2)), ("edit", (1, 2, 5))):
            path.write_text(json.dumps({**config, "backoff": [step * second for step in steps]}))
            more = ("-f",) if verb == "edit" else ()
            done = run("consumer", verb, "K", "C", "--config", str(path), *more)
            assert done.code == 0, done.err
            config = json.loads(run("consumer", "info", "K", "C", "-j").out)["config"]
            assert config["backoff"] == [step * second for step in steps]
