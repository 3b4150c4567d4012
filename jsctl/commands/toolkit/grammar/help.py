"""Help in the shape of natscli: usage, text, flags in two columns, aliases."""

import textwrap
from collections.abc import Sequence

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Group, Kind, Option, options_of
from jsctl.settings import GLOBAL_FLAGS

WIDTH = 80
_SEE_HELP = "Pass --help to see global flags applicable to this command."
_METAVARS = {
    Kind.INTEGER: "N",
    Kind.DURATION: "DURATION",
    Kind.SIZE: "BYTES",
    Kind.FILE: "FILE",
    Kind.MAP: "KEY=VALUE",
}


def command_help(
    path: Sequence[str], command: Command, inherited: Sequence[Option] = (), *, full: bool = True
) -> str:
    """The page of a leaf; `path` starts with the program's name. Short below errors."""
    words = " ".join(_usage(argument) for argument in command.arguments)
    parts = [f"usage: {' '.join(path)} [<flags>] {words}".rstrip(), "", command.help, ""]
    if command.arguments:
        rows = [(_usage(argument), argument.help) for argument in command.arguments]
        parts += ["Args:", _columns(rows), ""]
    options = [*options_of(command), *inherited]
    shown = [_option_row(option) for option in options if not option.hidden]
    if shown:
        parts += ["Flags:", _columns(shown), ""]
    if command.aliases:
        parts += [f"Command Aliases: {', '.join(command.aliases)}", ""]
    if not full:
        return "\n".join([*parts, _SEE_HELP])
    if command.examples:
        parts += ["Examples:", *(f"  $ {example}" for example in command.examples), ""]
    return "\n".join([*parts, *_global_part()])


def group_help(path: Sequence[str], group: Group, *, full: bool = True) -> str:
    """The page of a group."""
    head = " ".join(path)
    prefix = "".join(f"{word} " for word in path[1:])
    rows = [(f"{prefix}{one.name}", one.help) for one in group.commands if not one.hidden]
    parts = [f"usage: {head} [<flags>] <command> [<args> ...]", "", group.help, ""]
    parts += ["Subcommands:" if prefix else "Commands:", _columns(rows), ""]
    if group.options:
        parts += ["Flags:", _columns([_option_row(option) for option in group.options]), ""]
    if group.aliases:
        parts += [f"Command Aliases: {', '.join(group.aliases)}", ""]
    tail = _global_part() if full else [_SEE_HELP]
    return "\n".join([*parts, *tail])


def _usage(argument: Argument) -> str:
    dots = " ..." if argument.many else ""
    return f"<{argument.name}>{dots}" if argument.required else f"[<{argument.name}>{dots}]"


def _option_row(option: Option) -> tuple[str, str]:
    short = f"-{option.short}, " if option.short else "    "
    if option.kind is Kind.FLAG:
        return f"{short}--{option.name}", option.help
    if option.kind is Kind.SWITCH:
        return f"{short}--[no-]{option.name}", option.help
    value = option.default or option.metavar or _METAVARS.get(option.kind, option.name.upper())
    many = " ..." if option.kind in (Kind.LIST, Kind.MAP) else ""
    choices = f" ({', '.join(option.choices)})" if option.choices else ""
    return f"{short}--{option.name}={value}{many}", option.help + choices


def _global_part() -> list[str]:
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
    return ["Global Flags:", _columns(rows)]


def _columns(rows: Sequence[tuple[str, str]]) -> str:
    left = min(max((len(name) for name, _ in rows), default=0), 34)
    lines: list[str] = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, WIDTH - left - 4) or [""]
        if len(name) > left:
            lines.append(f"  {name}")
            wrapped = ["", *wrapped]
        else:
            lines.append(f"  {name:<{left}}  {wrapped[0]}".rstrip())
        lines += [" " * (left + 4) + line for line in wrapped[1:]]
    return "\n".join(lines)
