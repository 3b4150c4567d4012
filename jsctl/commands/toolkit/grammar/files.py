"""`@file` on a command line: the lines of the file stand in its place, a word each.

Only looked for where a word begins with `@`; behind `--` such a word means itself.
"""

from collections.abc import Sequence
from pathlib import Path

from jsctl.errors import UsageError

NESTED_MAX = 8
"""A file may name others, so deep; one that names itself ends here."""


class NoFile(UsageError):
    """A file that cannot be read; `before` are the words before it."""

    before: tuple[str, ...] = ()


def expanded(words: Sequence[str], depth: int = 0) -> list[str]:
    """The words with those of files; empty lines and lines that begin with `#` are none.

    Raises NoFile for a file that cannot be read.
    """
    found: list[str] = []
    for at, word in enumerate(words):
        if word == "--":
            return [*found, *words[at:]]
        if word.startswith("@"):
            try:
                found += expanded(_lines(word[1:], depth), depth + 1)
            except NoFile as error:
                error.before = (*found, *error.before)
                raise
        else:
            found.append(word)
    return found


def _lines(name: str, depth: int) -> list[str]:
    if not name:
        raise NoFile("expected @ file to expand arguments from")
    if depth == NESTED_MAX:
        raise NoFile(f"arguments files name each other more than {NESTED_MAX} deep")
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = (
            f"open {name}: {(error.strerror or str(error)).lower()}"
            if isinstance(error, OSError)
            else "it is not UTF-8"
        )
        hint = "a word that begins with @ is written behind --, a flag's value behind ="
        raise NoFile(f'failed to open arguments file "{name}": {why}', hints=(hint,)) from None
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
