"""Functions of the templates of bundles: those of the Sprig library that bundles use.

What would see this machine (environment, names of hosts) is not among them, nor what matches
patterns of the bundle's own. Results are bounded, so that a few words do not fill the memory.
"""

import base64
import hashlib
import json
import math
import re
import secrets
import string
import uuid
from collections.abc import Callable, Mapping

from jsctl.api.strict import quoted
from jsctl.commands.toolkit.templating.builtins import BUILTINS
from jsctl.commands.toolkit.templating.numbers import INT64_MAX, INT64_MIN
from jsctl.commands.toolkit.templating.values import Callee, Long, shown

TEXT_MAX = 4 * 1024 * 1024
ITEMS_MAX = 100_000
PAIRS_MAX = 10_000_000
_PRINTING = ("print", "printf", "println", "html", "js", "urlquery")
_TEXT, _ANY = "string", "any"
_HALF = re.compile("[\ud800-\udfff]")


def _whole(value: object) -> int:
    """As a number, whatever it is; 0 of what is none."""
    if isinstance(value, bool | int):
        return int(value)
    try:
        if isinstance(value, float):
            return int(value)
        return int(str(value).lstrip("0") or "0", 10) if isinstance(value, str) else 0
    except (ValueError, OverflowError):
        return 0


def _long(value: int) -> Long:
    """In 64 bits, as they turn over."""
    return Long((value - INT64_MIN) % (INT64_MAX - INT64_MIN + 1) + INT64_MIN)


def _real(value: object) -> float:
    try:
        return float(value) if isinstance(value, bool | int | float | str) else 0.0
    except ValueError:
        return 0.0


def _empty(value: object) -> bool:
    return not value


def _items(value: object) -> list[object]:
    if isinstance(value, list | tuple):
        return list(value)
    raise ValueError(f"Cannot use {shown(value)} as a list")


def _texts(value: object) -> list[str]:
    """Of a list its elements as texts, without those that are nothing."""
    if isinstance(value, list | tuple):
        return [shown(one) for one in value if one is not None]
    return [] if value is None else [shown(value)]


def _divided(left: object, right: object) -> tuple[int, int]:
    """Quotient and remainder, towards zero."""
    dividend, divisor = _whole(left), _whole(right)
    if not divisor:
        raise ValueError("runtime error: integer divide by zero")
    quotient = abs(dividend) // abs(divisor)
    quotient = quotient if (dividend < 0) == (divisor < 0) else -quotient
    return quotient, dividend - quotient * divisor


def _steps(start: int, stop: int, step: int) -> list[object]:
    if not step or (stop - start) / step > ITEMS_MAX:
        raise ValueError(f"no more than {ITEMS_MAX} numbers")
    return list(range(start, stop, step))


def _sequence(*given: object) -> str:
    """`1 2 3` of 3, of 1 3, or of 1 1 3, as the program of that name."""
    if not 1 <= len(given) <= 3:
        return ""
    numbers = [_whole(one) for one in given]
    first, last = (1, numbers[-1]) if len(numbers) == 1 else (numbers[0], numbers[-1])
    step = numbers[1] if len(numbers) == 3 else (1 if first <= last else -1)
    if not step or (last < first) != (step < 0):
        return ""
    return " ".join(map(str, _steps(first, last + (1 if step > 0 else -1), step)))


def _dictionary(*given: object) -> dict[str, object]:
    pairs = [*given, ""] if len(given) % 2 else list(given)
    return {shown(key): value for key, value in zip(pairs[::2], pairs[1::2], strict=True)}


def _table(value: object) -> dict[str, object]:
    if isinstance(value, dict):
        return value
    raise ValueError(f"Cannot use {shown(value)} as a dict")


def _set(table: object, key: str, value: object) -> object:
    _table(table)[key] = value
    return table


def _unset(table: object, key: str) -> object:
    _table(table).pop(key, None)
    return table


