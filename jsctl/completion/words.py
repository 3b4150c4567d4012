"""Where on a command line a word stands, and so what it may be."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jsctl.cli import FORMATS, Found, walk
from jsctl.commands.toolkit.grammar.spec import (
    Argument,
    Command,
    Group,
    Kind,
    Option,
    options_of,
)
from jsctl.errors import JsctlError
from jsctl.settings import GLOBAL_FLAGS, GlobalFlag

Candidate = tuple[str, str]
_GLOBALS = {f"--{name}": flag for flag in GLOBAL_FLAGS for name in (flag.name, *flag.aliases)}
_GLOBALS.update({f"-{flag.short}": flag for flag in GLOBAL_FLAGS if flag.short})
_BY_NAME = {
    "stream": "stream",
    "dlq": "stream",
    "consumer": "consumer",
    "bucket": "bucket",
    "key": "key",
    "subject": "subject",
    "subjects": "subject",
    "filter": "subject",
    "filter-subject": "subject",
    "peer": "server",
    "server": "server",
    "server-name": "server",
    "leader": "server",
    "preferred": "server",
    "host": "server",
    "account": "account",
    "filter-account": "account",
    "context": "context",
    "cluster": "cluster",
}
"""Names of arguments and options whose values servers know."""
_BY_PLACE = {
    ("stream copy", "source"): "stream",
    ("stream copy", "to"): "context",
    ("consumer copy", "source"): "consumer",
    ("server cluster peer-remove", "name"): "server",
    ("server check server", "name"): "server",
    ("server account purge", "account"): "account",
    ("object get", "file"): "object",
    ("object del", "file"): "object",
    ("object info", "file"): "object",
}
_NEW = {("stream add", "stream"), ("consumer add", "consumer"), ("kv add", "bucket")}
"""Names of what is to be made; and so nobody knows them."""


class Answer(NamedTuple):
    """Values with their help; `paths` is `file`, `dir` or empty."""

    candidates: tuple[Candidate, ...] = ()
    paths: str = ""


class _Place(NamedTuple):
    """What stands before the word: where the walk ended, values given, a flag that waits."""

    found: Found
    values: dict[str, str]
    flags: dict[str, str]
    waiting: "Option | GlobalFlag | None"
    positions: int


def complete(words: Sequence[str], environ: Mapping[str, str]) -> Answer:
    """Candidates for the last word."""
    word = words[-1] if words else ""
    place = _place(words[:-1])
    if words[-2:-1] in (["-o"], ["--output"]) and word in ("", *_starts(FORMATS)):
        return Answer(_starting([(one, "") for one in FORMATS], word))
    name, equals, value = word.partition("=")
    if word.startswith("--") and equals and place.waiting is None:
        flag = _flag(place.found, name)
        if flag is None:
            return Answer()
        answer = _values(place, flag, value, environ)
        found = tuple((f"{name}={one}", text) for one, text in answer.candidates)
        return Answer(found, answer.paths)
    if place.waiting is not None:
        return _values(place, place.waiting, word, environ)
    if word.startswith("-"):
        return Answer(_starting(_flag_names(place.found), word))
    node = place.found.node
    if isinstance(node, Group):
        names = [(one.name, one.help) for one in node.commands if not one.hidden]
        if len(place.found.path) == 1:
            names += _plugins(environ)
        return Answer(_starting(names, word))
    return _argument(place, node, word, environ)


def _plugins(environ: Mapping[str, str]) -> Iterator[Candidate]:
    """Commands of other programs; one whose file is broken is not offered."""
    from jsctl.commands.plugins.stored import plugin_named, plugin_names

    for name in plugin_names(environ):
        try:
            found = plugin_named(name, environ)
        except (JsctlError, OSError):
            continue
        if found is not None:
            yield name, found.help


def named_values(words: Sequence[str]) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Of a whole command line each word that names something: its kind, the word, what else is
    needed to ask for names of that kind. A `--context` is known, or told as an error of its own."""
    place = _place(words)
    for name, value in place.values.items():
        kind = _kind_of(place, name)
        if kind:
            yield kind, value, place.values


def flags_of(words: Sequence[str]) -> dict[str, str]:
    """The global flags of a command line, by their key."""
    return dict(_place(words).flags)


def _starts(names: Sequence[str]) -> set[str]:
    return {name[:end] for name in names for end in range(1, len(name) + 1)}


def _starting(candidates: Iterable[Candidate], word: str) -> tuple[Candidate, ...]:
    return tuple((value, text) for value, text in candidates if value.startswith(word))


