"""A terminal to type answers on."""

import os
import pty
import re
import signal
import sys
from collections.abc import Callable, Iterator
from select import select

import pytest

from tests.commands.conftest import Server

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
        process, terminal = pty.fork()
        if not process:
            os.environ["TERM"] = term
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a test run in the background ignores it
            os.environ["PROMPT_TOOLKIT_NO_CPR"] = "1"  # nobody tells where the cursor is
            os.execv(sys.executable, [sys.executable, "-m", "jsctl", "-s", server.url, *words])
        shown = b"".join(_typed(terminal, answers))
        _, status = os.waitpid(process, 0)
        os.close(terminal)
        return os.waitstatus_to_exitcode(status), MOVES.sub("", shown.decode())

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
