"""Parses the words of one command with click, built from the command's declaration.

Values stay text and are checked by `check_value`; click finds out which word belongs to what. Its
own command is only parsed with, never run, and what is wrong is told in our words.
"""

from collections.abc import Sequence

import click

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Kind, Option, options_of
from jsctl.commands.toolkit.grammar.values import Value, check_value
from jsctl.errors import UsageError
from jsctl.settings import GLOBAL_FLAGS

_OFF = "off"
"""Behind the key of a switch that is turned off; other keys end with `_`."""


def parse(command: Command, inherited: Sequence[Option], words: Sequence[str]) -> dict[str, Value]:
    """Values by option and argument name; None where nothing was given.

    Raises UsageError.
    """
    options = [*options_of(command), *inherited]
    parameters = [_argument(one) for one in command.arguments]
    parameters += [parameter for one in options for parameter in _options(one)]
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
        given = (word.partition("=") for word in words if word.startswith(f"{error.option_name}="))
        surplus = next((value for _, _, value in given), "")
        text = (
            f"unexpected argument {surplus}"
            if surplus
            else (f"expected argument for flag '{error.option_name}'")
        )
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


def _options(option: Option) -> list[click.Parameter]:
    """What click is to look for: all counts and lists, so that repetitions are seen."""
    key = _identifier(option.key or option.name)
    names = [option.name, *option.aliases]
    long = [*(f"--{name}" for name in names), *([f"-{option.short}"] if option.short else [])]
    if option.kind not in (Kind.FLAG, Kind.SWITCH):
        return [click.Option([key, *long], multiple=True, type=click.UNPROCESSED)]
    found: list[click.Parameter] = [click.Option([key, *long], count=True)]
    if option.kind is Kind.SWITCH:
        negative = [f"--no-{name}" for name in names]
        found.append(click.Option([key + _OFF, *negative], count=True))
    return found


def _checked(
    command: Command, options: Sequence[Option], found: dict[str, object]
) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for option in options:
        values[option.key or option.name] = _of_option(option, found)
    missing = [
        f"--{one.name}" for one in options if one.required and values[one.key or one.name] is None
    ]
    if missing:
        what = "flag" if len(missing) == 1 else "flags"
        raise UsageError(f"required {what} {', '.join(missing)} not provided", show_help=True)
    for argument in command.arguments:
        values[argument.name] = _of_argument(argument, found.get(_identifier(argument.name)))
    for argument in command.arguments:
        if argument.required and values[argument.name] is None:
            raise UsageError(f"required argument '{argument.name}' not provided", show_help=True)
    return values


def _of_option(option: Option, found: dict[str, object]) -> Value:
    """What click counted or listed, as a value. Raises UsageError."""
    key = _identifier(option.key or option.name)
    given = found.get(key)
    if isinstance(given, tuple):
        checked = tuple(check_value(option, text) for text in given)
        if option.kind in (Kind.LIST, Kind.MAP):
            return checked or None
        _once(option, len(checked))
        return checked[0] if checked else None
    yes, no = given, found.get(key + _OFF, 0)
    assert isinstance(yes, int) and isinstance(no, int), found
    _once(option, yes + no)
    return True if yes else False if no else None


def _once(option: Option, times: int) -> None:
    if times > 1:
        raise UsageError(f"flag '{option.name}' cannot be repeated", show_help=True)


def _of_argument(argument: Argument, given: object) -> Value:
    if isinstance(given, tuple):
        return tuple(check_value(argument, text) for text in given) or None
    assert given is None or isinstance(given, str), given
    return given if given is None else check_value(argument, given)
