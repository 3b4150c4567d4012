"""YAML with a place for every value, so that an error can name file, line and key.

Reads by tables of `Key`: what may stand in a section, of which kind, with which default. All
problems of a document are collected, so that one look mends them all.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

import yaml

from jsctl.api.times import parse_duration
from jsctl.errors import UsageError

Value = str | int | bool | tuple[str, ...] | dict[str, str]
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)I?B?", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_WORDS_OF_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Kind(Enum):
    """How the text of a value is read."""

    TEXT = "text"
    WORDS = "a list of texts"
    COUNT = "a whole number"
    SIZE = "a size such as 64MB"
    DURATION = "a duration such as 10s"
    FLAG = "true or false"
    MAP = "keys with texts"


@dataclass(frozen=True, slots=True)
class Key:
    """A row of a section's table. Durations become nanoseconds, sizes bytes.

    `check` gives what is wrong with a value, or nothing.
    """

    name: str
    kind: Kind
    help: str
    default: Value = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    check: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: `line` counts from 1."""

    line: int
    key: str
    text: str


class BadDocument(UsageError):
    """A document with problems; the message has a line for each of them."""

    def __init__(self, path: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda one: one.line))
        lines = [
            f"{path}:{one.line}: {one.key + ': ' if one.key else ''}{one.text}"
            for one in self.problems
        ]
        super().__init__("\n".join(lines), hints=("jsctl pipeline init prints a working file",))


