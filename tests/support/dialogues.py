"""A program on a terminal of its own that is answered question by question, ours or `nats`."""

import fcntl
import os
import re
import shlex
import struct
import termios
from functools import partial
from pathlib import Path
from select import select

from tests.support.forked import Session, session
from tests.support.nats_tool import NATS, quick
from tests.support.waiting import wait_for

MOVES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>78]|\r")
WHERE = b"\x1b[6n"
"""What a program asks that wants to know where its cursor is; `nats` takes no line before."""
LARGE = b"\x1b[999;999f"
"""Before that question, if it is for the terminal's size, which `nats` wants to know first."""
LISTS = b"type to filter"
SILENCE_S = 0.2
"""After so much of it what was typed is lost, if the program sleeps and has read it all: `nats`
forgets what comes with the answer to where its cursor is."""
SILENCES_MAX = 100

Step = tuple[str, str]


def talked(program: list[str], folder: Path, words: str, steps: tuple[Step, ...]) -> int:
    """Gives each answer when its question is there, and fails where another one comes instead."""
    terminal, inside = os.openpty()
    name = os.ttyname(inside)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    line = [*program, *shlex.split(words)]
    with session(line, _environment(folder), inside, folder) as process:
        _talk(line, steps, process, terminal, name)
        return process.wait()


def _talk(
    line: list[str], steps: tuple[Step, ...], process: Session, terminal: int, name: str
) -> None:
    shown, waiting, typed = b"", list(steps), b""
    silent = answered = 0
    try:
        while True:
            said = MOVES.sub("", shown.decode("utf-8", "replace"))
            if not select([terminal], [], [], SILENCE_S)[0]:
                silent += 1
                assert silent < SILENCES_MAX, (line, waiting, said)
                if typed and not said and _reads(process.pid, name):
                    os.write(terminal, typed)
                continue
            try:
                chunk = os.read(terminal, 65536)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
            for _ in range(shown.count(WHERE) - answered):
                os.write(terminal, b"\x1b[1;1R")
                answered += 1
            said = MOVES.sub("", shown.decode("utf-8", "replace"))
            if waiting and waiting[0][0] in said and (line[0] != NATS or _listens(shown)):
                wait_for(partial(_reads, process.pid, name), f"it reads an answer: {line}")
                typed, shown, silent = waiting.pop(0)[1].encode() + b"\r", b"", 0
                answered = 0
                os.write(terminal, typed)
    finally:
        os.close(terminal)
    assert not waiting, (line, waiting, said)


def _environment(folder: Path) -> dict[str, str]:
    below = {"HOME": "", "XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data"}
    own = {name: str(folder / place) for name, place in below.items()}
    return quick({**os.environ, **own, "TERM": "xterm"})


def _listens(shown: bytes) -> bool:
    """Whether `nats` waits for a line, or a choice, now that its questions have answers."""
    asked = shown.split(WHERE)[:-1]
    return LISTS in shown or any(LARGE not in one[-len(LARGE) :] for one in asked)


def _reads(process: int, name: str) -> bool:
    """Whether all that was written to the terminal is read, and the program sleeps."""
    inside = os.open(name, os.O_RDWR | os.O_NOCTTY)
    try:
        left = fcntl.ioctl(inside, termios.FIONREAD, b"\0" * 4)
    finally:
        os.close(inside)
    states = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/stat")]
    return not any(left) and all(state.rpartition(")")[2].split()[0] == "S" for state in states)
