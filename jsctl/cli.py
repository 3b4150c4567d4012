"""Command line entry point: finds the command, parses, runs it, turns errors into exit codes.

Theory of operation: global flags are picked out of the words wherever they stand, the rest is
walked through the registry to a leaf, and only the leaf's module is imported. Help needs no
parser at all. Commands raise; this is the one place that prints errors and decides exit codes.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from jsctl import __version__
from jsctl.api.errors import ApiError
from jsctl.commands import DELEGATED, REGISTRY, Entry
from jsctl.commands.toolkit.grammar.help_words import HELP_WORDS, asks_help
from jsctl.commands.toolkit.grammar.spec import Command, Group, Option, options_of
from jsctl.errors import (
    JsctlError,
    NotFound,
    RequestFailed,
    UsageError,
    exit_code_of,
    sentence_of,
)
from jsctl.settings import GLOBAL_FLAGS, GlobalFlag, Settings, load

PROGRAM = "jsctl"
FORMATS = next(flag for flag in GLOBAL_FLAGS if flag.name == "render").choices
INTERRUPTED = 130
HINTS_MAX = 3
_FLAGS = {name: flag for flag in GLOBAL_FLAGS for name in (flag.name, *flag.aliases)}
_SHORT = {flag.short: flag for flag in GLOBAL_FLAGS if flag.short}
_EXISTING = frozenset({"cert", "key", "ca"})
"""Of global flags: those that name files which are not made by anybody."""
_MANUAL_WORD, _LONG_WORD = "--help-man", "--help-long"
_SCRIPT_WORD = "--completion-script-"
"""As `nats` calls it, followed by the shell."""


class Found(NamedTuple):
    """Where a walk ended: the node, the way to it, options of its parents, words left.

    A tuple, as the registry's rows are, for the sake of the start.
    """

    node: Command | Group
    path: tuple[str, ...]
    inherited: tuple[Option, ...]
    words: tuple[str, ...]


Hints = Callable[[Sequence[str]], tuple[str, ...]]
"""What a command line may have meant, for one that names something that is not there."""


def main(
    arguments: Sequence[str] | None = None,
    hints: Hints = lambda _words: (),
    begin: Callable[[], None] = lambda: None,
) -> int:
    """Run one command line; the exit status is returned.

    `begin` is called once, before the command that was found and loaded.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and (raw := _raw_entry(words[0])) is not None:
        return _run_raw(raw, words[1:], begin)
    flags, given = dict[str, str](), tuple(words)
    try:
        flags, words = _hoisted(words)
        return _dispatch(flags, words, begin)
    except ApiError as error:
        failure = RequestFailed(error, prefix=getattr(error, "about", ""))
        return _failed(_hinted(failure, given, hints), flags)
    except JsctlError as error:
        return _failed(_hinted(error, given, hints), flags)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except ValueError as error:
        return _failed(_unreadable(error, given), flags)
    except OSError as error:  # of a file or a terminal: those of connections are other errors
        return _unwritten(error, flags)