def _merged(first: object, *others: object) -> object:
    """What is there already stays."""
    table = _table(first)
    for other in others:
        for key, value in _table(other).items():
            if _empty(table.get(key)):
                table[key] = value
    return table


def _without(items: object, *left: object) -> list[object]:
    given = _items(items)
    _pairs_bounded(len(given) * len(left))
    return [one for one in given if one not in left]


def _unique(items: object) -> list[object]:
    plain: set[object] = set()
    others: list[object] = []
    found: list[object] = []
    for one in _items(items):
        if isinstance(one, list | tuple | dict):
            _pairs_bounded(len(others) ** 2)
            new = one not in others
            others += [one] if new else []
        else:
            new = one not in plain
            plain.add(one)
        found += [one] if new else []
    return found


def _pairs_bounded(count: int) -> None:
    if count > PAIRS_MAX:
        raise ValueError(f"no more than {PAIRS_MAX} comparisons")


def _joined(mark: str, texts: list[str]) -> str:
    _length_bounded(sum(map(len, texts)) + len(mark) * len(texts))
    return mark.join(texts)


def _replaced(old: str, new: str, text: str) -> str:
    count = text.count(old) if old else len(text) + 1
    _length_bounded(len(text) + count * (len(new) - len(old)))
    return text.replace(old, new)


def _length_bounded(length: int) -> None:
    """Before a text is made, as it may not fit into the memory."""
    if length > TEXT_MAX:
        raise ValueError(f"a text has at most {TEXT_MAX} characters")


def _product(*values: object) -> Long:
    made = 1
    for value in values:
        made = _long(made * _whole(value))
    return _long(made)


def _repeated(count: int, text: str) -> str:
    _length_bounded(count * len(text))
    return text * max(0, count)


def _indented(count: int, text: str) -> str:
    pad = _repeated(count, " ")
    return pad + _replaced("\n", "\n" + pad, text)


def _truncated(count: int, text: str) -> str:
    return text[count:] if count < 0 and len(text) > -count else text[: abs(count) or 0]


def _part(start: int, stop: int, text: str) -> str:
    if start < 0:
        return text[:stop]
    return text[start:] if stop < 0 or stop > len(text) else text[start:stop]


def _title(text: str) -> str:
    before = " "
    made: list[str] = []
    for one in text:
        made.append(one if before.isalnum() or before == "_" else one.upper())
        before = one
    return "".join(made)


def _as_json(value: object, indent: int | None = None) -> str:
    separators = (",", ":") if indent is None else (",", ": ")
    encoder = json.JSONEncoder(
        sort_keys=True, ensure_ascii=False, separators=separators, indent=indent
    )
    parts: list[str] = []
    length = 0
    for part in encoder.iterencode(value):
        parts.append(part)
        length += len(part)
        _length_bounded(length)
    text = "".join(parts)
    for mark in "<>&":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _from_json(text: str) -> object:
    """Half characters are none, as with Go: they cannot be written down."""
    try:
        found = json.loads(text)
        written = json.dumps(found, ensure_ascii=False)
        return json.loads(_HALF.sub("\ufffd", written)) if _HALF.search(written) else found
    except (ValueError, RecursionError):
        return None


def _drawn(alphabet: str) -> Callable[[int], str]:
    def draw(count: int) -> str:
        _length_bounded(count)
        return "".join(secrets.choice(alphabet) for _ in range(count))

    return draw


def _failed(text: str) -> object:
    raise ValueError(text)


def _hashed(text: str) -> str:
    import bcrypt

    return bcrypt.hashpw(text.encode("utf-8", "surrogateescape")[:72], bcrypt.gensalt(10)).decode()


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "surrogateescape")
    except ValueError as error:
        return str(error)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


