"""Flags in front of the command that they are for: those of the groups above it."""

from collections.abc import Iterable

from jsctl.commands.toolkit.grammar.spec import Kind, Option
from jsctl.errors import UsageError

_ALONE = (Kind.FLAG, Kind.SWITCH)


def carried(word: str, options: Iterable[Option], waiting: list[str]) -> list[str]:
    """The word, to be parsed with the command, and its value: that is no name of a command.

    What is taken goes from `waiting`. Raises UsageError for a flag of none of the options, and for
    one whose value is missing.
    """
    known = {f"--{one.name}": one for one in options}
    known |= {f"--no-{one.name}": one for one in options if one.kind is Kind.SWITCH}
    known |= {f"-{one.short}": one for one in options if one.short}
    long, equals, _ = word.partition("=")
    found: list[str] = []
    for flag in [long] if word.startswith("--") else [f"-{letter}" for letter in word[1:]]:
        if flag not in known:
            length = "long" if flag.startswith("--") else "short"
            raise UsageError(f"unknown {length} flag '{flag}'")
        alone = known[flag].kind in _ALONE
        found.append(word if equals and flag is long else flag)
        if not alone and found[-1] == flag:
            if not waiting:
                raise UsageError(f"expected argument for flag '{flag}'")
            found.append(waiting.pop(0))
    return found
