"""What a command is: names, arguments, options, help, and the function that runs it.

Commands are declared as data, so that parsing, help, completion and documents come from one
place and nothing but the chosen command's module is imported.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, cast

from jsctl.api.times import parse_duration
from jsctl.errors import UsageError

if TYPE_CHECKING:
    from jsctl.commands.toolkit.invocation.call import Call

Run = Callable[["Call"], "int | Awaitable[int | None] | None"]


class Kind(Enum):
    """How the text of an option becomes a value."""

    TEXT = "text"
    FLAG = "flag"
    SWITCH = "switch"
    """A flag with a `--no-` form and three states: on, off, not given."""
    LIST = "list"
    MAP = "map"
    INTEGER = "integer"
    DURATION = "duration"
    SIZE = "size"
    FILE = "file"


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


@dataclass(frozen=True, slots=True)
class Argument:
    """A positional word. `many` takes all that are left."""

    name: str
    help: str
    required: bool = False
    default: str = ""
    many: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """A leaf of the tree.

    `run` and `more_options` may be references `module:name`, so that a group can be declared
    without importing what its commands need; `more_options` names a function without arguments.
    """

    name: str
    help: str
    run: Run | str
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    more_options: str = ""
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    hidden: bool = False


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
        """The sub-command of that name or alias."""
        for command in self.commands:
            if word == command.name or word in command.aliases:
                return command
        return None


def resolve(reference: str) -> object:
    """What a `module:name` reference means; modules are those of this package."""
    module, _, name = reference.partition(":")
    return getattr(import_module(f"jsctl.commands.{module}"), name)


def function_of(command: Command) -> Run:
    """The function that runs a command."""
    return cast(Run, resolve(command.run)) if isinstance(command.run, str) else command.run


def options_of(command: Command) -> tuple[Option, ...]:
    """All options of a command."""
    if not command.more_options:
        return command.options
    more = cast("Callable[[], tuple[Option, ...]]", resolve(command.more_options))
    return (*command.options, *more())


JSON = Option("json", "Produce JSON output", Kind.FLAG, short="j")
FORCE = Option("force", "Force the operation without confirmation", Kind.FLAG, short="f")
NO_SELECT = Option("no-select", "Do not select from a list", Kind.FLAG)

_SIZE_UNITS = {"": 0, "B": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_size(text: str) -> int:
    """Bytes of `512`, `1K`, `5MB`, `2GiB`, all 1024-based; empty or negative is -1."""
    text = text.strip()
    if not text or text.startswith("-"):
        return -1
    digits = text.rstrip("kKmMgGtTiIbB ")
    unit = text[len(digits) :].strip().upper().replace("IB", "").rstrip("B") or ""
    try:
        return int(float(digits) * 1024 ** _SIZE_UNITS[unit])
    except (KeyError, ValueError):
        raise UsageError(f"invalid bytes specification {text!r}") from None


def check_value(option: Option, text: str) -> str:
    """The text, if it fits the option's kind and choices; raises UsageError."""
    if option.choices and text not in option.choices:
        words = ",".join(option.choices)
        raise UsageError(f"enum value must be one of {words}, got '{text}'")
    try:
        if option.kind is Kind.INTEGER:
            int(text)
        elif option.kind is Kind.DURATION:
            parse_duration(text)
        elif option.kind is Kind.SIZE:
            parse_size(text)
        elif option.kind is Kind.MAP and not any(mark in text for mark in "=:"):
            raise UsageError(f"expected KEY:VALUE or KEY=VALUE, got '{text}'")
    except ValueError as error:
        raise UsageError(f"--{option.name}: {error}") from None
    return text
