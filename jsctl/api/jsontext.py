"""JSON text from outside -> plain values: the one place where foreign bytes become a document.

Requests, CONNECT and INFO, frames of peers and what is kept on the disk all come through here,
so that nothing behind it meets what Python's parser lets pass and nothing can write down again:
half a surrogate pair, text that is not UTF-8, NaN, numbers without end, nesting without end.

Cost is linear in the size of the text. Of a name that is given twice the last one counts, as in Go.
"""

import json
import math
import re
from itertools import accumulate

from jsctl.api.strict import DecodeError, syntax_error

DEPTH_MAX = 128
"""Levels of arrays and objects. The real server reads 10,000; no document of the API has ten, and
each level of what is read costs the interpreter's stack wherever it is written again."""
TEXT_BYTES_MAX = 64 << 20
"""The largest payload that a server can be told to take."""
OWN_BYTES_MAX = 1 << 62
"""For what this server wrote itself."""
SHOWN_DIGITS_MAX = 40

_CONSTANTS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|-?(?:NaN|Infinity)', re.DOTALL)
"""Strings as a whole, so that nothing in them counts; possessive, so that it stays linear."""
_BRACKETS = b"[{]}"
_STEPS = bytes.maketrans(_BRACKETS, b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse(text: bytes | str, *, bytes_max: int = TEXT_BYTES_MAX) -> object:
    """The document. Raises DecodeError, and nothing else, in the real server's words."""
    if len(text) > bytes_max:
        raise DecodeError(f"document of {len(text)} bytes exceeds the maximum of {bytes_max}")
    decoded, broken = _decoded(text)
    if decoded.count("[") + decoded.count("{") > DEPTH_MAX:
        _check_depth(decoded)
    try:
        document: object = _DECODER.decode(decoded)
    except _Constant as error:
        raise DecodeError(_about_constant(decoded, error.args[0])) from None
    except DecodeError:
        raise
    except json.JSONDecodeError as error:
        raise DecodeError(syntax_error(decoded, error)) from None
    except ValueError:
        # The interpreter converts no integer of some thousand digits.
        raise DecodeError("json: cannot unmarshal number: value out of range") from None
    except RecursionError:
        raise DecodeError("exceeded max depth") from None
    if broken:
        raise DecodeError(f"invalid UTF-8 at offset {broken}")
    if "\\u" in decoded and _SURROGATE.search(decoded) is not None:
        _check_surrogates(document)
    return document


def parse_object(text: bytes | str, *, bytes_max: int = TEXT_BYTES_MAX) -> dict[str, object]:
    """The document, which has to be an object. Raises DecodeError."""
    document = parse(text, bytes_max=bytes_max)
    if not isinstance(document, dict):
        raise DecodeError("json: not an object")
    return document


class _Constant(Exception):
    """NaN or an infinity, which JSON does not have."""


def _decoded(text: bytes | str) -> tuple[str, int]:
    """The text, and where it is not UTF-8; 0 if it is. What is not, may be no JSON besides."""
    try:
        data = text.encode() if isinstance(text, str) else text
        return data.decode(), 0
    except UnicodeDecodeError as error:
        return data.decode("utf-8", "replace"), error.start + 1
    except UnicodeEncodeError as error:
        raise DecodeError(f"invalid UTF-8 at offset {error.start + 1}") from None


def _check_depth(text: str) -> None:
    """Without looking at single characters here: what is in strings is cut out, of the rest the
    brackets are left and added up. Escapes are only in strings, if the text is JSON at all."""
    outside = "".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2])
    steps = outside.encode().translate(_STEPS, _NO_BRACKETS)
    if max(accumulate(memoryview(steps).cast("b")), default=0) > DEPTH_MAX:
        raise DecodeError("exceeded max depth")


def _check_surrogates(document: object) -> None:
    """Both halves in a row are one character; a half alone cannot be written down again."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise DecodeError("invalid surrogate pair in string literal") from None


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        shown = text[:SHOWN_DIGITS_MAX]
        raise DecodeError(f"json: cannot unmarshal number {shown} into Go value of type float64")
    return number


def _constant(word: str) -> object:
    raise _Constant(word)


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_constant)
"""One for all: making it takes as long as it takes to read a request."""


def _about_constant(text: str, word: str) -> str:
    places = (found.start() for found in _CONSTANTS.finditer(text) if found[0] == word)
    at = next(places, 0) + 1
    if word.startswith("-"):
        return f"invalid character 'I' in numeric literal at offset {at + 1}"
    return f"invalid character '{word[0]}' looking for beginning of value at offset {at}"
