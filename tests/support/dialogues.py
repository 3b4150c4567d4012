"""A program on a terminal of its own that is answered question by question, ours or `nats`."""

import fcntl
import os
import pty
import re
import shlex
import struct
import termios
from pathlib import Path
from select import select

from tests.support.nats_tool import NATS

MOVES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>78]|\r")
WHERE = b"\x1b[6n"
"""What a program asks that wants to know where its cursor is; `nats` takes no line before."""
LISTS = b"type to filter"
TYPED_S = 2
"""After so much silence what was typed is lost: `nats` forgets what comes with the answer to where
its cursor is."""
TRIES_MAX = 10

Step = tuple[str, str]


def talked(program: list[str], folder: Path, words: str, steps: tuple[Step, ...]) -> int:
    """Gives each answer when its question is there, and fails where another one comes instead."""
    process, terminal = pty.fork()
    if not process:
        os.chdir(folder)
        below = {"HOME": "", "XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data"}
        own = {name: str(folder / place) for name, place in below.items()}
        os.execve(
            program[0], [*program, *shlex.split(words)], {**os.environ, **own, "TERM": "xterm"}
        )
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    shown, waiting, typed = b"", list(steps), b""
    silent = 0
    try:
        while True:
            said = MOVES.sub("", shown.decode("utf-8", "replace"))
            if not select([terminal], [], [], TYPED_S)[0]:
                silent += 1
                assert silent < TRIES_MAX, (program, words, waiting, said)
                os.write(terminal, b"" if said else typed)
                continue
            try:
                chunk = os.read(terminal, 65536)
            except OSError:
                break
            if not chunk:
                break
            if WHERE in chunk:
                os.write(terminal, b"\x1b[1;1R")
            shown += chunk
            said = MOVES.sub("", shown.decode("utf-8", "replace"))
            ready = LISTS in shown or WHERE in shown or program[0] != NATS
            if waiting and waiting[0][0] in said and ready:
                typed, shown, silent = waiting.pop(0)[1].encode() + b"\r", b"", 0
                os.write(terminal, typed)
    finally:
        os.close(terminal)
        _, status = os.waitpid(process, 0)
    assert not waiting, (program, words, waiting, said)
    return os.waitstatus_to_exitcode(status)
