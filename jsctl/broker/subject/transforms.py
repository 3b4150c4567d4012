"""Subject mapping: a pattern's wildcards put into a destination template.

The destination's tokens are literals, `$n`, or functions in double braces: `wildcard(n)`,
`partition(n[,t1,t2..])`, `split(t,delim)`, `splitFromLeft(t,i)`, `splitFromRight(t,i)`,
`sliceFromLeft(t,n)`, `sliceFromRight(t,n)`, `left(t,n)`, `right(t,n)`, `random(n)`. Token numbers
are 1-based ordinals of the source's wildcards. A source's `>` tail goes to a destination's `>`.
What is wrong with a mapping is said in the words of the real server.
"""

import re
from collections.abc import Callable
from itertools import count

from jsctl.broker.errors import ConfigError
from jsctl.broker.subject.matching import to_regex
from jsctl.broker.subject.validity import SUBJECT_BYTES_MAX, is_valid_subject
from jsctl.dataclass import dataclass

Part = Callable[[tuple[bytes, ...], bytes], bytes]
"""(values of the source's wildcards, whole subject) -> one destination token."""

_FUNCTION = re.compile(r"\{\{\s*(\w+)\s*\((.*)\)\s*\}\}\Z", re.S)
_SHORTEST_FUNCTION = 5
_DOLLAR = re.compile(r"\$([+-]?\d+)\Z")
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")
_LARGEST = 2**31 - 1
_DIGITS_MAX = 1000
"""The interpreter does not convert any number of them."""
_WORD_END = 1 << 32
_SPACES = re.compile(r"[\t\n\f\r ]")


def fnv1a32(data: bytes) -> int:
    """The 32-bit FNV-1a hash, which partitions and route pools are chosen by."""
    value = 0x811C9DC5
    for byte in data:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


@dataclass(frozen=True, slots=True)
class Transform:
    """One prepared mapping; make it with `compile_transform`."""

    source: bytes
    destination: bytes
    _regex: re.Pattern[bytes]
    _parts: tuple[Part, ...]

    def apply(self, subject: bytes) -> bytes | None:
        """The mapped subject; None when `source` does not match, or it would be too long."""
        found = self._regex.fullmatch(subject)
        if found is None:
            return None
        values = found.groups()
        mapped = b".".join([part(values, subject) for part in self._parts])
        return mapped if len(mapped) <= SUBJECT_BYTES_MAX else None


def compile_transform(source: bytes, destination: bytes) -> Transform:
    """Prepare a mapping; an empty source is `>`, an empty destination leaves subjects as is.

    Raises ConfigError with what is wrong with source or destination.
    """
    source = source or b">"
    if not destination:
        destination = b">" if source.endswith(b">") else source
        tokens = []
    else:
        tokens = destination.decode("utf-8", "replace").split(".")
        _check_destination(tokens)
    pieces = source.split(b".")
    tail = pieces[-1] == b">"
    if not is_valid_subject(source) or "*" in tokens or (tokens and tail != (tokens[-1] == ">")):
        raise ConfigError("invalid subject", remedy=f"got {source!r} and {destination!r}")
    ordinals = sum(piece == b"*" for piece in pieces)
    regex = rb"\.".join(
        b"(" + to_regex(piece) + b")"
        if piece == b"*" or (piece == b">" and i == len(pieces) - 1)
        else re.escape(piece)
        for i, piece in enumerate(pieces)
    )
    wild = bool(ordinals or tail)
    if tokens:
        parts = [_part(token, ordinals, wild) for token in (tokens[:-1] if tail else tokens)]
        if tail:
            parts.append(_pick(ordinals))
    else:
        parts = [lambda values, subject: subject]
    return Transform(source, destination, re.compile(regex), tuple(parts))


def _wrong(what: str, token: str = "") -> ConfigError:
    place = f" in {token}" if token else ""
    return ConfigError(f"invalid mapping destination: {what}{place}")


def _check_destination(tokens: list[str]) -> None:
    """What can be said of it without its source."""
    for at, token in enumerate(tokens):
        if not token or ">" in tokens[:at]:
            raise _wrong("invalid transform", token)
        if _looks_like_function(token):
            found = _FUNCTION.match(token)
            if found is None or _kind_of(found[1]) is None:
                raise _wrong("unknown function", token)
        elif _SPACES.search(token):
            raise _wrong("invalid transform")


def _looks_like_function(token: str) -> bool:
    is_long = len(token) >= _SHORTEST_FUNCTION
    return is_long and token.startswith("{{") and token.endswith("}}")


