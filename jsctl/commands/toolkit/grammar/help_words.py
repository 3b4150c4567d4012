"""How help is asked for."""

from collections.abc import Sequence
from itertools import takewhile

from jsctl.commands.toolkit.grammar.spec import Command, Group, Kind, Option, options_of

HELP_WORDS = frozenset({"-h", "--help"})


def asks_help(words: Sequence[str], node: Command | Group, inherited: tuple[Option, ...]) -> bool:
    """Whether help is asked for in front of `--`, also by a letter among others (`-ah`)."""
    for word in takewhile(lambda word: word != "--", words):
        if word in HELP_WORDS or word.startswith("--help="):
            return True
        if word[:1] == "-" and "h" in word and isinstance(node, Command):
            options = (*options_of(node), *inherited)
            short = {one.short for one in options if one.kind in (Kind.FLAG, Kind.SWITCH)}
            if set(word[1:]) <= {*short, "h"}:
                return True
    return False
