"""Regular expressions and subjects that choose by name."""

import re
from collections.abc import Callable

from jsctl.commands.toolkit.grammar.regexps import compiled
from jsctl.errors import UsageError


def searcher(text: str, flag: str) -> Callable[[str], bool]:
    """Whether a name has what the regular expression looks for. Raises UsageError."""
    try:
        pattern = compiled(text)
    except re.error as error:
        raise UsageError(f"--{flag}: {error}") from None
    return lambda name: pattern.search(name) is not None


def covers(pattern: str, subject: str) -> bool:
    """Whether every subject that `subject` stands for is one of `pattern`."""
    wanted, given = pattern.split("."), subject.split(".")
    for at, token in enumerate(wanted):
        if token == ">":
            return len(given) > at
        if at >= len(given) or given[at] == ">":
            return False
        if token not in ("*", given[at]):
            return False
    return len(wanted) == len(given)
