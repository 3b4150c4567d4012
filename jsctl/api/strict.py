"""What the real server refuses in a document, in its words.

Go names the place of a mismatch by the type of the whole document and a path of keys. Here the
innermost check raises `Mismatch` and each level on the way out adds its key, so that checks
need not know where they stand.
"""

import json
import math
from base64 import b64decode
from enum import Enum

from jsctl.api.times import time_error
from jsctl.dataclass import dataclass

INTEGER_RANGES = {
    "int": (-(2**63), 2**63 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint64": (0, 2**64 - 1),
    "uint32": (0, 2**32 - 1),
    "uint16": (0, 2**16 - 1),
    "uint8": (0, 2**8 - 1),
    "time.Duration": (-(2**63), 2**63 - 1),
}


ESCAPES = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
}
_PLANE = 0xFFFF


class DecodeError(ValueError):
    """A document that the real server refuses; the text is what follows `invalid JSON: `."""


class Mismatch(Exception):
    """A value of another kind than declared; `path` grows on the way out, innermost first."""

    def __init__(self, found: str, wanted: str) -> None:
        self.found = found
        self.wanted = wanted
        self.path: list[str] = []
        super().__init__(found, wanted)

    def text(self, root: str) -> str:
        """The server's sentence for a document whose type is named `root`."""
        if not self.path:
            return f"json: cannot unmarshal {self.found} into Go value of type server.{root}"
        words = "" if self.path[0].isdigit() else "Go struct field "
        place = ".".join([root, *reversed(self.path)])
        return f"json: cannot unmarshal {self.found} into {words}{place} of type {self.wanted}"


def kind_of(value: object) -> str:
    """Go's word for the kind of a JSON value."""
    for kind, word in ((bool, "bool"), (str, "string"), (list, "array"), (dict, "object")):
        if isinstance(value, kind):
            return word
    return "null" if value is None else "number"


def _number_of(value: object) -> str:
    """The kind of a value; of a number, how it was written, too."""
    found = kind_of(value)
    return f"number {getattr(value, 'raw', value)}" if found == "number" else found


def check_integer(value: object, wanted: str) -> int:
    """An integer within the range of the Go type `wanted`; raises Mismatch."""
    low, high = INTEGER_RANGES[wanted]
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    if low < 0 and getattr(value, "raw", "") == "-0":
        return 0
    raise Mismatch(_number_of(value), wanted)


def check_float(value: object) -> float:
    """Any number; raises Mismatch."""
    if isinstance(value, int | float) and not isinstance(value, bool) and not math.isinf(value):
        return value
    raise Mismatch(_number_of(value), "float64")


def check_text(value: object) -> str:
    """A string; raises Mismatch."""
    if isinstance(value, str):
        return value
    raise Mismatch(kind_of(value), "string")


def check_bool(value: object) -> bool:
    """True or false; raises Mismatch."""
    if isinstance(value, bool):
        return value
    raise Mismatch(kind_of(value), "bool")


def check_bytes(value: object) -> bytes:
    """Base64 text; raises Mismatch or DecodeError."""
    if not isinstance(value, str):
        raise Mismatch(kind_of(value), "[]uint8")
    try:
        return b64decode(value, validate=True)
    except ValueError:
        raise DecodeError("illegal base64 data at input byte 0") from None


def check_time(value: object) -> str:
    """RFC 3339 text; raises Mismatch or DecodeError."""
    if not isinstance(value, str):
        raise Mismatch(kind_of(value), "time.Time")
    reason = time_error(value)
    if reason:
        raise DecodeError(f'parsing time "{value}"{reason}')
    return value


@dataclass(frozen=True, slots=True)
class Words:
    """The words of an enumeration and how others are refused: `{raw}` stands for the quoted JSON
    of the value, `{value}` for the JSON itself."""

    known: dict[object, Enum]
    refusal: str
    texts_only: bool
    any_case: bool


def words_of(kind: type[Enum]) -> Words:
    """For `check_word`; an enumeration may have words for the server's own ways."""
    known: dict[object, Enum] = {member.value: member for member in kind}
    aliases = getattr(kind, "__aliases__", {})
    known.update({word: kind(value) for word, value in aliases.items()})
    return Words(
        known,
        getattr(kind, "__refusal__", "can not unmarshal {raw}"),
        getattr(kind, "__texts_only__", False),
        getattr(kind, "__any_case__", False),
    )


def check_word(words: Words, value: object) -> Enum:
    """One of the words of an enumeration; raises DecodeError."""
    if words.texts_only and value is not None and not isinstance(value, str):
        found = f"json: cannot unmarshal {kind_of(value)} into Go value of type string"
        raise DecodeError(found)
    text = value.lower() if words.any_case and isinstance(value, str) else value
    member = words.known.get(text) if isinstance(text, str) else None
    if member is None:
        document = str(getattr(value, "raw", "") or json.dumps(value, ensure_ascii=False))
        refusal = words.refusal.replace("{raw}", quoted(document))
        raise DecodeError(refusal.replace("{value}", document))
    return member


def quoted(text: str, quote: str = '"') -> str:
    """In quotes, with what cannot be read in escapes, as Go writes it."""
    return quote + "".join(_escaped(sign, quote) for sign in text) + quote


def _escaped(sign: str, quote: str) -> str:
    if sign == quote:
        return f"\\{quote}"
    if sign in ESCAPES:
        return ESCAPES[sign]
    code = ord(sign)
    if "\udc80" <= sign <= "\udcff":
        return f"\\x{code - 0xDC00:02x}"
    if sign.isprintable():
        return sign
    if code < ord(" ") or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _PLANE else f"\\U{code:08x}"
