"""Commands that other programs have: where they are kept, and how they become a part of the tree.

A plugin is a file `NAME.json` in the folder that `nats` has for them: the program, and what it said
of its commands when it was registered. Nothing of it is trusted: what is no description of commands
makes no command.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jsctl.commands import DELEGATED
from jsctl.commands.toolkit.grammar.spec import Argument, Command, Group, Kind, Option
from jsctl.errors import JsctlError
from jsctl.settings import GLOBAL_FLAGS, GlobalFlag

_GLOBAL = {name: flag for flag in GLOBAL_FLAGS for name in (flag.name, *flag.aliases)}


def folder_of_plugins(environ: Mapping[str, str]) -> Path:
    """Where they are; `nats` has the same place."""
    given = environ.get("XDG_DATA_HOME")
    share = Path(given) if given else Path.home() / ".local" / "share"
    return share / "nats" / "cli" / "plugins"


def plugin_names(environ: Mapping[str, str]) -> list[str]:
    """All that are registered."""
    return sorted(one.stem for one in folder_of_plugins(environ).glob("*.json"))


def plugin_named(name: str, environ: Mapping[str, str]) -> "Command | Group | None":
    """The commands of a plugin. Raises JsctlError for a file that describes none."""
    path = folder_of_plugins(environ) / f"{name}.json"
    if not name.isalpha() or not path.is_file():
        return None
    try:
        return node_of(_stored(path)[1], name)
    except ValueError as error:
        raise JsctlError(f"could not read plugin {name}: {error}") from None


def _stored(path: Path) -> tuple[str, Mapping[str, object]]:
    from jsctl.api.jsontext import (
        parse_object,
    )  # the page of help lists plugins, and has mostly none

    document = parse_object(path.read_bytes())
    return _text(document, "cmd"), _mapping(document.get("def"))


def delegate(
    path: Sequence[str], words: Sequence[str], flags: Mapping[str, str], environ: Mapping[str, str]
) -> None:
    """Run a plugin's program with the words as they were given, and the global flags it knows.

    Raises JsctlError when it ends with another status than 0.
    """
    name, *below = path
    program, definition = _stored(folder_of_plugins(environ) / f"{name}.json")
    known = set(_flag_names(definition, below))
    proxied = [
        _global_word(flag, flags[flag.key])
        for flag in GLOBAL_FLAGS
        if flag.key in flags and known & {flag.name, *flag.aliases}
    ]
    import subprocess  # not for help, which reads this module, too

    try:
        status = subprocess.run([program, *below, *proxied, *words], check=False).returncode
    except OSError as error:
        raise JsctlError(f"{program}: {(error.strerror or str(error)).lower()}") from None
    if status:
        raise JsctlError(f"exit status {status}")


def _global_word(flag: GlobalFlag, value: str) -> str:
    if flag.metavar:
        return f"--{flag.name}={value}"
    return f"--{flag.name}" if value == "true" else f"--no-{flag.name}"


def _flag_names(definition: Mapping[str, object], below: Sequence[str]) -> Iterator[str]:
    """Of the program and of the commands on the way down."""
    yield from (_text(one, "name") for one in _list(definition, "flags"))
    for word in below:
        definition = next(
            one for one in _list(definition, "commands") if _text(one, "name") == word
        )
        yield from (_text(one, "name") for one in _list(definition, "flags"))


def node_of(model: Mapping[str, object], name: str) -> "Command | Group":
    """A described program, or a command of it, as a part of the tree. Raises ValueError."""
    help_text = _text(model, "help")
    if not name or not help_text:
        raise ValueError("it says neither its name nor its help")
    options = tuple(
        _option(one) for one in _list(model, "flags") if _text(one, "name") not in _GLOBAL
    )
    aliases = tuple(str(one) for one in _plain_list(model, "aliases"))
    hidden = model.get("hidden") is True
    if inner := _list(model, "commands"):
        commands = tuple(node_of(one, _text(one, "name")) for one in inner)
        return Group(name, help_text, commands, options, aliases=aliases, hidden=hidden)
    arguments = tuple(_argument(one) for one in _list(model, "args"))
    return Command(name, help_text, DELEGATED, arguments, options, aliases=aliases, hidden=hidden)


def _option(model: Mapping[str, object]) -> Option:
    kind = Kind.TEXT
    if model.get("boolean") is True:
        kind = Kind.SWITCH if model.get("negatable") is True else Kind.FLAG
    elif model.get("cumulative") is True:
        kind = Kind.LIST
    short = model.get("short")
    return Option(
        _text(model, "name"),
        _text(model, "help"),
        kind,
        short=chr(short) if isinstance(short, int) and 32 < short < 127 else "",
        default=_default(model, kind),
        metavar=_text(model, "place_holder"),
        hidden=model.get("hidden") is True,
        required=_needed(model),
    )


def _argument(model: Mapping[str, object]) -> Argument:
    many = model.get("cumulative") is True
    return Argument(_text(model, "name"), _text(model, "help"), required=_needed(model), many=many)


def _needed(model: Mapping[str, object]) -> bool:
    """What the environment may say is the program's own matter."""
    variable = _text(model, "envar")
    return model.get("required") is True and not (variable and os.environ.get(variable))


def _default(model: Mapping[str, object], kind: Kind) -> str:
    """Shown on the help page alone: the program has it itself."""
    values = _plain_list(model, "default")
    return str(values[0]) if values and kind is Kind.TEXT else ""


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError("it is no description of commands")
    return value


def _text(model: Mapping[str, object], key: str) -> str:
    value = model.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"{key} is no text")
    return value


def _plain_list(model: Mapping[str, object], key: str) -> list[object]:
    value = model.get(key) or []
    if not isinstance(value, list):
        raise ValueError(f"{key} is no list")
    return value


def _list(model: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    return [_mapping(one) for one in _plain_list(model, key)]