_OF_TEXT: Mapping[str, Callee] = {
    "trim": Callee(str.strip, (_TEXT,)),
    "trimAll": Callee(lambda cut, text: text.strip(cut), (_TEXT, _TEXT)),
    "trimPrefix": Callee(lambda cut, text: text.removeprefix(cut), (_TEXT, _TEXT)),
    "trimSuffix": Callee(lambda cut, text: text.removesuffix(cut), (_TEXT, _TEXT)),
    "upper": Callee(str.upper, (_TEXT,)),
    "lower": Callee(str.lower, (_TEXT,)),
    "title": Callee(_title, (_TEXT,)),
    "untitle": Callee(lambda text: text[:1].lower() + text[1:], (_TEXT,)),
    "nospace": Callee(lambda text: "".join(text.split()), (_TEXT,)),
    "repeat": Callee(_repeated, ("int", _TEXT)),
    "substr": Callee(_part, ("int", "int", _TEXT)),
    "trunc": Callee(_truncated, ("int", _TEXT)),
    "contains": Callee(lambda part, text: part in text, (_TEXT, _TEXT)),
    "hasPrefix": Callee(lambda part, text: text.startswith(part), (_TEXT, _TEXT)),
    "hasSuffix": Callee(lambda part, text: text.endswith(part), (_TEXT, _TEXT)),
    "replace": Callee(_replaced, (_TEXT, _TEXT, _TEXT)),
    "indent": Callee(_indented, ("int", _TEXT)),
    "nindent": Callee(lambda count, text: "\n" + _indented(count, text), ("int", _TEXT)),
    "plural": Callee(lambda one, many, n: one if n == 1 else many, (_TEXT, _TEXT, "int")),
    "quote": Callee(lambda *all_: " ".join(quoted(t) for t in _texts(all_)), (), _ANY),
    "squote": Callee(lambda *all_: " ".join(f"'{t}'" for t in _texts(all_)), (), _ANY),
    "cat": Callee(lambda *all_: " ".join(_texts(all_)), (), _ANY),
    "toString": Callee(shown, (_ANY,)),
    "b64enc": Callee(lambda text: base64.b64encode(_bytes(text)).decode(), (_TEXT,)),
    "b64dec": Callee(_decoded, (_TEXT,)),
    "sha256sum": Callee(lambda text: hashlib.sha256(_bytes(text)).hexdigest(), (_TEXT,)),
    "bcrypt": Callee(_hashed, (_TEXT,)),
    "uuidv4": Callee(lambda: str(uuid.uuid4())),
    "randAlphaNum": Callee(_drawn(string.ascii_letters + string.digits), ("int",)),
    "randAlpha": Callee(_drawn(string.ascii_letters), ("int",)),
    "randNumeric": Callee(_drawn(string.digits), ("int",)),
}
_OF_NUMBERS: Mapping[str, Callee] = {
    "int": Callee(_whole, (_ANY,)),
    "int64": Callee(lambda value: _long(_whole(value)), (_ANY,)),
    "float64": Callee(_real, (_ANY,)),
    "atoi": Callee(_whole, (_TEXT,)),
    "add": Callee(lambda *all_: _long(sum(map(_whole, all_))), (), _ANY),
    "add1": Callee(lambda value: _long(_whole(value) + 1), (_ANY,)),
    "sub": Callee(lambda left, right: _long(_whole(left) - _whole(right)), (_ANY, _ANY)),
    "mul": Callee(_product, (_ANY,), _ANY),
    "div": Callee(lambda left, right: _long(_divided(left, right)[0]), (_ANY, _ANY)),
    "mod": Callee(lambda left, right: _long(_divided(left, right)[1]), (_ANY, _ANY)),
    "max": Callee(lambda *all_: _long(max(map(_whole, all_))), (_ANY,), _ANY),
    "min": Callee(lambda *all_: _long(min(map(_whole, all_))), (_ANY,), _ANY),
    "floor": Callee(lambda value: float(math.floor(_real(value))), (_ANY,)),
    "ceil": Callee(lambda value: float(math.ceil(_real(value))), (_ANY,)),
    "seq": Callee(_sequence, (), "int"),
    "until": Callee(lambda count: _steps(0, count, 1 if count > 0 else -1), ("int",)),
    "untilStep": Callee(_steps, ("int", "int", "int")),
}
_OF_LISTS: Mapping[str, Callee] = {
    "list": Callee(lambda *all_: list(all_), (), _ANY),
    "first": Callee(lambda items: next(iter(_items(items)), None), (_ANY,)),
    "last": Callee(lambda items: next(iter(_items(items)[-1:]), None), (_ANY,)),
    "rest": Callee(lambda items: _items(items)[1:], (_ANY,)),
    "initial": Callee(lambda items: _items(items)[:-1], (_ANY,)),
    "append": Callee(lambda items, one: [*_items(items), one], (_ANY, _ANY)),
    "prepend": Callee(lambda items, one: [one, *_items(items)], (_ANY, _ANY)),
    "concat": Callee(lambda *all_: [one for part in all_ for one in _items(part)], (), _ANY),
    "reverse": Callee(lambda items: _items(items)[::-1], (_ANY,)),
    "uniq": Callee(_unique, (_ANY,)),
    "without": Callee(_without, (_ANY,), _ANY),
    "has": Callee(lambda one, items: one in _items(items or []), (_ANY, _ANY)),
    "compact": Callee(lambda items: [one for one in _items(items) if one], (_ANY,)),
    "join": Callee(lambda mark, items: _joined(mark, _texts(items)), (_TEXT, _ANY)),
    "sortAlpha": Callee(lambda items: sorted(_texts(items)), (_ANY,)),
    "toStrings": Callee(_texts, (_ANY,)),
    "splitList": Callee(lambda mark, text: text.split(mark) if mark else list(text), (_TEXT,) * 2),
    "split": Callee(
        lambda mark, text: {f"_{at}": one for at, one in enumerate(text.split(mark or None))},
        (_TEXT, _TEXT),
    ),
}
_OF_TABLES: Mapping[str, Callee] = {
    "dict": Callee(_dictionary, (), _ANY),
    "get": Callee(lambda table, key: _table(table).get(key, ""), (_ANY, _TEXT)),
    "set": Callee(_set, (_ANY, _TEXT, _ANY)),
    "unset": Callee(_unset, (_ANY, _TEXT)),
    "hasKey": Callee(lambda table, key: key in _table(table), (_ANY, _TEXT)),
    "keys": Callee(lambda *all_: [key for table in all_ for key in _table(table)], (), _ANY),
    "values": Callee(lambda table: list(_table(table).values()), (_ANY,)),
    "merge": Callee(_merged, (_ANY,), _ANY),
    "default": Callee(
        lambda other, *given: other if not given or _empty(given[0]) else given[0], (_ANY,), _ANY
    ),
    "empty": Callee(_empty, (_ANY,)),
    "coalesce": Callee(lambda *all_: next((one for one in all_ if one), None), (), _ANY),
    "ternary": Callee(lambda yes, no, which: yes if which else no, (_ANY, _ANY, "bool")),
    "toJson": Callee(_as_json, (_ANY,)),
    "toPrettyJson": Callee(lambda value: _as_json(value, 2), (_ANY,)),
    "fromJson": Callee(_from_json, (_TEXT,)),
    "fail": Callee(_failed, (_TEXT,)),
}


def _bounded(callee: Callee) -> Callee:
    def run(*values: object) -> object:
        try:
            made = callee.run(*values)
        except (TypeError, OverflowError, RecursionError) as error:
            raise ValueError(str(error)) from None
        if isinstance(made, str):
            _length_bounded(len(made))
        if isinstance(made, list | dict) and len(made) > ITEMS_MAX:
            raise ValueError(f"no more than {ITEMS_MAX} elements")
        return made

    return Callee(run, callee.takes, callee.rest)


_OF_GO = {name: BUILTINS[name] for name in _PRINTING}
FUNCTIONS: Mapping[str, Callee] = {
    name: _bounded(callee)
    for some in (_OF_GO, _OF_TEXT, _OF_NUMBERS, _OF_LISTS, _OF_TABLES)
    for name, callee in some.items()
}