def _hoisted(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """As `hoist`, of words with those of `@file` in their place; errors come with their page."""
    if any(word.startswith("@") for word in words):
        from jsctl.commands.toolkit.grammar.files import NoFile, expanded

        try:
            words = expanded(words)
        except NoFile as error:
            raise _of_flag(list(error.before), error) from None
    rest: list[str] = []
    try:
        return hoist(words, rest)
    except UsageError as error:
        named = [*takewhile(lambda word: not word.startswith("-"), rest)]
        raise _paged(error, walk(named)) from None


def _of_flag(words: list[str], error: UsageError) -> UsageError:
    """The error instead of that of a file, where a flag before it is none or needs a value."""
    from jsctl.commands.toolkit.grammar.parser import parse

    found = walk(_hoisted(words)[1])
    try:
        if isinstance(found.node, Command):
            parse(found.node, found.inherited, found.words)
    except UsageError as wrong:
        if str(wrong).endswith(f"flag '{words[-1]}'"):
            return _WithHelp(str(wrong), help_of(found, full=False), hints=error.hints)
    return error


def hoist(words: Sequence[str], rest: list[str] | None = None) -> tuple[dict[str, str], list[str]]:
    """Global flags by their key, and the words without them; nothing behind `--` is touched.

    `rest` gets these words up to one that is wrong. Raises UsageError for a flag without its
    value, with one that it does not take, or given twice where that means nothing.
    """
    flags: dict[str, str] = {}
    rest = [] if rest is None else rest
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            rest += [word, *waiting]
            return flags, rest
        flag, value, negated = _global_flag(word, waiting)
        if flag is None:
            rest.append(word)
            continue
        if flag.metavar and value is None:
            if not waiting:
                raise UsageError(f"expected argument for flag '{word}'", show_help=True)
            value = waiting.pop(0)
        if not flag.metavar and value is not None:
            raise UsageError(f"unexpected argument {value}", show_help=True)
        _check_global(flag, value)
        text = value if value is not None else "false" if negated else "true"
        if flag.key in flags:
            if flag.key != "monitor":
                raise UsageError(f"flag '{flag.name}' cannot be repeated", show_help=True)
            text = f"{flags['monitor']},{text}"
        flags[flag.key] = text
    return flags, rest


def _check_global(flag: GlobalFlag, value: str | None) -> None:
    """Raises UsageError for a value that can be none of the flag."""
    if flag.choices and value not in flag.choices:
        raise UsageError(f"enum value must be one of {','.join(flag.choices)}, got '{value}'")
    if flag.key in _EXISTING and value and not (place := Path(value)).is_file():
        told = f"'{value}' is a directory" if place.is_dir() else f"path '{value}' does not exist"
        raise UsageError(told)
    if flag.key == "timeout" and not value:
        raise UsageError("--timeout: expected a duration, got ''")


def _global_flag(word: str, waiting: list[str]) -> tuple[GlobalFlag | None, str | None, bool]:
    """The global flag that a word is, a value in the same word, and whether it is negated."""
    if word in ("-o", "--output") and waiting and waiting[0] in FORMATS:
        return _FLAGS["render"], None, False
    if not word.startswith("--"):
        flag = _SHORT.get(word[1:2]) if word.startswith("-") and len(word) > 1 else None
        if flag is None or len(word) == 2:
            return flag, None, False
        return flag, word[2:], False
    name, equals, value = word[2:].partition("=")
    if name == "output" and value in FORMATS:
        return _FLAGS["render"], value, False
    given = value if equals else None
    flag = _FLAGS.get(name)
    if flag is None and name.startswith("no-"):
        flag = _FLAGS.get(name[3:])
        return (flag, given, True) if flag is not None and flag.negative else (None, None, False)
    return flag, given, False


def walk(words: Sequence[str]) -> Found:
    """Down the tree to the command that the words name.

    Raises UsageError for a word that names nothing.
    """
    node: Command | Group = root()
    path: tuple[str, ...] = (PROGRAM,)
    inherited: tuple[Option, ...] = ()
    waiting, carried, plain = list(words), list[str](), list[str]()
    while isinstance(node, Group) and waiting:
        word = waiting.pop(0)
        if word == "--" and not plain:  # what follows has no flags, and may name a command
            plain = [word]
            continue
        if not plain and word.startswith("-") and word not in (*HELP_WORDS, "-"):
            carried += _carried(word, Found(node, path, inherited, ()), waiting)
            continue
        if not plain and word in HELP_WORDS:
            carried.append(word)
            continue
        child = node.find(word) or (_plugin(word) if node.name == PROGRAM else None)
        if child is None:
            raise _unknown(word, Found(node, path, inherited, ()))
        known = {one.name for one in inherited}
        inherited += tuple(one for one in node.options if one.name not in known)
        node, path = _loaded(child, path), (*path, child.name)
    return Found(node, path, inherited, (*carried, *plain, *waiting))


def _carried(word: str, found: Found, waiting: list[str]) -> list[str]:
    """A flag before its command, with its value; errors come with the page of the group."""
    from jsctl.commands.toolkit.grammar.carrying import carried

    try:
        return carried(word, (*found.inherited, *_options_in(found.node)), waiting)
    except UsageError as error:
        raise _WithHelp(str(error), help_of(found, full=False)) from None


def _options_in(node: "Command | Group") -> tuple[Option, ...]:
    return node.options if isinstance(node, Group) else ()


def root() -> Group:
    """The top of the tree; its commands are stubs until one is chosen."""
    stubs = tuple(
        Group(row.name, row.help, aliases=row.aliases, hidden=row.hidden) for row in REGISTRY
    )
    text = "NATS JetStream administration, and a JetStream server of its own."
    return Group(PROGRAM, text, stubs)


def _plugin(word: str) -> "Command | Group | None":
    from jsctl.commands.plugins.stored import plugin_named

    return plugin_named(word, os.environ)


def _loaded(child: Command | Group, path: tuple[str, ...]) -> Command | Group:
    if len(path) > 1:
        return child
    row = next((row for row in REGISTRY if row.name == child.name), None)
    if row is None:
        return child  # of a plugin, which is whole
    loaded = _import(row)
    if not isinstance(loaded, Command | Group):
        raise UsageError(f"{row.name} takes no global flags in front of it")
    return replace(loaded, aliases=row.aliases)


def _import(row: Entry) -> object:
    try:
        return getattr(import_module(row.module), row.attribute)
    except ModuleNotFoundError as error:
        if error.name != row.module:
            raise
        raise JsctlError(f"this installation has no {row.name} commands") from None


def _raw_entry(word: str) -> Entry | None:
    found = (row for row in REGISTRY if row.attribute == "main" and row.name == word)
    return next(found, None)


def _run_raw(row: Entry, words: list[str], begin: Callable[[], None]) -> int:
    run = _import(row)
    assert callable(run)
    begin()
    return int(run(words))


def _dispatch(flags: dict[str, str], words: list[str], begin: Callable[[], None]) -> int:
    before, _, _ = " ".join(words).partition(" -- ")
    if "--version" in before.split(" "):
        print(__version__)
        return 0
    if words[:1] and words[0].startswith(_SCRIPT_WORD):
        words = ["completion", words[0].removeprefix(_SCRIPT_WORD)]
    if words[:1] == ["help"]:
        words = _help_words(words[1:])
    if _LONG_WORD in before.split(" "):
        print("\n\n".join(_pages(walk([]))))
        return 0
    if _MANUAL_WORD in before.split(" "):
        print(_manual_of(walk([word for word in words if word != _MANUAL_WORD])), end="")
        return 0
    found = walk(words)
    if asks_help(found.words, found.node, found.inherited):
        print(help_of(found))
        return 0
    if isinstance(found.node, Group):
        if len(found.path) == 1:
            print(help_of(found))
            return 0
        raise _incomplete(found)
    return _run(found, found.node, flags, begin)


def _help_words(words: list[str]) -> list[str]:
    """Of `help COMMAND`. Raises UsageError for what is no command."""
    try:
        walk(words)
    except UsageError as error:
        what = str(error).partition(", use --help")[0]
        raise UsageError(what, hints=error.hints) from None
    return [*words, "--help"]


def _pages(found: Found) -> Iterator[str]:
    """The help of what a walk found, and of all commands below it."""
    yield help_of(found, full=not found.path[1:]).rstrip()
    if isinstance(found.node, Group):
        for one in found.node.commands:
            row = next((row for row in REGISTRY if (row.name,) == (one.name,)), None)
            if not one.hidden and (found.path[1:] or row is None or row.attribute != "main"):
                yield from _pages(walk([*found.path[1:], one.name]))


def _manual_of(found: Found) -> str:
    """The manual page of what a walk found; of a group also those of its commands."""
    from jsctl.commands.toolkit.grammar.manual import manual

    pages = [manual(found.path, found.node, found.inherited)]
    if isinstance(found.node, Group) and len(found.path) > 1:
        for one in found.node.commands:
            inner = walk([*found.path[1:], one.name])
            pages.append(_manual_of(inner))
    return "".join(pages)


def help_of(found: Found, *, full: bool = True) -> str:
    """The help page of what a walk found."""
    from jsctl.commands.toolkit.grammar.help import command_help, group_help

    if isinstance(found.node, Group):
        node = found.node if found.path[1:] else _with_plugins(found.node)
        return group_help(found.path, node, full=full)
    return command_help(found.path, found.node, full=full)


def _with_plugins(top: Group) -> Group:
    """With the commands of other programs; one whose file is broken is told about and left out."""
    from jsctl.commands.plugins.stored import plugin_names

    found: list[Command | Group] = []
    for name in plugin_names(os.environ):
        try:
            child = top.find(name) is None and _plugin(name)
        except JsctlError as error:
            print(f"{PROGRAM}: {error}", file=sys.stderr)
            continue
        found += [child] if child else []
    return replace(top, commands=(*top.commands, *found)) if found else top


class _WithHelp(UsageError):
    """Carries the page that belongs to the error."""

    def __init__(self, message: str, page: str, *, hints: tuple[str, ...] = ()) -> None:
        self.page = page
        super().__init__(message, hints=hints, show_help=True)


def _unknown(word: str, found: Found) -> UsageError:
    from difflib import get_close_matches

    assert isinstance(found.node, Group)
    names = [name for one in found.node.commands for name in (one.name, *one.aliases)]
    near = get_close_matches(word, names, 3)
    said = word.removeprefix("-")  # Only a lone dash begins so here.
    text = (
        f'expected command but got "{said}", use --help for full help including flags and arguments'
    )
    hints = (f"did you mean {', '.join(near)}?",) if near else ()
    return _WithHelp(text, help_of(found, full=False), hints=hints)


def _incomplete(found: Found) -> UsageError:
    text = (
        "a subcommand from the list below is required, "
        "use --help for full help including flags and arguments"
    )
    return _WithHelp(text, help_of(found, full=False))


def _run(found: Found, command: Command, flags: dict[str, str], begin: Callable[[], None]) -> int:
    from jsctl.commands.toolkit.grammar.parser import parse

    try:
        values = parse(command, found.inherited, found.words)
    except UsageError as error:
        raise _paged(error, found) from None
    if command.run == DELEGATED:
        from jsctl.commands.plugins.stored import delegate

        begin()
        delegate(found.path[1:], found.words, flags, os.environ)
        return 0
    from jsctl.commands.toolkit.invocation.call import Call, function_of
    from jsctl.commands.toolkit.invocation.finishing import prepared
    from jsctl.commands.toolkit.invocation.output import make_output
    from jsctl.commands.toolkit.invocation.prompts import Prompts

    for flag in GLOBAL_FLAGS:
        if flag.key not in flags and flag.env and os.environ.get(flag.env):
            _check_global(flag, os.environ[flag.env])
    settings: Settings = load(flags, os.environ)
    output = make_output(settings.render, settings.connection.color_scheme, os.environ)
    prompts = Prompts(settings.context_name, forbidden=bool(os.environ.get("JSCTL_NO_PROMPT")))
    defaults = {
        one.key or one.name: one.default for one in (*options_of(command), *found.inherited)
    }
    defaults.update({one.name: one.default for one in command.arguments})
    call = Call(values, defaults, settings, output, prompts)
    run = prepared(function_of(command), call)
    begin()
    try:
        result = run()
    except UsageError as error:
        raise _paged(error, found) from None
    return result or 0


def _paged(error: UsageError, found: Found) -> UsageError:
    """With the command's page, if the error is one of those that come with it."""
    if not error.show_help:
        return error
    return _WithHelp(str(error), help_of(found, full=False), hints=error.hints)


def _as_document(flags: dict[str, str]) -> bool:
    """Whether errors are for programs: with a format for them, and not with a mere `-j`."""
    form = flags.get("render") or os.environ.get("JSCTL_FORMAT", "")
    return form in ("json", "jsonl", "yaml")


def _hinted(error: JsctlError, words: Sequence[str], hints: Hints) -> JsctlError:
    """With a hint about names, if there is none yet."""
    if error.kind == NotFound.kind and not error.hints:
        error.hints = hints(words)
    return error


def _unreadable(error: ValueError, given: Sequence[str]) -> JsctlError:
    """An answer that is none, or a word that is no text where one is needed; what was in files is
    told before. Raises any other error."""
    from jsctl.api.strict import DecodeError

    if isinstance(error, UnicodeEncodeError):
        lost = error.object[error.start]
        word = next((word for word in given if lost in word), error.object)
        raw = word.encode(errors="surrogateescape")
        return UsageError(f"{raw.decode(errors='backslashreplace')} is not UTF-8")
    if not isinstance(error, DecodeError):
        raise error
    return JsctlError(f"the server's answer cannot be read: {error}")


def _unwritten(error: OSError, flags: dict[str, str]) -> int:
    """A file that cannot be opened or written. What stdout did not take is given up: it would fail
    again at the end of the process."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        error.filename = error.filename or "/dev/stdout"
    return _failed(JsctlError(sentence_of(error)), flags)


def _failed(error: JsctlError, flags: dict[str, str]) -> int:
    sys.stdout.flush()
    if _as_document(flags):
        from jsctl.render.formats import as_json_line

        document: dict[str, object] = {"code": error.code} if error.code else {}
        document |= {"class": error.kind, "message": str(error), "hint": " ".join(error.hints)}
        print(as_json_line({"error": document}), file=sys.stderr)
        return exit_code_of(error, os.environ)
    from jsctl.render.table import readable  # what servers say, and names, may be anything

    if isinstance(error, _WithHelp):
        print(f"error: {readable(str(error))}\n", file=sys.stderr)
        print(error.page)
    else:
        print(f"{PROGRAM}: error: {readable(str(error))}", file=sys.stderr)
    for hint in error.hints[:HINTS_MAX]:
        print(f"  {readable(hint)}", file=sys.stderr)
    return exit_code_of(error, os.environ)
