"""Help in the shape of natscli: usage, text, flags in two columns, aliases."""

import os
from collections.abc import Sequence
from dataclasses import replace

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Group, Kind, Option, options_of
from jsctl.commands.toolkit.grammar.wrapping import help_width, wrapped
from jsctl.settings import GLOBAL_FLAGS

LEFT_MIN, LEFT_PERCENT = 30, 37.5
"""Names of so many letters, or of so much of the width, have a line of their own."""
_SEE_HELP = "Pass --help to see global flags applicable to this command."


def command_help(path: Sequence[str], command: Command, *, full: bool = True) -> str:
    """The page of a leaf; `path` starts with the program's name. Short below errors."""
    width = help_width(os.environ)
    options = [one for one in options_of(command) if not one.hidden]
    words = [*(["[<flags>]"] if options else []), *(_usage(one) for one in command.arguments)]
    parts = [f"usage: {' '.join((*path, *words))}", "", _paragraphs(command.help, width), ""]
    for paragraph in command.details:
        parts += [paragraph if paragraph[:1] == " " else _paragraphs(paragraph, width), ""]
    if command.arguments:
        rows = [(_listed(argument), argument.help) for argument in command.arguments]
        parts += ["Args:", _columns(rows, width), ""]
    if options:
        parts += ["Flags:", _columns(_option_rows(options), width), ""]
    parts += _aliases(command.aliases)
    if not full:
        return "\n".join([*parts, _SEE_HELP])
    if command.examples:
        parts += ["Examples:", *(f"  $ {example}" for example in command.examples), ""]
    return "\n".join([*parts, *_global_part(width)])


def group_help(path: Sequence[str], group: Group, *, full: bool = True) -> str:
    """The page of a group."""
    width = help_width(os.environ)
    head = " ".join(path)
    prefix = "".join(f"{word} " for word in path[1:])
    listed = [one for one in group.commands if not one.hidden]
    rows = [(f"{prefix}{one.name}", one.help.partition("\n")[0]) for one in listed]
    flags = "" if prefix and not group.options else " [<flags>]"
    parts = [f"usage: {head}{flags} <command> [<args> ...]", "", _paragraphs(group.help, width), ""]
    parts += ["Subcommands:" if prefix else "Commands:", _columns(rows, width), ""]
    if group.options:
        parts += ["Flags:", _columns(_option_rows(group.options), width), ""]
    parts += _aliases(group.aliases)
    tail = _global_part(width) if full else [_SEE_HELP]
    return "\n".join([*parts, *tail])


def _paragraphs(text: str, width: int) -> str:
    """Wrapped one by one; empty lines stand between them."""
    return "\n\n".join("\n".join(wrapped(part, width)) for part in text.split("\n\n"))


def _listed(argument: Argument) -> str:
    return f"[{argument.metavar}]" if argument.metavar else _usage(replace(argument, many=False))


def _aliases(names: Sequence[str]) -> list[str]:
    """The line of aliases, or the empty one that stands for it."""
    return [f"Command Aliases: {', '.join(names)}", ""] if names else [""]


def _option_rows(options: Sequence[Option]) -> list[tuple[str, str]]:
    """Long names stand below each other when one of them has a short form."""
    pad = "    " if any(option.short for option in options) else ""
    return [_option_row(option, pad) for option in options]


def _usage(argument: Argument) -> str:
    dots = "..." if argument.many else ""
    return f"<{argument.name}>{dots}" if argument.required else f"[<{argument.name}>{dots}]"


def _option_row(option: Option, pad: str) -> tuple[str, str]:
    short = f"-{option.short}, " if option.short else pad
    if option.kind is Kind.FLAG:
        return f"{short}--{option.name}", option.help
    if option.kind is Kind.SWITCH:
        return f"{short}--[no-]{option.name}", option.help
    default = option.default
    if default and not option.choices and option.kind in (Kind.TEXT, Kind.SIZE):
        default = f'"{default}"'
    value = default or option.metavar or option.name.upper()
    many = " ..." if option.kind in (Kind.LIST, Kind.MAP) else ""
    unnamed = [word for word in option.choices if word not in option.help]
    choices = f" ({', '.join(option.choices)})" if unnamed and not option.silent else ""
    return f"{short}--{option.name}={value}{many}", option.help + choices


def _global_part(width: int) -> list[str]:
    rows = [
        ("-h, --help", "Show context-sensitive help"),
        ("    --version", "Show application version."),
    ]
    for flag in GLOBAL_FLAGS:
        short = f"-{flag.short}, " if flag.short else "    "
        name = f"--[no-]{flag.name}" if flag.negative else f"--{flag.name}"
        env = f" (${flag.env})" if flag.env else ""
        rows.append(
            (f"{short}{name}" + (f"={flag.metavar}" if flag.metavar else ""), flag.help + env)
        )
    return ["Global Flags:", _columns(rows, width)]


def _columns(rows: Sequence[tuple[str, str]], width: int) -> str:
    end = max(LEFT_MIN, int(width * LEFT_PERCENT / 100))
    left = max((len(name) for name, _ in rows if len(name) < end), default=0)
    lines: list[str] = []
    for name, text in rows:
        first, *others = wrapped(text, max(1, width - left - 4))
        if len(name) > left:
            lines.append(f"  {name}")
            others = [first, *others]
        else:
            lines.append(f"  {name:<{left}}  {first}".rstrip())
        lines += [" " * (left + 4) + line for line in others]
    return "\n".join(lines)
