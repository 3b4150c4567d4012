"""What may come next on a command line, for the shells.

`jsctl __complete [--shell NAME] [--last=WORD] -- WORDS` prints a line for each candidate of the
last word, which WORDS end with unless it is given by itself: `value TAB help`; a last line `:file`
or `:dir` leaves the word to the shell's own completion of paths. Nothing else is ever printed, and
it always ends with status 0: a key was hit, not a command given.
"""

import os
import re
import sys
from collections.abc import Callable, Sequence

from jsctl.completion.words import Answer, complete
from jsctl.render.table import safe

BREAKS = "=:"
"""Where bash ends words of its own."""
_PLAIN = re.compile(r"[\w./:=+-]+", re.ASCII)
_QUOTES = re.compile("['\u2018\u2019\u201a\u201b]")
_TWICE = re.compile(f"({_QUOTES.pattern})\\1")
"""All of these end a text in quotes there."""
LAST = "--last="
SHELLS = ("bash", "zsh", "fish", "powershell")


def main(arguments: Sequence[str]) -> int:
    """Prints the candidates for the last one of the words."""
    given = list(arguments)
    shell = given[1] if given[:1] == ["--shell"] and len(given) > 1 else ""
    words = given
    if "--" in given:
        at = given.index("--")
        before, words = given[:at], given[at + 1 :]
        words += [one.removeprefix(LAST) for one in before if one.startswith(LAST)]
    if shell == "bash":
        words = joined(words)
    elif shell == "powershell":
        words = [*map(_unquoted, words)]
    try:
        answer = complete(words, os.environ)
    except Exception:  # noqa: BLE001 - a traceback in the middle of a command line helps nobody
        return 0
    last = words[-1] if words else ""
    cut = max(last.rfind(mark) + 1 for mark in BREAKS) if shell == "bash" else 0
    written = _quoted if shell == "powershell" else str
    sys.stdout.write(_lines(answer, last[:cut], written))
    return 0


def joined(words: Sequence[str]) -> list[str]:
    """Words as people wrote them; bash breaks them at `=` and `:`."""
    found: list[str] = []
    glue = False
    for word in words:
        mark = bool(word) and all(character in BREAKS for character in word)
        if found and (mark or glue):
            found[-1] += word
        else:
            found.append(word)
        glue = mark
    return found


def _unquoted(word: str) -> str:
    """As it was written, which may be with a quote at its beginning alone."""
    if not word.startswith("'"):
        return word
    inner = word[1:].removesuffix("'") if len(word) > 1 else ""
    return _TWICE.sub(r"\1", inner)


def _quoted(value: str) -> str:
    """As a word of PowerShell, which takes it over as it is: names may be anybody's."""
    if _PLAIN.fullmatch(value):
        return value
    return "'" + _QUOTES.sub(r"\g<0>\g<0>", value) + "'"


def _lines(answer: Answer, prefix: str, written: Callable[[str], str]) -> str:
    lines = [
        written(value[len(prefix) :]) + (f"\t{safe(help_text)}" if help_text else "")
        for value, help_text in answer.candidates
        if value.startswith(prefix) and value.isprintable()
    ]
    if answer.paths:
        lines.append(f":{answer.paths}")
    return "".join(f"{line}\n" for line in lines)
