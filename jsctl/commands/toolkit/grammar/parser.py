"""Parses the words of one command with Typer, built from the command's declaration.

Typer converts values with a schema library that takes longer to import than most commands
take to run. Values stay text here and are checked by `check_value`, so that conversion is
switched off where the installed Typer has it.
"""

import inspect
from collections.abc import Sequence
from typing import Any, Optional

import typer
from typer.main import get_command

from jsctl.commands.toolkit.grammar.spec import (
    Argument,
    Command,
    Kind,
    Option,
    options_of,
)
from jsctl.commands.toolkit.grammar.values import Value, check_value
from jsctl.errors import UsageError

_USAGE_ERROR: Any = next(
    base for base in reversed(typer.BadParameter.__mro__) if hasattr(base, "format_message")
)
_CONTEXT = {"help_option_names": [], "ignore_unknown_options": False}


class _AsGiven:
    """Stands in for Typer's conversion: the value is taken as it is."""

    def coerce(self, value: object, **_unused: object) -> object:
        """The value itself."""
        return value


def parse(command: Command, inherited: Sequence[Option], words: Sequence[str]) -> dict[str, Value]:
    """Values by option and argument name; None where nothing was given.

    Raises UsageError.
    """
    options = [*options_of(command), *inherited]
    found: dict[str, Any] = {}

    def body(**values: Any) -> None:
        found.update(values)

    parameters = [_argument(argument) for argument in command.arguments]
    parameters += [_option(option) for option in options]
    body.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # for Typer
    body.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(add_help_option=False, context_settings=_CONTEXT)(body)
    leaf = get_command(app)
    for parameter in leaf.params:
        if hasattr(parameter, "_runtime_param"):
            parameter._runtime_param = _AsGiven()
    try:
        leaf.main(args=list(words), prog_name=command.name, standalone_mode=False)
    except _USAGE_ERROR as error:
        raise UsageError(_message(error), show_help=True) from None
    return _checked(command, options, found)


def _identifier(name: str) -> str:
    return name.replace("-", "_") + "_"


def _argument(argument: Argument) -> inspect.Parameter:
    annotation: Any = Optional[list[str]] if argument.many else Optional[str]  # noqa: UP045
    return inspect.Parameter(
        _identifier(argument.name),
        inspect.Parameter.KEYWORD_ONLY,
        default=typer.Argument(None, show_default=False),
        annotation=annotation,
    )


def _option(option: Option) -> inspect.Parameter:
    names = [f"--{name}" for name in (option.name, *option.aliases)]
    if option.kind is Kind.SWITCH:
        names = [f"--{name}/--no-{name}" for name in (option.name, *option.aliases)]
    if option.short:
        names.append(f"-{option.short}")
    annotation: Any = Optional[str]  # noqa: UP045 - Typer reads the object
    if option.kind in (Kind.FLAG, Kind.SWITCH):
        annotation = Optional[bool]  # noqa: UP045
    elif option.kind in (Kind.LIST, Kind.MAP):
        annotation = Optional[list[str]]  # noqa: UP045
    return inspect.Parameter(
        _identifier(option.name),
        inspect.Parameter.KEYWORD_ONLY,
        default=typer.Option(None, *names, show_default=False),
        annotation=annotation,
    )


def _checked(
    command: Command, options: Sequence[Option], found: dict[str, Any]
) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for option in options:
        given = found.get(_identifier(option.name))
        if isinstance(given, str):
            given = check_value(option, given)
        elif isinstance(given, list | tuple):
            given = tuple(check_value(option, text) for text in given) or None
        values[option.name] = given
    for argument in command.arguments:
        given = found.get(_identifier(argument.name))
        given = tuple(given) or None if isinstance(given, list | tuple) else given
        if argument.required and given is None:
            raise UsageError(f"required argument '{argument.name}' not provided", show_help=True)
        if argument.choices and isinstance(given, str) and given not in argument.choices:
            words = ",".join(argument.choices)
            raise UsageError(f"enum value must be one of {words}, got '{given}'")
        values[argument.name] = given
    return values


def _message(error: Any) -> str:
    """The sentence of natscli for what Typer found wrong."""
    kind = type(error).__name__
    option = str(getattr(error, "option_name", "") or "")
    if kind == "NoSuchOption":
        length = "long" if option.startswith("--") else "short"
        return f"unknown {length} flag '{option}'"
    if kind == "BadOptionUsage":
        return f"expected argument for flag '{option}'"
    text = str(error.format_message())
    if text.startswith("Got unexpected extra argument"):
        return f"unexpected argument {text.rpartition('(')[2].partition(')')[0].split(' ')[0]}"
    return text
