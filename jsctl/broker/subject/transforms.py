"""Subject mapping: a pattern's wildcards put into a destination template.

The destination's tokens are literals, `$n`, or functions in double braces: `wildcard(n)`,
`partition(n[,t1,t2..])`, `split(t,delim)`, `splitFromLeft(t,i)`, `splitFromRight(t,i)`,
`sliceFromLeft(t,n)`, `sliceFromRight(t,n)`, `left(t,n)`, `right(t,n)`, `random(n)`. Token numbers
are 1-based ordinals of the source's wildcards. A source's `>` tail goes to a destination's `>`, and
neither is without the other.
"""

import itertools
import re
from collections.abc import Callable

from jsctl.broker.errors import ConfigError
from jsctl.broker.subject.matching import to_regex
from jsctl.broker.subject.validity import SUBJECT_BYTES_MAX, is_valid_subject
from jsctl.dataclass import dataclass

Part = Callable[[tuple[bytes, ...], bytes], bytes]
"""(values of the source's wildcards, whole subject) -> one destination token."""

_FUNCTION = re.compile(r"\{\{\s*(\w+)\s*\((.*)\)\s*\}\}\Z", re.S)
_DOLLAR = re.compile(r"\$(\d+)\Z")
_TOKENS = re.compile(rb"(?:\{\{.*?\}\}|[^.])+", re.S)


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
    destination = destination or b">"
    if not is_valid_subject(source):
        raise ConfigError("invalid mapping source", remedy=f"got {source!r}")
    pieces = source.split(b".")
    tail = pieces[-1] == b">"
    ordinals = sum(piece == b"*" for piece in pieces)
    regex = rb"\.".join(
        b"(" + to_regex(piece) + b")"
        if piece == b"*" or (piece == b">" and i == len(pieces) - 1)
        else re.escape(piece)
        for i, piece in enumerate(pieces)
    )
    names: list[bytes] = _TOKENS.findall(destination)
    if b".".join(names) != destination:
        raise ConfigError("invalid mapping destination", remedy=f"got {destination!r}")
    last_is_tail = bool(names) and names[-1] == b">"
    if last_is_tail != tail:
        where = "source" if last_is_tail else "destination"
        raise ConfigError("invalid mapping destination", remedy=f"`>` needs a {where} with `>`")
    heads = names[:-1] if last_is_tail else names
    parts = [_part(name.decode(), ordinals) for name in heads]
    if last_is_tail:
        parts.append(_pick(ordinals))
    return Transform(source, destination, re.compile(regex), tuple(parts))


def _part(name: str, ordinals: int) -> Part:
    dollar = _DOLLAR.match(name)
    if dollar is not None:
        return _pick(_ordinal(dollar[1], ordinals, name))
    function = _FUNCTION.match(name)
    if function is None:
        if "{{" in name or name in ("*", ">"):
            raise ConfigError("invalid mapping destination", remedy=f"token {name!r}")
        return _literal(name.encode())
    kind = function[1].lower()
    arguments = [one.strip() for one in function[2].split(",")]
    if kind == "partition":
        return _partition(arguments, ordinals, name)
    if kind == "random":
        return _spread(arguments, name)
    if kind == "wildcard" and len(arguments) == 1:
        return _pick(_ordinal(arguments[0], ordinals, name))
    if kind not in _FUNCTIONS:
        raise ConfigError("unknown mapping destination function", remedy=f"got {name!r}")
    if len(arguments) != 2:
        raise ConfigError("wrong number of mapping arguments", remedy=f"got {name!r}")
    position = _ordinal(arguments[0], ordinals, name)
    if kind == "split":
        return _split(position, arguments[1].encode())
    return _sized(position, _number(arguments[1]), _FUNCTIONS[kind])


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ConfigError("mapping argument must be a number", remedy=f"got {text!r}")
    return int(text)


def _ordinal(text: str, ordinals: int, token: str) -> int:
    number = _number(text)
    if not 1 <= number <= ordinals:
        where = f"{token}: [{number}]" if ordinals else token
        raise ConfigError(f"invalid mapping destination: wildcard index out of range in {where}")
    return number - 1


def _pick(position: int) -> Part:
    return lambda values, subject: values[position]


def _literal(token: bytes) -> Part:
    return lambda values, subject: token


def _partition(arguments: list[str], ordinals: int, token: str) -> Part:
    count = _number(arguments[0]) or 1  # no partitions: all go to the first
    positions = [_ordinal(one, ordinals, token) for one in arguments[1:]]

    def part(values: tuple[bytes, ...], subject: bytes) -> bytes:
        key = b"".join([values[one] for one in positions]) if positions else subject
        return b"%d" % (fnv1a32(key) % count)

    return part


def _spread(arguments: list[str], token: str) -> Part:
    """One of so many numbers, each as often as another: what a message gets is never asked again.

    They follow from how many there were, so that the same turns give the same numbers.
    """
    if len(arguments) != 1:
        raise ConfigError("wrong number of mapping arguments", remedy=f"got {token!r}")
    count, numbers = _number(arguments[0]) or 1, itertools.count()
    return lambda values, subject: b"%d" % (fnv1a32(b"%d" % next(numbers)) % count)


def _split(position: int, delimiter: bytes) -> Part:
    if not delimiter or b"." in delimiter or b" " in delimiter:
        raise ConfigError("invalid mapping split delimiter", remedy=f"got {delimiter!r}")

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
    "split": lambda value, size: value,
    "splitfromleft": lambda value, size: value[:size] + b"." + value[size:],
    "splitfromright": lambda value, size: value[:-size] + b"." + value[-size:],
    "slicefromleft": _slices_from_left,
    "slicefromright": _slices_from_right,
    "left": lambda value, size: value[:size],
    "right": lambda value, size: value[-size:],
}