def _place(words: Sequence[str]) -> _Place:
    """Reads the words before; what is wrong among them is passed over."""
    path: list[str] = []
    values: dict[str, str] = {}
    flags: dict[str, str] = {}
    positions = 0
    found = walk([])
    left = list(words)
    while left:
        word = left.pop(0)
        if word.startswith("-") and len(word) > 1:
            name, value = _split(word)
            flag = _flag(found, name)
            if flag is None or not _takes_value(flag):
                continue
            if value is None:
                if not left:
                    return _Place(found, values, flags, flag, positions)
                value = left.pop(0)
            if isinstance(flag, GlobalFlag):
                flags[flag.key] = value
            else:
                values[flag.name] = value
        elif isinstance(found.node, Group):
            try:
                found = walk([*path, word])
            except JsctlError:
                continue
            path.append(word)
        else:
            arguments = found.node.arguments
            if positions < len(arguments):
                values[arguments[positions].name] = word
            positions += 1
    return _Place(found, values, flags, None, positions)


def _split(word: str) -> tuple[str, str | None]:
    """A flag's name, and its value if it is in the same word: behind a letter as it stands."""
    if not word.startswith("--"):
        return word[:2], word[2:] or None
    name, equals, value = word.partition("=")
    return name, value if equals else None


def _options(found: Found) -> list[Option]:
    own = options_of(found.node) if isinstance(found.node, Command) else found.node.options
    return [*own, *found.inherited]


def _flag(found: Found, name: str) -> "Option | GlobalFlag | None":
    for option in _options(found):
        longs = (f"--{one}" for one in (option.name, *option.aliases))
        if name in longs or (option.short and name == f"-{option.short}"):
            return option
    return _GLOBALS.get(name)


def _takes_value(flag: "Option | GlobalFlag") -> bool:
    if isinstance(flag, GlobalFlag):
        return bool(flag.metavar)
    return flag.kind not in (Kind.FLAG, Kind.SWITCH)


def _flag_names(found: Found) -> list[Candidate]:
    names: list[Candidate] = []
    for option in _options(found):
        if not option.hidden:
            names.append((f"--{option.name}", option.help))
            if option.kind is Kind.SWITCH:
                names.append((f"--no-{option.name}", option.help))
    names += [(f"--{flag.name}", flag.help) for flag in GLOBAL_FLAGS]
    return [*names, ("--help", "Show context-sensitive help")]


def _values(
    place: _Place, flag: "Option | GlobalFlag", word: str, environ: Mapping[str, str]
) -> Answer:
    if flag.choices:
        return Answer(_starting([(one, "") for one in flag.choices], word))
    if isinstance(flag, GlobalFlag):
        if flag.metavar == "FILE":
            return Answer(paths="file")
        if flag.name == "render":
            return Answer(_starting([(one, "") for one in FORMATS], word))
        return _named("context", place, word, environ) if flag.name == "context" else Answer()
    if flag.kind in (Kind.FILE, Kind.INPUT, Kind.FOLDER) or flag.metavar == "FILE":
        return Answer(paths="file")
    return _named(_kind_of(place, flag.name), place, word, environ)


def _argument(place: _Place, node: Command, word: str, environ: Mapping[str, str]) -> Answer:
    arguments = node.arguments
    if not arguments or (place.positions >= len(arguments) and not arguments[-1].many):
        return Answer()
    argument: Argument = arguments[min(place.positions, len(arguments) - 1)]
    if argument.choices:
        return Answer(_starting([(one, "") for one in argument.choices], word))
    if argument.name in ("dir", "target", "directory"):
        return Answer(paths="dir")
    if argument.name in ("file", "config", "archive"):
        return Answer(paths="file")
    return _named(_kind_of(place, argument.name), place, word, environ)


def _kind_of(place: _Place, name: str) -> str:
    path = place.found.path[1:]
    where = (" ".join(path), name)
    if where in _NEW:
        return ""
    if path[:1] == ("context",) and name in ("name", "source") and path[1:] != ("add",):
        return "context"
    if path[:1] == ("object",) and name == "bucket":
        return "object-bucket"
    return _BY_PLACE.get(where) or _BY_NAME.get(name, "")


def _named(kind: str, place: _Place, word: str, environ: Mapping[str, str]) -> Answer:
    if not kind:
        return Answer()
    from jsctl.completion.names import known_names

    return Answer(_starting(known_names(kind, place.values, place.flags, environ), word))
