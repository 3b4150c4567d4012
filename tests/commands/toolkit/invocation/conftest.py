"""A terminal to type answers on."""

import os
import re
from collections.abc import Callable, Iterator
from select import select

import pytest

from tests.commands.conftest import Server
from tests.support.forked import PROGRAM, session

ASKED = re.compile(rb"(^|\n|\x1b\[\?25h)\? [^\n]* $|type to filter\).*\x1b\[\?7h", re.DOTALL)
"""What is shown when a question waits for its answer, or when a list is drawn whole."""
MOVES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
SILENCE_S = 60
"""Nobody thinks so long: a question came in a form that is not known here."""
CTRL_C = "\x03"
Talk = Callable[..., tuple[int, str]]


@pytest.fixture
def talk(server: Server) -> Talk:
    """Runs a command line on a terminal and types the answers, one a question."""

    def run(words: list[str], answers: list[str], term: str = "xterm") -> tuple[int, str]:
        terminal, inside = os.openpty()
        quiet = {"TERM": term, "PROMPT_TOOLKIT_NO_CPR": "1"}  # nobody tells where the cursor is
        line = (*PROGRAM, "-s", server.url, *words)
        with session(line, {**os.environ, **quiet}, inside) as process:
            shown = b"".join(_typed(terminal, answers))
            status = process.wait()
        os.close(terminal)
        return status, MOVES.sub("", shown.decode())

    return run


def _typed(terminal: int, answers: list[str]) -> Iterator[bytes]:
    waiting = list(answers)
    shown = b""
    while True:
        assert select([terminal], [], [], SILENCE_S)[0], f"nothing more is said after {shown!r}"
        try:
            chunk = os.read(terminal, 4096)
        except OSError:
            return
        if not chunk:
            return
        yield chunk
        shown += chunk
        if waiting and ASKED.search(shown):
            answer = waiting.pop(0)
            os.write(terminal, answer.encode() if answer == CTRL_C else f"{answer}\r".encode())
            shown = b""
