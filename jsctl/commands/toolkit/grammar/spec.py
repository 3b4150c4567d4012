"""What a command is: names, arguments, options, help, and where the function is that runs it.

Commands are declared as data, so that parsing, help, completion and documents come from one
place and nothing but the chosen command's module is imported.
"""

from collections.abc import Callable
from enum import Enum
from importlib import import_module
from typing import cast

from jsctl.dataclass import dataclass


class Kind(Enum):
    """How the text of an option becomes a value."""

    TEXT = "text"
    FLAG = "flag"
    SWITCH = "switch"
    """A flag with a `--no-` form and three states: on, off, not given."""
    LIST = "list"
    MAP = "map"
    INTEGER = "integer"
    UNSIGNED = "unsigned"
    DURATION = "duration"
    AGE = "age"
    """A duration, or `-1` for none."""
    SPAN = "span"
    """A duration that is not negative."""
    SIZE = "size"
    FILE = "file"
    INPUT = "input"
    """A file that has to be there."""
    FOLDER = "folder"
    """A directory that has to be there."""


@dataclass(frozen=True, slots=True)
class Option:
    """A flag. `default` is text as on the command line; switches take `true` or `false`."""

    name: str
    help: str
    kind: Kind = Kind.TEXT
    short: str = ""
    default: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    hidden: bool = False
    required: bool = False
    silent: bool = False
    """The choices are not told in the help."""
    key: str = ""
    """What the value is found by, if not by the name: an argument may have that."""
    bits: int = 64
    """Of a number that has no sign: more are refused."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A positional word. `many` takes all that are left."""

    name: str
    help: str
    required: bool = False
    default: str = ""
    many: bool = False
    choices: tuple[str, ...] = ()
    metavar: str = ""
    kind: Kind = Kind.TEXT
    bits: int = 64


@dataclass(frozen=True, slots=True)
class Command:
    """A leaf of the tree.

    `run` and `more_options` are references `module:name`, so that a group can be declared without
    importing what its commands need. The one names a function that takes a `Call`, the other one
    without arguments. `details` are further paragraphs of the help page, one line each; a line
    that begins with a blank is shown as it is.
    """

    name: str
    help: str
    run: str
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    more_options: str = ""
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    hidden: bool = False
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """A command with sub-commands. Its `options` may follow any of them too."""

    name: str
    help: str
    commands: "tuple[Command | Group, ...]" = ()
    options: tuple[Option, ...] = ()
    aliases: tuple[str, ...] = ()
    hidden: bool = False

    def find(self, word: str) -> "Command | Group | None":
        """The sub-command of that name, or the last one of that alias, as with `nats`."""
        found = None
        for command in self.commands:
            if word == command.name:
                return command
            found = command if word in command.aliases else found
        return found


def resolve(reference: str) -> object:
    """What a `module:name` reference means; modules are named from `jsctl.commands` on."""
    module, _, name = reference.partition(":")
    return getattr(import_module(f"jsctl.commands.{module}"), name)


def options_of(command: Command) -> tuple[Option, ...]:
    """All options of a command."""
    if not command.more_options:
        return command.options
    more = cast("Callable[[], tuple[Option, ...]]", resolve(command.more_options))
    return (*command.options, *more())


JSON = Option("json", "Produce JSON output", Kind.FLAG, short="j")
FORCE = Option("force", "Force the operation without confirmation", Kind.FLAG, short="f")
ACT_FORCED = Option("force", "Act without confirmation", Kind.FLAG, short="f")
NO_SELECT = Option("no-select", "Do not select from a list", Kind.FLAG)
