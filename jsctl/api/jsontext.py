"""JSON text from outside -> plain values: the one place where foreign bytes become a document;
and the way back.

Requests, CONNECT and INFO, frames of peers and what is kept on the disk all come through here,
so that nothing behind it meets what Python's parser lets pass and nothing can write down again:
half a surrogate pair, text that is not UTF-8, NaN, numbers without end, nesting without end.

Cost is linear in the size of the text. Of a name that is given twice the last one counts; who asks
for it (`parse_exactly`) is told of both, as Go looks at both, and of how numbers were written.
"""

import json
import math
import re
from collections.abc import Container, Iterator
from itertools import accumulate

from jsctl.api.strict import DecodeError, quoted

DEPTH_MAX = 128
"""Levels of arrays and objects. The real server reads 10,000; no document of the API has ten, and
each level of what is read costs the interpreter's stack wherever it is written again."""
TEXT_BYTES_MAX = 64 << 20
"""The largest payload that a server can be told to take."""
OWN_BYTES_MAX = 1 << 62
"""For what this server wrote itself."""
SHOWN_DIGITS_MAX = 40
LONG_DIGITS = 400
"""No type holds as many, and the interpreter converts them."""
_MINUS_ZERO = "-0"

_SPACES = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_HEX = "0123456789abcdefABCDEF"
_ESCAPE_LENGTH = len("\\u0000")
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_BEGUN = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.|(?:\.[0-9]+)?[eE][+-]?)?)?")
_NAMED = {"'": r"\'", "\n": r"\n", "\t": r"\t", "\r": r"\r", "\\": r"\\"}
_CONSTANTS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|-?(?:NaN|Infinity)', re.DOTALL)
"""Strings as a whole, so that nothing in them counts; possessive, so that it stays linear."""
_BRACKETS = b"[{]}"
_STEPS = bytes.maketrans(_BRACKETS, b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
_ESCAPES = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_LINED = json.JSONEncoder(ensure_ascii=False, separators=(",\n", ": "))
_RUNS = re.compile(r'((?:[^][{}"]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+)(\{\}|\[\]|[][{}]|\Z)')
"""What stands between brackets, strings as a whole, and the bracket; a pair is one."""
_OPENING, _CLOSING = frozenset("{["), frozenset("}]")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class Repeated(dict[str, object]):
    """An object in which a name is given more than once: each time it adds to what was there.

    `pairs` are its names and values as they were written: each of them has to fit.
    """

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__()
        self.pairs = pairs
        for key, value in pairs:
            self[key] = _added(self[key], value) if key in self else value

    def only(self, names: Container[str]) -> "Repeated":
        """The same without all other names."""
        return Repeated([pair for pair in self.pairs if pair[0] in names])


def parse(text: bytes | str, *, bytes_max: int = TEXT_BYTES_MAX) -> object:
    """The document. Raises DecodeError, and nothing else, in the real server's words."""
    if len(text) > bytes_max:
        raise DecodeError(f"document of {len(text)} bytes exceeds the maximum of {bytes_max}")
    decoded, broken = _decoded(text)
    return _parsed(decoded, broken, _DECODER)


def parse_exactly(text: bytes | str) -> object:
    """The same for what is checked field by field, by `jsctl.api.strict`.

    Names that are given twice are told (`Repeated`). Numbers that no field can hold, and zeros with
    a sign, are numbers that know how they were written: no field takes the former.
    """
    decoded, broken = _decoded(text)
    if _MINUS_ZERO not in decoded:
        try:
            return _parsed(decoded, broken, _PAIRING)
        except _TooLong:
            pass
    return _parsed(decoded, broken, _EXACT)


def of_people(text: bytes | str) -> object:
    """What people have written, or others for them, as Python reads it and tells what is wrong.

    Raises ValueError, also for nesting without end.
    """
    try:
        found: object = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found


def only(document: dict[str, object], names: Container[str]) -> dict[str, object]:
    """What a document says of these names."""
    if isinstance(document, Repeated):
        return document.only(names)
    return {key: value for key, value in document.items() if key in names}


def _parsed(decoded: str, broken: int, decoder: json.JSONDecoder) -> object:
    if decoded.count("[") + decoded.count("{") > DEPTH_MAX:
        _check_depth(decoded)
    try:
        document: object = decoder.decode(decoded)
    except _Constant as error:
        raise DecodeError(_about_constant(decoded, error.args[0])) from None
    except DecodeError:
        raise
    except json.JSONDecodeError:
        raise _broken(decoded) from None
    except ValueError:
        # The interpreter converts no integer of some thousand digits.
        raise _TooLong("json: cannot unmarshal number: value out of range") from None
    except RecursionError:
        raise DecodeError("exceeded max depth") from None
    if broken:
        raise DecodeError(f"invalid UTF-8 at offset {broken}")
    if "\\u" in decoded and _SURROGATE.search(decoded) is not None:
        _check_surrogates(document)
    return document


class _Merged(dict[str, object]):
    """What values of one name add up to; nobody else's, so that it is copied once only: a name may
    be given as often as there is room for it."""


def _added(old: object, new: object) -> object:
    """A value that was there, with what another one of the same name says."""
    if isinstance(old, dict) and isinstance(new, dict):
        merged = old if isinstance(old, _Merged) else _Merged(old)
        for key, value in new.items():
            merged[key] = _added(merged[key], value) if key in merged else value
        return merged
    if isinstance(old, list) and isinstance(new, list):
        return [_added(*pair) for pair in zip(old, new, strict=False)] + new[len(old) :]
    return old if new is None and not isinstance(old, dict | list) else new


def _broken(text: str) -> DecodeError:
    """What is wrong with text that is not one document."""
    try:
        end = _end_of_document(text, 0)
    except DecodeError as error:
        return error
    at = _skip_spaces(text, end)
    return _wrong(text, at, "after top-level value")


def parse_row(text: bytes | str) -> Iterator[object]:
    """The documents of text that is not one of them: the real server reads requests so, one
    document after the other. Raises DecodeError where one is broken."""
    decoded, _ = _decoded(text)
    at = _skip_spaces(decoded, 0)
    while at < len(decoded):
        end = _end_of_document(decoded, at)
        yield parse_exactly(decoded[at:end])
        at = _skip_spaces(decoded, end)


def parse_object(text: bytes | str, *, bytes_max: int = TEXT_BYTES_MAX) -> dict[str, object]:
    """The document, which has to be an object. Raises DecodeError."""
    document = parse(text, bytes_max=bytes_max)
    if not isinstance(document, dict):
        raise DecodeError("json: not an object")
    return document


class _TooLong(DecodeError):
    """A number of more digits than the interpreter converts."""


class _Constant(Exception):
    """NaN or an infinity, which JSON does not have."""


def _decoded(text: bytes | str) -> tuple[str, int]:
    """The text, and where it is not UTF-8; 0 if it is. What is not, may be no JSON besides."""
    try:
        data = text.encode() if isinstance(text, str) else text
        return data.decode(), 0
    except UnicodeDecodeError as error:
        return data.decode("utf-8", "surrogateescape"), error.start + 1
    except UnicodeEncodeError as error:
        raise DecodeError(f"invalid UTF-8 at offset {error.start + 1}") from None


def _check_depth(text: str) -> None:
    """Without looking at single characters here: what is in strings is cut out, of the rest the
    brackets are left and added up. Escapes are only in strings, if the text is JSON at all."""
    outside = "".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2])
    steps = outside.encode("utf-8", "surrogateescape").translate(_STEPS, _NO_BRACKETS)
    if max(accumulate(memoryview(steps).cast("b")), default=0) > DEPTH_MAX:
        raise DecodeError("exceeded max depth")


