"""What the documents say: the examples in them, as a reader would type them.

A fenced block `console` is a terminal. `$ ` stands before what is typed, and a line that ends with
a backslash goes on in the next one; what is below it is what the command says, where a line `...`
stands for any number of lines. What the reader does not see are HTML comments:

    <!-- servers: 3 -->            of a page: a cluster instead of one server
    <!-- contexts: none -->        of a page: nobody has made a context yet
    <!-- before                    commands that are run there, and not shown
    $ jsctl ...
    -->
    <!-- beside -->                of a block: a second terminal, in which commands go on
    <!-- not run: reason -->       of a block: what cannot run here, and why
"""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path

PROMPT = "$ "
TERMINAL = "console"
COMMAND = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*jsctl ")
_PART = re.compile(
    r"^<!-- (?P<word>before|beside|not run|servers|contexts)(?:: (?P<value>.*?))?"
    r"(?: -->|\n(?P<hidden>.*?)-->)\n|^```(?P<kind>\w*)\n(?P<text>.*?)^```\n",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Example:
    """A command, and what a document says that it tells; nothing where it says nothing."""

    line: int
    command: str
    shown: tuple[str, ...] = ()
    beside: bool = False
    why_not: str = ""


@dataclass(frozen=True)
class Page:
    """A document."""

    path: Path

    @cached_property
    def text(self) -> str:
        """All of it."""
        return self.path.read_text()

    @property
    def servers(self) -> int:
        """How many its examples need."""
        found = re.search(r"^<!-- servers: (\d) -->$", self.text, re.MULTILINE)
        return int(found[1]) if found else 1

    @property
    def has_contexts(self) -> bool:
        """Whether somebody has made contexts before the page begins."""
        return "<!-- contexts: none -->\n" not in self.text

    @cached_property
    def examples(self) -> list[Example]:
        """All that call commands, in their order.

        A block that is no terminal counts when it calls jsctl: nobody would know whether it runs.
        """
        found: list[Example] = []
        word, reason, behind = "", "", 0
        for part in _PART.finditer(self.text):
            line = self.text.count("\n", 0, part.start()) + 1
            if part["word"]:
                word, reason, behind = part["word"], part["value"] or "", part.end()
                if word == "before":
                    found += _read(part["hidden"] or "", line + 1, "", beside=False)
                continue
            word = word if part.start() == behind else ""
            why_not = reason if word == "not run" else ""
            if part["kind"] == TERMINAL:
                found += _read(part["text"], line + 1, why_not, beside=word == "beside")
            else:
                found += _loose(part["text"], line + 1, why_not)
        return found


def _read(text: str, line: int, why_not: str, *, beside: bool) -> list[Example]:
    lines = text.splitlines()
    found: list[Example] = []
    at = 0
    while at < len(lines):
        assert lines[at].startswith(PROMPT), f"line {line + at}: a terminal begins with a prompt"
        first, command = at, lines[at].removeprefix(PROMPT)
        while command.endswith("\\"):
            at += 1
            command = command[:-1] + lines[at].strip()
        shown = tuple(takewhile(lambda one: not one.startswith(PROMPT), lines[at + 1 :]))
        at += 1 + len(shown)
        found.append(Example(line + first, command, _trimmed(shown), beside, why_not))
    return found


def _loose(text: str, line: int, why_not: str) -> list[Example]:
    """Of a block that is not marked as a terminal."""
    return [
        Example(line + number, one.removeprefix(PROMPT), why_not=why_not)
        for number, one in enumerate(text.splitlines())
        if COMMAND.match(one)
    ]


def _trimmed(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Without empty lines at the end, which part commands."""
    kept = list(lines)
    while kept and not kept[-1].strip():
        kept.pop()
    return tuple(kept)
