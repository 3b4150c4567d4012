"""Questions of `auth` on a terminal: those of `nats`, in their order, with the same end."""

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path
from select import select

import pytest

from tests.support.nats_tool import NATS, needed

pytestmark = [needed, pytest.mark.processes]

MOVES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>78]|\r")
WHERE = b"\x1b[6n"
"""What a program asks that wants to know where its cursor is; `nats` takes no line before."""
LISTS = b"type to filter"
TYPED_S = 2
"""After so much silence what was typed is lost: `nats` forgets what comes with the answer to where
its cursor is."""
TRIES_MAX = 10

Step = tuple[str, str]
STORE = (
    "auth operator add OP",
    "auth operator add OTHER",
    "auth account add A --operator OP --defaults",
    "auth account add B --operator OP --defaults",
    "auth user add U A --operator OP --defaults",
    "auth account exports add ex a.b A --operator OP",
)
"""What is there before anything is asked, of each tool."""
ACCOUNT: Step = ("Select an Account", "")
DIALOGUES: tuple[tuple[str, tuple[Step, ...], int], ...] = (
    ("auth operator add", (("Operator Name", "NEW"),), 0),
    ("auth operator info", (("Select an Operator", ""),), 0),
    ("auth operator select", (("Select an Operator", ""),), 0),
    (
        "auth account add",
        (("Account Name", "C"), ("Maximum Connections", ""), ("Maximum Subscriptions", "")),
        0,
    ),
    ("auth account info", (ACCOUNT,), 0),
    ("auth user add V A", (("Maximum Payload", ""), ("Maximum Subscriptions", "")), 0),
    ("auth user info", (ACCOUNT, ("Select a User", "")), 0),
    ("auth user edit", (ACCOUNT, ("Select a User", "")), 0),
    ("auth user rm", (ACCOUNT, ("Select a User", ""), ("Really remove", "n")), 0),
    ("auth user credential x.creds", (ACCOUNT, ("Select a User", "")), 0),
    ("auth account keys add", (ACCOUNT, ("Role Name", "role")), 0),
    ("auth account keys info", (ACCOUNT, ("Select Signing Key", "")), 0),
    ("auth account keys rm", (ACCOUNT, ("Select Signing Key", ""), ("Really remove", "y")), 0),
    (
        "auth account mappings add",
        (ACCOUNT, ("Source subject", "m.a"), ("Target subject", "m.b")),
        0,
    ),
    ("auth account mappings info", (ACCOUNT, ("Select a mapping to inspect", "")), 0),
    ("auth account mappings rm", (ACCOUNT, ("Select a mapping to delete", "")), 0),
    ("auth account exports info", (ACCOUNT, ("Select an Export", "")), 0),
    ("auth account imports info", (ACCOUNT,), 1),
)
"""Words, questions with their answers, and the exit status; each goes on from the one before."""


def talked(program: list[str], folder: Path, words: str, steps: tuple[Step, ...]) -> int:
    """Gives each answer when its question is there, and fails where another one comes instead."""
    process, terminal = pty.fork()
    if not process:
        os.chdir(folder)
        below = {"HOME": "", "XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data"}
        own = {name: str(folder / place) for name, place in below.items()}
        os.execve(program[0], [*program, *words.split()], {**os.environ, **own, "TERM": "xterm"})
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


@pytest.mark.parametrize("tool", ["nats", "jsctl"])
def test_dialogues_are_those_of_nats(tool: str, tmp_path: Path) -> None:
    assert NATS is not None
    program = [NATS] if tool == "nats" else [sys.executable, "-m", "jsctl"]
    for words in STORE:
        assert talked(program, tmp_path, words, ()) == 0
    for words, steps, status in DIALOGUES:
        of = "" if "operator" in words else " --operator OP"
        assert talked(program, tmp_path, words + of, steps) == status, words