def _check_surrogates(document: object) -> None:
    """Both halves in a row are one character; a half alone cannot be written down again."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise DecodeError("invalid surrogate pair in string literal") from None


class _Fraction(float):
    """A number that knows how it was written."""

    __slots__ = ("raw",)
    raw: str


def _written(text: str) -> float:
    number = _Fraction(text)
    number.raw = text
    return number


def _finite(text: str) -> float:
    number = _written(text)
    if math.isinf(number):
        shown = text[:SHOWN_DIGITS_MAX]
        raise DecodeError(f"json: cannot unmarshal number {shown} into Go value of type float64")
    return number


def _whole(text: str) -> float:
    """Zero with a sign is no number without one; others are what they are, if that is possible."""
    if text == _MINUS_ZERO or len(text) > LONG_DIGITS:
        return _written(text)
    return int(text)


def _constant(word: str) -> object:
    raise _Constant(word)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Repeated(pairs)


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_constant)
"""One for all: making it takes as long as it takes to read a request."""
_PAIRING = json.JSONDecoder(
    parse_float=_written, parse_constant=_constant, object_pairs_hook=_object
)
_EXACT = json.JSONDecoder(
    parse_float=_written,
    parse_int=_whole,
    parse_constant=_constant,
    object_pairs_hook=_object,
)
"""Looks at each integer, which takes its time."""


def _about_constant(text: str, word: str) -> str:
    places = (found.start() for found in _CONSTANTS.finditer(text) if found[0] == word)
    at = next(places, 0) + 1
    if word.startswith("-"):
        return f"invalid character 'I' in numeric literal at offset {at + 1}"
    return f"invalid character '{word[0]}' looking for beginning of value at offset {at}"


# What is wrong with text that is no JSON, where, and in which words: those of the real server.
# Only looked at once the text is known to be broken, or to hold several documents. Offsets are
# counted in bytes, and end behind the character that is wrong.


def _skip_spaces(text: str, at: int) -> int:
    """Where the next document begins, or the text ends."""
    found = _SPACES.match(text, at)
    assert found is not None
    return found.end()


def _end_of_document(text: str, at: int) -> int:
    """Where the document that begins at `at` ends. Raises DecodeError."""
    open_: list[str] = []
    """The brackets that the place is in, innermost last."""
    while True:
        at = _value(text, _skip_spaces(text, at), open_)
        at = _behind_value(text, at, open_)
        if not open_:
            return at


def _value(text: str, at: int, open_: list[str]) -> int:
    """The end of a value that is none of others, else the place of the first one in it."""
    begin = text[at : at + 1]
    while begin in ("{", "["):
        at = _skip_spaces(text, at + 1)
        if text[at : at + 1] == ("}" if begin == "{" else "]"):
            return at + 1
        open_.append(begin)
        if begin == "{":
            at = _key(text, at)
        begin = text[at : at + 1]
    if begin == '"':
        return _string(text, at)
    if begin in _LITERALS:
        return _literal(text, at, _LITERALS[begin])
    if begin and begin in "-0123456789":
        return _number(text, at)
    raise _wrong(text, at, "looking for beginning of value")


def _behind_value(text: str, at: int, open_: list[str]) -> int:
    """Behind what may follow a value: the place of the next one, or the end."""
    while open_:
        at = _skip_spaces(text, at)
        mark, end = text[at : at + 1], "}" if open_[-1] == "{" else "]"
        if mark == ",":
            at = _skip_spaces(text, at + 1)
            return _key(text, at) if end == "}" else at
        if mark != end:
            pair = "after object key:value pair" if end == "}" else "after array element"
            raise _wrong(text, at, pair)
        open_.pop()
        at += 1
    return at


def _key(text: str, at: int) -> int:
    if text[at : at + 1] != '"':
        raise _wrong(text, at, "looking for beginning of object key string")
    at = _skip_spaces(text, _string(text, at))
    if text[at : at + 1] != ":":
        raise _wrong(text, at, "after object key")
    return _skip_spaces(text, at + 1)


def _string(text: str, at: int) -> int:
    at += 1
    while True:
        found = _PLAIN.match(text, at)
        assert found is not None
        at = found.end()
        mark = text[at : at + 1]
        if mark == '"':
            return at + 1
        if mark != "\\":
            raise _wrong(text, at, "in string")
        at = _escape(text, at)


def _escape(text: str, begin: int) -> int:
    kind = text[begin + 1 : begin + 2]
    if kind and kind in '"\\/bfnrt':
        return begin + 2
    length = 2
    if kind == "u":
        length, at = _ESCAPE_LENGTH, begin + 2
        while at < begin + length and text[at : at + 1] and text[at] in _HEX:
            at += 1
        if at == begin + length:
            return at
        kind = text[at : at + 1]
    if not kind:
        raise DecodeError("unexpected EOF")
    # As long as a whole one is, in bytes: the rest of a character may be missing.
    whole = text[begin : begin + length].encode("utf-8", "surrogateescape")[:length]
    shown, end = whole.decode("utf-8", "surrogateescape"), _offset(text, begin) + len(whole) - 1
    plain = shown.isprintable() and "`" not in shown
    told = f"`{shown}`" if plain else quoted(shown)
    raise DecodeError(f"invalid escape sequence {told} in string at offset {end}")


def _literal(text: str, at: int, word: str) -> int:
    for index, letter in enumerate(word):
        if text[at + index : at + index + 1] != letter:
            raise _wrong(text, at + index, f"in literal {word} (expecting '{letter}')")
    return at + len(word)


def _number(text: str, at: int) -> int:
    found, begun = _NUMBER.match(text, at), _NUMBER_BEGUN.match(text, at)
    assert begun is not None
    if found is None or begun.end() > found.end():
        raise _wrong(text, begun.end(), "in numeric literal")
    return found.end()


def _wrong(text: str, at: int, where: str) -> DecodeError:
    if at >= len(text):
        return DecodeError("unexpected EOF")
    return DecodeError(
        f"invalid character '{_shown(text[at])}' {where} at offset {_offset(text, at)}"
    )


def _shown(mark: str) -> str:
    if mark in _NAMED:
        return _NAMED[mark]
    if mark.isprintable():
        return mark
    code = ord(mark)
    if 0xDC80 <= code <= 0xDCFF:  # A byte that is no UTF-8.
        code -= 0xDC00
        return f"\\x{code:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


def _offset(text: str, at: int) -> int:
    return len(text[: at + 1].encode("utf-8", "surrogateescape"))


# The way back


def written(document: object, indent: int = 0) -> bytes:
    """JSON as the real server writes it: `<`, `>` and `&` escaped, no spaces or, with `indent`, so
    many of them for each level."""
    text = _indented(document, indent) if indent else _ENCODER.encode(document)
    return text.translate(_ESCAPES).encode("utf-8", "replace")


def _indented(document: object, indent: int) -> str:
    """As the library does it, which writes each value by itself in Python: here the encoder that is
    compiled writes all of them, each item on a line, and lines are moved between brackets."""
    end, made = "\n", list[str]()
    for run, mark in _RUNS.findall(_LINED.encode(document)):
        # No string has the end of a line in it.
        made.append(run.replace("\n", end))
        if mark in _OPENING:
            end += " " * indent
            made += mark, end
        elif mark in _CLOSING:
            end = end[:-indent]
            made += end, mark
        else:
            made.append(mark)
    return "".join(made)
