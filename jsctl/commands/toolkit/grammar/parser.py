"""Parses the words of one command with click, built from the command's declaration.

Values stay text and are checked by `check_value`; click finds out which word belongs to what. Its
own command is only parsed with, never run, and words that are left over are told in our words.
"""

from collections.abc import Sequence

import click

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Kind, Option, options_of
from jsctl.commands.toolkit.grammar.values import Value, check_value
from jsctl.errors import UsageError
from jsctl.settings import GLOBAL_FLAGS


def parse(command: Command, inherited: Sequence[Option], words: Sequence[str]) -> dict[str, Value]:
    """Values by option and argument name; None where nothing was given.

    Raises UsageError.
    """
    options = [*options_of(command), *inherited]
    parameters = [_argument(one) for one in command.arguments] + [_option(one) for one in options]
    leaf = click.Command(command.name, params=parameters, add_help_option=False)
    try:
        context = leaf.make_context(
            command.name, list(words), allow_extra_args=True, help_option_names=[]
        )
    except click.NoSuchOption as error:
        length = "long" if error.option_name.startswith("--") else "short"
        text = f"unknown {length} flag '{error.option_name}'"
        raise UsageError(text, show_help=True, hints=_near(error.option_name, options)) from None
    except click.BadOptionUsage as error:
        text = f"expected argument for flag '{error.option_name}'"
        raise UsageError(text, show_help=True) from None
    except click.UsageError as error:
        raise UsageError(error.format_message(), show_help=True) from None
    if context.args:
        raise UsageError(f"unexpected argument {context.args[0]}", show_help=True)
    return _checked(command, options, context.params)


NEAR = 0.75
"""So much alike a flag has to be to be meant."""


def _near(name: str, options: Sequence[Option]) -> tuple[str, ...]:
    """Flags that are spelled alike, those of every command too."""
    from difflib import get_close_matches

    names = [f"--{one}" for option in options for one in (option.name, *option.aliases)]
    names += [f"--{flag.name}" for flag in GLOBAL_FLAGS]
    near = get_close_matches(name, names, 3, NEAR)
    return (f"did you mean {', '.join(near)}?",) if near else ()


def _identifier(name: str) -> str:
    return name.replace("-", "_") + "_"


def _argument(argument: Argument) -> click.Parameter:
    return click.Argument(
        [_identifier(argument.name)],
        required=False,
        default=None,
        nargs=-1 if argument.many else 1,
        type=click.UNPROCESSED,
    )


def _option(option: Option) -> click.Parameter:
    long = [f"--{name}" for name in (option.name, *option.aliases)]
    if option.kind is Kind.SWITCH:
        long = [f"{name}/--no-{name[2:]}" for name in long]
    names = [_identifier(option.name), *long, *([f"-{option.short}"] if option.short else [])]
    if option.kind in (Kind.FLAG, Kind.SWITCH):
        return click.Option(names, is_flag=True, default=None)
    several = option.kind in (Kind.LIST, Kind.MAP)
    return click.Option(names, multiple=several, default=None, type=click.UNPROCESSED)


def _checked(
    command: Command, options: Sequence[Option], found: dict[str, object]
) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for option in options:
        values[option.name] = _value(found.get(_identifier(option.name)), option)
    missing = [f"--{one.name}" for one in options if one.required and values[one.name] is None]
    if missing:
        what = "flag" if len(missing) == 1 else "flags"
        raise UsageError(f"required {what} {', '.join(missing)} not provided", show_help=True)
    for argument in command.arguments:
        given = _value(found.get(_identifier(argument.name)))
        if argument.required and given is None:
            raise UsageError(f"required argument '{argument.name}' not provided", show_help=True)
        if argument.choices and isinstance(given, str) and given not in argument.choices:
            words = ",".join(argument.choices)
            raise UsageError(f"enum value must be one of {words}, got '{given}'")
        values[argument.name] = given
    return values


def _value(given: object, option: Option | None = None) -> Value:
    """What click found, as a value; texts are checked against the option. Raises UsageError."""
    if isinstance(given, tuple):
        return tuple(check_value(option, text) if option else text for text in given) or None
    if isinstance(given, str):
        return check_value(option, given) if option else given
    assert given is None or isinstance(given, bool), given
    return given
