"""Tables of command lines, told to both tools on both kinds of server.

A story is a file of lines that begins with an empty account and an empty folder. Every line is run
four times: by the real `nats` and by this tool, each on a nats-server and on our broker. The tools
have accounts and folders of their own, so that what one does is nothing to the other; on the way
from line to line they keep together, and so nothing has to be run twice to be compared.

A line that is refused before any server is asked, as many are, says the same whatever server there
is: where neither tool came to the first kind of server, and neither left anything in its folder,
what they said there stands for the other kind.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from itertools import chain, product, repeat
from pathlib import Path

from tests.commands.parity.conftest import (
    BOTH_KINDS,
    LINES,
    NATS,
    RUN_S,
    Line,
    Place,
    Said,
    accounts_of,
    environment,
    table_of,
)
from tests.support.command_line import FOREIGN
from tests.support.nats_tool import quick

FILES = LINES.parent / "files"
"""What lines name; each side of a story has copies."""

ANSWER = "3s"
"""What is waited for answers: lines that get none are few, and all others have it at once."""

TOOLS = ("nats", "jsctl")
ANSWER_OF_SERVERS = "500ms"
"""The same where it is not known how many will answer, and all of it is waited."""

LATE_ANSWER = "5s"
"""The same when the sides did not agree: on a busy machine an answer may come late."""

PIECE = 30
"""So many lines of the system account are a piece; none of them builds on another."""

SYSTEM = "sys"
NOBODY = "nobody"
"""Who has no login in the environment."""

AS = "# as "
"""How a story begins that has one user for both tools, who take turns."""


@dataclass(frozen=True, slots=True)
class Side:
    """A tool on a server, with all that it does not share with the others."""

    tool: str
    server: Place
    user: str
    folder: Path
    wait: str = ANSWER

    def environment(self) -> dict[str, str]:
        """Who it is there, and where it keeps contexts and keys."""
        own = {"HOME": "", "XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data"}
        places = {name: str(self.folder / "home" / below) for name, below in own.items()}
        login = environment(self.server, self.user)
        if self.user == NOBODY:
            login = {"NATS_URL": login["NATS_URL"]}
        return {**login, **places, "NATS_TIMEOUT": self.wait}


DIFFERENT = "! "
"""Before a line which the tools answer differently for a reason that docs/differences.md gives."""

OTHER_SERVER = "~ "
"""The same where it is the servers that differ; after the other mark, where both do."""

AGAIN = "? "
"""Before a line that changes nothing and is asked again when the answers differ: the real tool
shows what comes first, its own deadline or the server's."""

Own = Callable[[Side, Line], Said]
"""This tool, in this process, in its environment and folder."""

Answers = dict[tuple[str, str], Said]
"""By tool and kind of server."""


Ask = Callable[[], Answers]
"""Runs a line on all sides; the second time it is waited longer for answers."""


class Traces:
    """What a line leaves behind, from when this is made: connections and files."""

    def __init__(self, sides: Sequence[Side]) -> None:
        self._sides = sides
        self._connections = _connections(sides[0].server)
        # By the clock of the files: that of Python is ahead of it by up to its next tick.
        mark = sides[0].folder.parent / "begun"
        mark.touch()
        self._begun_ns = mark.stat().st_ctime_ns

    def on_server(self) -> bool:
        """Whether somebody came to the server."""
        return _connections(self._sides[0].server) != self._connections

    def in_folders(self) -> bool:
        """Whether files or folders were made, changed or removed; now and then that is said of a
        line because of the one before."""
        return any(
            place.lstat().st_ctime_ns >= self._begun_ns
            for side in self._sides
            for place in (side.folder, *side.folder.rglob("*"))
        )


def _connections(server: Place) -> int:
    """How many clients came to a server since it began."""
    with closing(HTTPConnection(server.monitor_url.removeprefix("http://"))) as monitor:
        monitor.request("GET", "/varz")
        count: int = json.load(monitor.getresponse())["total_connections"]
    return count


