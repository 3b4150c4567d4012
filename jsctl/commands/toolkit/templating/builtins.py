"""The functions that every template has."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from urllib.parse import quote_plus

from jsctl.commands.toolkit.templating.printf import printf
from jsctl.commands.toolkit.templating.values import Callee, Unsigned, shown, truth, type_of

_HTML = str.maketrans(
    {"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"}
)
_JS = {
    **{chr(code): f"\\u{code:04X}" for code in range(32)},
    **{sign: f"\\u{ord(sign):04X}" for sign in "<>&="},
    "\\": r"\\",
    "'": r"\'",
    '"': r"\"",
}
INDEXES_MAX = 3
BAD_KIND = "invalid type for comparison"


def printed(*values: object) -> str:
    """With spaces between neighbours of which none is a text."""
    text = ""
    for at, value in enumerate(values):
        if at and not isinstance(value, str) and not isinstance(values[at - 1], str):
            text += " "
        text += shown(value)
    return text


def _line(*values: object) -> str:
    return " ".join(map(shown, values)) + "\n"


def _escaped(values: tuple[object, ...]) -> str:
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return printed(*values)


def _html(*values: object) -> str:
    return _escaped(values).translate(_HTML)


def _js(*values: object) -> str:
    text = _escaped(values)
    return "".join(
        _JS.get(sign) or (sign if sign.isprintable() else f"\\u{ord(sign):04X}") for sign in text
    )


def _urlquery(*values: object) -> str:
    return quote_plus(_escaped(values), safe="~", errors="surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _length(value: object) -> int:
    if isinstance(value, str):
        return len(_bytes(value))
    if isinstance(value, list | tuple | Mapping):
        return len(value)
    if value is None:
        raise ValueError("len of nil pointer")
    raise ValueError(f"len of type {type_of(value)}")


def _place(index: object, count: int) -> int:
    """Of an element. Raises ValueError."""
    if index is None:
        raise ValueError("cannot index slice/array with nil")
    if isinstance(index, bool) or not isinstance(index, int):
        raise ValueError(f"cannot index slice/array with type {type_of(index)}")
    if not 0 <= index <= count:
        raise ValueError(f"index out of range: {index}")
    return index


def _index(value: object, *indexes: object) -> object:
    if value is None:
        raise ValueError("index of untyped nil")
    for index in indexes:
        if isinstance(value, Mapping):
            if not isinstance(index, str):
                raise ValueError(f"value has type {type_of(index)}; should be string")
            value = value.get(index)
        elif isinstance(value, str):
            data = _bytes(value)
            value = Unsigned(data[_inner(index, len(data))])
        elif isinstance(value, list | tuple):
            value = value[_inner(index, len(value))]
        else:
            raise ValueError(
                "index of nil pointer"
                if value is None
                else f"can't index item of type {type_of(value)}"
            )
    return value


def _inner(index: object, count: int) -> int:
    at = _place(index, count)
    if at == count:
        raise ValueError("reflect: slice index out of range")
    return at


def _slice(value: object, *indexes: object) -> object:
    if value is None:
        raise ValueError("slice of untyped nil")
    if len(indexes) > INDEXES_MAX:
        raise ValueError(f"too many slice indexes: {len(indexes)}")
    if not isinstance(value, str | list | tuple):
        raise ValueError(f"can't slice item of type {type_of(value)}")
    if isinstance(value, str) and len(indexes) == INDEXES_MAX:
        raise ValueError("cannot 3-index slice a string")
    whole = _bytes(value) if isinstance(value, str) else value
    places = [0, len(whole), len(whole)]
    for at, index in enumerate(indexes):
        places[at] = _place(index, len(whole))
    for begin, end in pairwise(places):
        if begin > end:
            raise ValueError(f"invalid slice index: {begin} > {end}")
    found = whole[places[0] : places[1]]
    return found.decode("utf-8", "surrogateescape") if isinstance(found, bytes) else found


def _kind(value: object) -> str:
    """In which of the kinds that can be compared it is; empty for others."""
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return ""


def _equal(one: object, *others: object) -> bool:
    if not others:
        raise ValueError("missing argument for comparison")
    kind = _kind(one)
    for other in others:
        whole = {kind, _kind(other)} <= {"int", "uint"}
        if not whole and kind != _kind(other):
            if one is not None and other is not None:
                raise ValueError(
                    f"incompatible types for comparison: {type_of(one)} and {type_of(other)}"
                )
            continue
        if not kind and one is not None and other is not None:
            raise ValueError(f"non-comparable type {shown(other)}: {type_of(other)}")
        if one == other:
            return True
    return False


def _less(one: object, other: object) -> bool:
    kind, another = _kind(one), _kind(other)
    if not kind or not another:
        raise ValueError(BAD_KIND)
    if kind != another and not {kind, another} <= {"int", "uint"}:
        raise ValueError(f"incompatible types for comparison: {type_of(one)} and {type_of(other)}")
    if kind in ("bool", "complex"):
        raise ValueError(BAD_KIND)
    return bool(one < other)  # type: ignore[operator]  # of one kind, looked at above


def _not_greater(one: object, other: object) -> bool:
    return _less(one, other) or _equal(one, other)


def _any(run: Callable[..., object], count: int, *, rest: bool = False) -> Callee:
    return Callee(run, ("any",) * count, "any" if rest else "")


_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (Unsigned, "uint"),
    (int, "int"),
    (float, "float"),
    (complex, "complex"),
    (str, "string"),
)

AND, OR, CALL = "and", "or", "call"
"""The first two stop at what decides; the interpreter does all three itself."""

BUILTINS: Mapping[str, Callee] = {
    AND: _any(lambda *_: None, 1, rest=True),
    OR: _any(lambda *_: None, 1, rest=True),
    CALL: _any(lambda *_: None, 1, rest=True),
    "not": _any(lambda value: not truth(value), 1),
    "eq": _any(_equal, 1, rest=True),
    "ne": _any(lambda one, other: not _equal(one, other), 2),
    "lt": _any(_less, 2),
    "le": _any(_not_greater, 2),
    "gt": _any(lambda one, other: not _not_greater(one, other), 2),
    "ge": _any(lambda one, other: not _less(one, other), 2),
    "len": _any(_length, 1),
    "index": _any(_index, 1, rest=True),
    "slice": _any(_slice, 1, rest=True),
    "html": _any(_html, 0, rest=True),
    "js": _any(_js, 0, rest=True),
    "urlquery": _any(_urlquery, 0, rest=True),
    "print": _any(printed, 0, rest=True),
    "println": _any(_line, 0, rest=True),
    "printf": Callee(printf, ("string",), "any"),
}
