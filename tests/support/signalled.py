"""Commands that signals end: on a terminal of their own, at a server with what they name."""

import fcntl
import os
import pty
import select
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from zipfile import is_zipfile

from jsctl.cli import main
from jsctl.testing import Broker
from tests.support.interrupted import COLUMNS, LINES

LOADED_S = 0.3
"""Before that Python itself may show where an interrupt found it."""
LATEST_S = 2.0
LARGE = 48 * 1024 * 1024
OTHER_SCREEN, OWN_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"
NO_CURSOR, CURSOR = b"\x1b[?25l", b"\x1b[?25h"
TROUBLE = (b"Traceback", b"never retrieved", b"was destroyed", b"never awaited", b"RuntimeError")
CONFIG = """
accounts {
  SYS { users [ { user: sys, password: x } ] }
  A { jetstream: enabled, users [ { user: a, password: x } ] }
}
system_account: SYS
no_auth_user: a
"""
DRAWN = (
    "sub x",
    "sub x --report-subjects",
    "sub --stream ST --durable D --ack",
    "sub st.> --graph",
    "reply r hello",
    "pub x {{.Count}} --count 100000000 --sleep 10ms",
    "pub x hello --count 100000000 -q",
    "pub x --force-stdin",
    "object put O --name endless",
    "object get O large --output FOLDER/made -f",
    "stream backup OBJ_O FOLDER/made",
    "sys audit gather --output FOLDER/made",
    "events --all -o csv",
    "stream report --watch 1",
    "consumer report ST --watch 1",
    "sys server report jetstream --watch 1",
    "sys server watch jetstream",
    "sys server watch accounts",
    "sys server graph n1",
    "sys top n1",
    "stream graph ST",
    "kv watch K",
    "consumer next ST EMPTY --wait 60s",
    "traffic st.>",
    "latency --server-b URL --duration 1m",
    "bench pub x --msgs 1000000000",
    "bench js pub sync b.x --create --stream B --msgs 100000000",
    "service serve foo",
    "stream copy ST COPY --data --prefix copy --subjects copy.>",
)


@dataclass(slots=True)
class Terminal:
    """What a program sees as one; what it writes is read as a person would."""

    screen: int
    terminal: int
    found: bytearray = field(default_factory=bytearray)

    def look(self, seconds: float) -> None:
        """What comes in so long."""
        end = monotonic() + seconds
        while (left := end - monotonic()) > 0:
            if select.select([self.screen], [], [], left)[0]:
                self.found += os.read(self.screen, 65536)

    def has(self, wanted: bytes) -> bool:
        """Whether that was written."""
        self.look(0.02)
        return wanted in self.found

    def is_over(self, process: "subprocess.Popen[bytes]") -> bool:
        """Whether the process is; reads on meanwhile."""
        self.look(0.02)
        return process.poll() is not None


@contextmanager
def a_terminal() -> Iterator[Terminal]:
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    before = termios.tcgetattr(terminal)
    made = Terminal(screen, terminal)
    try:
        yield made
        made.look(0.02)
        assert termios.tcgetattr(terminal) == before
        assert made.found.rfind(OTHER_SCREEN) <= made.found.rfind(OWN_SCREEN)
        assert made.found.rfind(NO_CURSOR) <= made.found.rfind(CURSOR)
        assert not [word for word in TROUBLE if word in made.found], bytes(made.found)
    finally:
        os.close(screen)
        os.close(terminal)


def fill(broker: Broker, file: Path) -> None:
    """With what the lines name; `file` is written for it."""
    file.write_bytes(os.urandom(LARGE))
    for line in (
        "stream add ST --subjects st.> --defaults",
        "pub st.{{.Count}} x -J -q --count 100",
        "consumer add ST EMPTY --pull --filter none.st --defaults",
        "kv add K",
        "object add O",
        f"object put O {file} --name large --no-progress",
    ):
        assert main(["-s", broker.url, *line.split(" ")]) == 0, line


def program(broker: Broker, line: str, folder: Path) -> list[str]:
    """A command line of ours at a server."""
    words = shlex.split(line.replace("FOLDER", str(folder)).replace("URL", broker.url))
    login = ["--user", "sys", "--password", "x"] if words[0] == "sys" else []
    return [sys.executable, "-m", "jsctl", "-s", broker.url, *login, *words[bool(login) :]]


def is_whole(path: Path) -> bool:
    """What a line made, and ended just before a signal came."""
    if path.name != "made":
        return False
    if path.is_dir():
        return (path / "backup.json").exists()
    return path.stat().st_size == LARGE or is_zipfile(path)