def _kind_of(word: str) -> str | None:
    """The function's name; the first letter of each of its words may be large or small."""
    for kind, spelled in _SPELLED.items():
        if spelled.fullmatch(word):
            return kind
    return None


def _part(token: str, ordinals: int, wild: bool) -> Part:
    dollar = _DOLLAR.match(token)
    if dollar is not None:
        return _pick(_ordinal(dollar[1], ordinals, token, wild))
    function = _FUNCTION.match(token) if _looks_like_function(token) else None
    if function is None:
        return _literal(token.encode())
    kind = _kind_of(function[1])
    arguments = re.split(r",\s*", function[2])
    if kind == "partition":
        return _partition(arguments, ordinals, token, wild)
    if kind == "random":
        return _random(arguments, token)
    wanted = 1 if kind == "wildcard" else 2
    if len(arguments) < wanted or arguments == [""]:
        raise _wrong("not enough arguments passed to the function", token)
    if len(arguments) > wanted:
        raise _wrong("too many arguments passed to the function", token)
    position = _ordinal(arguments[0], ordinals, token, wild)
    if kind == "wildcard":
        return _pick(position)
    if kind == "split":
        return _split(position, arguments[1], token)
    assert kind is not None
    return _sized(position, _number(arguments[1], token), _FUNCTIONS[kind])


def _number(text: str, token: str) -> int:
    text = text.strip(" ")
    fits = len(text) <= _DIGITS_MAX and _NUMBER.fullmatch(text) is not None
    if not fits or int(text) > _LARGEST:
        raise _wrong("function argument is invalid or in the wrong format", token)
    return int(text)


def _ordinal(text: str, ordinals: int, token: str, wild: bool) -> int:
    number = _number(text, token)
    if not 1 <= number <= ordinals:
        where = f"{token}: [{number}]" if wild else token
        raise _wrong("wildcard index out of range", where)
    return number - 1


def _pick(position: int) -> Part:
    return lambda values, subject: values[position]


def _literal(token: bytes) -> Part:
    return lambda values, subject: token


def _partition(arguments: list[str], ordinals: int, token: str, wild: bool) -> Part:
    # A negative number is one of 32 bits without a sign; no partitions: all go to the first.
    parts = _number(arguments[0], token) % _WORD_END or 1
    positions = [_ordinal(one, ordinals, token, wild) for one in arguments[1:]]

    def part(values: tuple[bytes, ...], subject: bytes) -> bytes:
        key = b"".join([values[one] for one in positions]) if positions else subject
        return b"%d" % (fnv1a32(key) % parts)

    return part


def _random(arguments: list[str], token: str) -> Part:
    """Evenly spread, and the same row of numbers every time: chance is for the edge."""
    if len(arguments) != 1:
        raise _wrong("not enough arguments passed to the function", token)
    most = abs(_number(arguments[0], token)) or 1
    numbers = count(1)

    def part(values: tuple[bytes, ...], subject: bytes) -> bytes:
        return b"%d" % (fnv1a32(b"%d" % next(numbers)) % most)

    return part


def _split(position: int, text: str, token: str) -> Part:
    delimiter = text.encode()
    if not delimiter or " " in text:
        raise _wrong("function argument is invalid or in the wrong format", token)

    def part(values: tuple[bytes, ...], subject: bytes) -> bytes:
        return b".".join([one for one in values[position].split(delimiter) if one])

    return part


def _sized(position: int, size: int, cut: Callable[[bytes, int], bytes]) -> Part:
    def part(values: tuple[bytes, ...], subject: bytes) -> bytes:
        value = values[position]
        return cut(value, size) if 0 < size < len(value) else value

    return part


def _slices_from_left(value: bytes, size: int) -> bytes:
    return b".".join([value[at : at + size] for at in range(0, len(value), size)])


def _slices_from_right(value: bytes, size: int) -> bytes:
    first = len(value) % size
    head = [value[:first]] if first else []
    return b".".join(head + [value[at : at + size] for at in range(first, len(value), size)])


_FUNCTIONS: dict[str, Callable[[bytes, int], bytes]] = {
    "splitFromLeft": lambda value, size: value[:size] + b"." + value[size:],
    "splitFromRight": lambda value, size: value[:-size] + b"." + value[-size:],
    "sliceFromLeft": _slices_from_left,
    "sliceFromRight": _slices_from_right,
    "left": lambda value, size: value[:size],
    "right": lambda value, size: value[-size:],
}

_SPELLED = {
    kind: re.compile(
        re.sub("^[a-z]|[A-Z]", lambda one: f"[{one[0].lower()}{one[0].upper()}]", kind)
    )
    for kind in (*_FUNCTIONS, "split", "wildcard", "partition", "random")
}