def lines_of(story: str) -> list[str]:
    """The lines that are run; of `name/2` the second piece."""
    name, _, piece = story.partition("/")
    lines = [one for one in _text(name).splitlines() if one and not one.startswith("#")]
    return lines[(int(piece) - 1) * PIECE :][:PIECE] if piece else lines


def pieces(story: str) -> list[str]:
    """The names of the pieces that a story is run in: one, where lines build on those before."""
    if not _text(story).startswith(AS + SYSTEM):
        return [story]
    return [f"{story}/{at + 1}" for at in range(-(-len(lines_of(story)) // PIECE))]


def _text(story: str) -> str:
    return table_of(story).read_text()


def told(
    story: str, servers: Callable[[str], Place], own: Own, folder: Path
) -> Iterator[tuple[str, Ask, bool]]:
    """Each line of a story, what asks the four sides, and whether that can be done twice."""
    name = story.partition("/")[0]
    text = _text(name)
    together = text.startswith(AS) and not text.startswith(AS + NOBODY)
    users = (
        (text.splitlines()[0].removeprefix(AS),) * 2 if text.startswith(AS) else accounts_of(name)
    )
    sides: dict[tuple[str, str], Side] = {}
    for (tool, user), kind in product(zip(TOOLS, users, strict=True), BOTH_KINDS):
        place = folder / kind / tool
        shutil.copytree(FILES, place)
        (place / "home").mkdir()
        sides[tool, kind] = Side(tool, servers(kind), user, place)
    for words in lines_of(story):
        again = words.startswith(AGAIN)
        words = words.removeprefix(AGAIN)
        line = Line.of(words.removeprefix(DIFFERENT).removeprefix(OTHER_SERVER))
        first = ANSWER_OF_SERVERS if users[0] == SYSTEM else ANSWER
        waits = chain((first,), repeat(LATE_ANSWER))

        def ask(line: Line = line, waits: Iterator[str] = waits) -> Answers:
            wait = next(waits)
            patient = {key: replace(side, wait=wait) for key, side in sides.items()}
            return _asked(line, patient, own, together=together)

        yield words, ask, again or users[0] == SYSTEM


def _asked(line: Line, sides: dict[tuple[str, str], Side], own: Own, *, together: bool) -> Answers:
    """What each side says, the kinds of server one after the other; the real tool works while this
    one does, unless they take turns."""
    said: Answers = {}
    running = {}
    for kind in BOTH_KINDS:
        theirs, ours = ((tool, kind) for tool in TOOLS)
        traces = None if said else Traces((sides[theirs], sides[ours]))
        running[theirs] = _begun(line, sides[theirs])
        if together:
            said[theirs] = _ended(line, running.pop(theirs))
        said[ours] = own(sides[ours], line)
        if traces and not traces.on_server():
            said |= {key: _ended(line, running.pop(key)) for key in list(running)}
            if not traces.on_server() and not traces.in_folders():
                return {
                    (tool, each): _without_places(said[tool, kind], sides[tool, kind])
                    for each, tool in product(BOTH_KINDS, TOOLS)
                }
    said |= {key: _ended(line, process) for key, process in running.items()}
    return {key: _without_places(one, sides[key]) for key, one in said.items()}


def _without_places(said: Said, side: Side) -> Said:
    """Without the addresses and folders that no two sides have in common."""

    def plain(text: str) -> str:
        text = text.replace(str(side.folder), "FOLDER").replace(side.server.url, "URL")
        return text.replace(side.server.url.removeprefix("nats://"), "ADDRESS")

    return Said(said.code, plain(said.out), plain(said.err))


def _begun(line: Line, side: Side) -> "subprocess.Popen[bytes]":
    assert NATS is not None
    kept = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    return subprocess.Popen(
        [NATS, *line.words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=side.folder,
        env=quick({**kept, **side.environment(), **dict(line.variables)}),
    )


def _ended(line: Line, process: "subprocess.Popen[bytes]") -> Said:
    try:
        parts = process.communicate(line.given, timeout=RUN_S)
    finally:
        process.kill()
    out, err = (part.decode("utf-8", "replace") for part in parts)
    return Said(process.returncode, out, err)
