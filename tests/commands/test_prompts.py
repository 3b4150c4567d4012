"""Questions, asked on a real terminal."""

import os
import pty
import re
import sys
from collections.abc import Callable, Iterator

import pytest

from jsctl.commands.prompts import Prompts
from jsctl.errors import NeedsConfirmation
from tests.commands.conftest import Result, Server

ASKED = re.compile(rb"(^|\n)\? [^\n]* $")
"""The end of what is shown when a question waits for its answer."""
Talk = Callable[..., tuple[int, str]]


@pytest.fixture
def talk(server: Server) -> Talk:
    """Runs a command line on a terminal and types the answers, one a question."""

    def run(words: list[str], answers: list[str]) -> tuple[int, str]:
        process, terminal = pty.fork()
        if not process:
            os.execv(sys.executable, [sys.executable, "-m", "jsctl", "-s", server.url, *words])
        shown = b"".join(_typed(terminal, answers))
        _, status = os.waitpid(process, 0)
        os.close(terminal)
        return os.waitstatus_to_exitcode(status), shown.decode().replace("\r\n", "\n")

    return run


def _typed(terminal: int, answers: list[str]) -> Iterator[bytes]:
    waiting = list(answers)
    shown = b""
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:
            return
        if not chunk:
            return
        yield chunk
        shown += chunk
        if waiting and ASKED.search(shown):
            os.write(terminal, f"{waiting.pop(0)}\n".encode())
            shown = b""


def test_a_name_is_picked_and_removal_confirmed(run: Callable[..., Result], talk: Talk) -> None:
    for name in ("AA", "BB"):
        run("stream", "add", name, "--subjects", name, "--defaults")
    code, shown = talk(["stream", "rm"], ["2", "n"])
    assert code == 0
    assert "  1) AA\n  2) BB\n? Select a Stream 2\n" in shown
    assert "? Really delete Stream BB (y/N) n\n" in shown
    code, _ = talk(["stream", "rm"], ["BB", "y"])
    assert code == 0
    assert run("stream", "ls", "-n").out == "AA\n"


def test_missing_answers_of_add_are_asked_for(run: Callable[..., Result], talk: Talk) -> None:
    given = ["--storage", "file", "--replicas", "1", "--retention", "limits", "--discard", "old"]
    given += ["--max-msgs-per-subject", "-1", "--max-bytes", "-1", "--max-age", "-1"]
    given += [
        "--max-msg-size",
        "-1",
        "--dupe-window",
        "1m",
        "--no-allow-rollup",
        "--no-deny-delete",
    ]
    code, shown = talk(["stream", "add", "Q", *given], ["q.>", "many", "5", "n"])
    assert code == 0, shown
    assert "? Subjects q.>\n" in shown
    assert "X Sorry, your reply was invalid: " in shown
    assert "? Stream Messages Limit (-1) 5\n" in shown
    assert "? Allow purging subjects or the entire stream (Y/n) n\n" in shown
    assert "Maximum Messages: 5\n" in shown
    assert "Allows Purge: false\n" in shown


def test_the_context_is_named_and_questions_can_be_forbidden() -> None:
    assert Prompts("prod").mark == "[prod] ?"
    forbidden = Prompts(forbidden=True)
    assert not forbidden.possible
    with pytest.raises(NeedsConfirmation):
        forbidden.choose("Select a Stream", ["a"])