class Document:
    """A mapping at the top of a YAML file, read section by section."""

    def __init__(self, text: str, path: str, environ: Mapping[str, str] | None = None) -> None:
        """Raises BadDocument when the text is not YAML or not a mapping."""
        self.path = path
        self.problems: list[Problem] = []
        self.lines: dict[str, int] = {}
        self._environ = os.environ if environ is None else environ
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            line = mark.line + 1 if mark else 1
            raise BadDocument(path, [Problem(line, "", f"not YAML: {error.problem}")]) from None
        except yaml.YAMLError as error:
            raise BadDocument(path, [Problem(1, "", f"not YAML: {error}")]) from None
        if not isinstance(root, yaml.MappingNode):
            raise BadDocument(path, [Problem(1, "", "expected keys with values at the top")])
        self._top = self._children("", root)

    def sections(self, known: Sequence[str]) -> None:
        """Notes a problem for every top-level key that is not one of `known`."""
        for name in self._top:
            if name not in known:
                self.problem(name, unknown(name, known))

    def problem(self, key: str, text: str) -> None:
        """Notes what is wrong with a key, once; its line is looked up, or that of its parent."""
        if any(one.key == key for one in self.problems):
            return
        place = key
        while place and place not in self.lines:
            place = place.rpartition(".")[0]
        self.problems.append(Problem(self.lines.get(place, 1), key, text))

    def finish(self) -> None:
        """Raises BadDocument if anything was noted."""
        if self.problems:
            raise BadDocument(self.path, self.problems)

    def has(self, section: str) -> bool:
        """Whether a top-level key is there."""
        return section in self._top

    def scalar(self, key: Key) -> Value:
        """A value at the top."""
        return self._value(key, key.name, self._top.get(key.name))

    def text_of(self, section: str) -> str | None:
        """A section that was written as one word, such as `trigger: once`."""
        node = self._top.get(section)
        return str(node.value) if isinstance(node, yaml.ScalarNode) else None

    def section(self, name: str, keys: Sequence[Key]) -> dict[str, Value]:
        """Values of a section by key, defaults where nothing stands."""
        node = self._top.get(name)
        found: dict[str, yaml.Node] = {}
        if isinstance(node, yaml.MappingNode):
            found = self._children(name, node)
        elif node is not None and not _empty(node):
            self.problem(name, f"expected keys: {', '.join(key.name for key in keys)}")
        known = [key.name for key in keys]
        for given in found:
            if given not in known:
                self.problem(f"{name}.{given}", unknown(given, known))
        return {
            key.name: self._value(key, f"{name}.{key.name}", found.get(key.name)) for key in keys
        }

    def _children(self, path: str, node: yaml.MappingNode) -> dict[str, yaml.Node]:
        found: dict[str, yaml.Node] = {}
        for name_node, child in node.value:
            name = str(name_node.value)
            place = f"{path}.{name}" if path else name
            before = self.lines.get(place, 0)
            self.lines[place] = name_node.start_mark.line + 1
            if name in found:
                self.problem(place, f"stands twice, first on line {before}")
            found[name] = child
        return found

    def _value(self, key: Key, place: str, node: yaml.Node | None) -> Value:
        if node is None or _empty(node):
            if key.required:
                self.problem(place, f"is missing: {key.help}")
            return key.default
        try:
            value = self._read(key, node)
        except ValueError as error:
            self.problem(place, str(error))
            return key.default
        wrong = self._wrong(key, value)
        if wrong:
            self.problem(place, wrong)
            return key.default
        return value

    def _read(self, key: Key, node: yaml.Node) -> Value:
        if key.kind is Kind.MAP:
            return self._mapping(node)
        if key.kind is Kind.WORDS:
            nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
            return tuple(self._scalar(one, Kind.TEXT) for one in nodes)
        return _CONVERT.get(key.kind, str)(self._scalar(node, key.kind))

    def _mapping(self, node: yaml.Node) -> dict[str, str]:
        if not isinstance(node, yaml.MappingNode):
            raise ValueError("expected keys with texts")
        return {str(name.value): self._scalar(value, Kind.TEXT) for name, value in node.value}

    def _scalar(self, node: yaml.Node, kind: Kind) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise ValueError(f"expected {kind.value}, got {_shape(node)}")
        return _VARIABLE.sub(self._variable, str(node.value))

    def _variable(self, match: re.Match[str]) -> str:
        name = match[1]
        if name not in self._environ:
            raise ValueError(f"the environment has no variable {name}")
        return self._environ[name]

    @staticmethod
    def _wrong(key: Key, value: Value) -> str:
        if key.choices and value not in key.choices:
            near = get_close_matches(str(value), key.choices, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            return f"'{value}' is none of {', '.join(key.choices)}{hint}"
        if key.check is not None:
            for one in value if isinstance(value, tuple) else (value,):
                wrong = key.check(str(one))
                if wrong:
                    return wrong
        return ""


def unknown(name: str, known: Sequence[str]) -> str:
    """What to say about a key that is none of `known`."""
    near = get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"unknown key; {hint}known are {', '.join(known)}"


def parse_size(text: str) -> int:
    """Bytes of `512`, `64MB`, `2 GiB`, all 1024-based; raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a size such as 64MB")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def _duration(text: str) -> int:
    try:
        duration_ns = parse_duration(text)
    except ValueError:
        raise ValueError(f"'{text}' is not a duration such as 10s or 5m") from None
    if duration_ns <= 0:
        raise ValueError(f"'{text}' must be longer than nothing")
    return duration_ns


def _count(text: str) -> int:
    try:
        value = int(text.replace("_", ""))
    except ValueError:
        raise ValueError(f"'{text}' is not a whole number") from None
    if value < 0:
        raise ValueError(f"{value} is below zero")
    return value


def _flag(text: str) -> bool:
    try:
        return _WORDS_OF_TRUTH[text.lower()]
    except KeyError:
        raise ValueError(f"'{text}' is neither true nor false") from None


_CONVERT: Mapping[Kind, Callable[[str], Value]] = {
    Kind.TEXT: str,
    Kind.COUNT: _count,
    Kind.SIZE: parse_size,
    Kind.DURATION: _duration,
    Kind.FLAG: _flag,
}


def _empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")


def _shape(node: yaml.Node) -> str:
    return "a list" if isinstance(node, yaml.SequenceNode) else "keys with values"
