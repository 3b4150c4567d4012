"""Manual pages in roff, from the same declarations as the help."""

from collections.abc import Iterator, Sequence

from jsctl.commands.toolkit.grammar.spec import Argument, Command, Group, Kind, Option, options_of
from jsctl.settings import GLOBAL_FLAGS


def manual(path: Sequence[str], node: "Command | Group", inherited: Sequence[Option] = ()) -> str:
    """The page of a command or a group; `path` starts with the program's name."""
    name = "-".join(path)
    lines = [
        f'.TH "{_plain(name.upper())}" 1 "" "jsctl" "jsctl manual"',
        ".SH NAME",
        f"{_plain(name)} \\- {_plain(node.help)}",
        ".SH SYNOPSIS",
        f".B {_plain(' '.join(path))}",
    ]
    if isinstance(node, Group):
        lines += ["[\\fIflags\\fR] \\fIcommand\\fR", *_commands(path, node)]
    else:
        lines += [" ".join(["[\\fIflags\\fR]", *map(_argument, node.arguments)]), *_parts(node)]
    options = list(inherited)
    if isinstance(node, Group):
        options += node.options
    else:
        options = [*options_of(node), *options]
    shown = [option for option in options if not option.hidden]
    if shown:
        lines += [".SH OPTIONS", *(line for option in shown for line in _option(option))]
    if node.aliases:
        lines += [".SH ALIASES", _plain(", ".join(node.aliases))]
    lines += _examples(node)
    return "\n".join([*lines, *_globals(), ""])


def _plain(text: str) -> str:
    """Text without anything that roff reads as its own."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{text}" if text[:1] in (".", "'") else text


def _argument(argument: Argument) -> str:
    name = f"\\fI{_plain(argument.name)}\\fR" + (" ..." if argument.many else "")
    return name if argument.required else f"[{name}]"


def _commands(path: Sequence[str], group: Group) -> list[str]:
    lines = [".SH COMMANDS"]
    for one in group.commands:
        if not one.hidden:
            also = f" ({', '.join(one.aliases)})" if one.aliases else ""
            lines += [
                ".TP",
                f".B {_plain(' '.join((*path, one.name)))}{_plain(also)}",
                _plain(one.help),
            ]
    return lines


def _parts(command: Command) -> Iterator[str]:
    yield from (".SH DESCRIPTION", _plain(command.help))
    for paragraph in command.details:
        yield from (".PP", _plain(paragraph.strip()))
    if command.arguments:
        yield ".SH ARGUMENTS"
        for argument in command.arguments:
            choices = f" ({', '.join(argument.choices)})" if argument.choices else ""
            yield from (".TP", f".I {_plain(argument.name)}", _plain(argument.help + choices))


def _option(option: Option) -> list[str]:
    no = "[no-]" if option.kind is Kind.SWITCH else ""
    names = [f"-{option.short}"] if option.short else []
    names.append(f"--{no}{option.name}")
    head = "\\fB" + _plain(", ".join(names)) + "\\fR"
    if option.kind not in (Kind.FLAG, Kind.SWITCH):
        head += f"=\\fI{_plain(option.metavar or option.name.upper())}\\fR"
    text = option.help
    if option.choices:
        text += f" ({', '.join(option.choices)})"
    if option.default and option.kind is not Kind.SWITCH:
        text += f" [{option.default}]"
    return [".TP", head, _plain(text)]


def _examples(node: "Command | Group") -> list[str]:
    if isinstance(node, Group) or not node.examples:
        return []
    return [".SH EXAMPLES", ".nf", *map(_plain, node.examples), ".fi"]


def _globals() -> list[str]:
    lines = [".SH GLOBAL OPTIONS"]
    for flag in GLOBAL_FLAGS:
        option = Option(
            flag.name,
            f"{flag.help} (${flag.env})" if flag.env else flag.help,
            Kind.TEXT if flag.metavar else Kind.SWITCH if flag.negative else Kind.FLAG,
            short=flag.short,
            metavar=flag.metavar,
        )
        lines += _option(option)
    return lines
