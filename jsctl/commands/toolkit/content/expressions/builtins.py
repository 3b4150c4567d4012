"""Functions of expressions over whole values: texts, numbers, lists, maps and times."""

import base64
import binascii
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from time import time_ns

from jsctl.commands.toolkit.content.expressions.folding import in_order
from jsctl.commands.toolkit.content.expressions.moments import Moment, Span, moment_of, span_of
from jsctl.commands.toolkit.content.expressions.operations import (
    SIZE_MAX,
    bounded,
    equal,
    is_list,
    is_number,
)
from jsctl.commands.toolkit.templating.values import shown

_BITS = 64
_ALL_BITS = (1 << _BITS) - 1
_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (int, "int"),
    (float, "float"),
    (str, "string"),
    (list, "array"),
    (tuple, "array"),
    (Mapping, "map"),
    (Moment, "time.Time"),
    (Span, "time.Duration"),
)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _list(value: object) -> Sequence[object]:
    """What a server left out is empty."""
    if value is None:
        return ()
    if not is_list(value):
        raise TypeError(f"{value!r} is no list")
    return value


def _map(value: object) -> Mapping[object, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is no map")
    return value


def _number(value: object) -> int | float:
    if not is_number(value):
        raise TypeError(f"{value!r} is no number")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no whole number")
    return value


def _length(value: object) -> int:
    if value is None:
        return 0
    if not isinstance(value, str | Mapping | list | tuple):
        raise TypeError(f"{value!r} has no length")
    return len(value)


def _kind(value: object) -> str:
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "nil")


def _measured(value: object) -> object:
    """The value. Raises ValueError where it has too much in it, counted as often as it is there."""
    left, waiting = SIZE_MAX, [value]
    while waiting:
        one = waiting.pop()
        left -= 1 + (len(one) if isinstance(one, str | list | tuple | Mapping) else 0)
        if left < 0:
            raise ValueError(f"no more than {SIZE_MAX} characters or elements")
        waiting += one.values() if isinstance(one, Mapping) else one if is_list(one) else ()
    return value


def _shown(value: object) -> str:
    return shown(_measured(value))


def _trim(text: object, marks: object = None) -> str:
    return _text(text).strip(marks if marks is None else _text(marks))


def _split(*, keep: bool) -> Callable[..., list[str]]:
    def split(text: object, mark: object, count: object = -1) -> list[str]:
        whole, by, most = _text(text), _text(mark), _whole(count)
        if most == 0:
            return []
        if by:
            found = whole.split(by, most - 1 if most > 0 else -1)
        else:
            rest = whole[most - 1 :] if 0 < most < len(whole) else ""
            found = [*(whole[: most - 1] if rest else whole), *((rest,) if rest else ())]
        return [f"{one}{by}" for one in found[:-1]] + found[-1:] if keep else found

    return split


def _replace(text: object, old: object, new: object, count: object = -1) -> str:
    whole, part, other = _text(text), _text(old), _text(new)
    places = whole.count(part)
    if len(whole) + places * len(other) > SIZE_MAX:
        raise ValueError(f"no more than {SIZE_MAX} characters")
    return whole.replace(part, other, _whole(count))


def _repeat(text: object, count: object) -> str:
    times = _whole(count)
    if times < 0 or len(_text(text)) * times > SIZE_MAX:
        raise ValueError(f"no more than {SIZE_MAX} characters, and not less than none")
    return _text(text) * times


def _join(items: object, mark: object = "") -> str:
    texts = [_text(one) for one in _list(items)]
    if sum(map(len, texts)) + len(_text(mark)) * len(texts) > SIZE_MAX:
        raise ValueError(f"no more than {SIZE_MAX} characters")
    return _text(mark).join(texts)


def _int(value: object) -> int:
    if isinstance(value, str):
        if not value.lstrip("+-").isdecimal() or len(value) > _BITS:
            raise ValueError(f"{value!r} is no whole number")
        return int(bounded(int(value)))
    if isinstance(value, Span):
        return value.ns
    return int(bounded(int(_number(value))))


def _float(value: object) -> float:
    return float(value) if isinstance(value, str) else float(_number(value))


def _round(value: object) -> float:
    """Halves go away from zero."""
    number = float(_number(value))
    if not math.isfinite(number) or number.is_integer():
        return number
    return math.copysign(math.floor(abs(number) + 0.5), number)


def _flat(values: object) -> Iterator[object]:
    """The elements of lists and of the lists in them, up to a limit. Raises ValueError."""
    waiting, left = [iter(_list(values))], SIZE_MAX
    while waiting:
        for one in waiting[-1]:
            left -= 1
            if left < 0:
                raise ValueError(f"no more than {SIZE_MAX} elements")
            if is_list(one):
                waiting.append(iter(one))
                break
            yield one
        else:
            waiting.pop()


def _numbers(values: Sequence[object]) -> list[int | float]:
    if not values:
        raise TypeError("there is nothing to look at")
    return [_number(one) for one in _flat(values)]


def _uniq(items: object) -> list[object]:
    """Without what is there before: by value, and whole numbers are like those with a point."""
    found: list[object] = []
    seen: set[object] = set()
    for one in _list(items):
        plain = isinstance(one, str) or is_number(one)
        if one in seen if plain else any(equal(one, other) for other in found):
            continue
        if plain:
            seen.add(one)
        found.append(one)
    return found


def _concat(*lists: object) -> list[object]:
    if not lists:
        raise TypeError("there is nothing to look at")
    if sum(len(_list(one)) for one in lists) > SIZE_MAX:
        raise ValueError(f"no more than {SIZE_MAX} elements")
    return [one for each in lists for one in _list(each)]


def _take(items: object, count: object) -> list[object]:
    most = _whole(count)
    if most < 0:
        raise ValueError("less than nothing cannot be taken")
    return list(_list(items)[:most])


def _get(value: object, key: object) -> object:
    if isinstance(value, Mapping):
        return value.get(key)
    at, items = _whole(key), _list(value)
    return items[at] if -len(items) <= at < len(items) else None


def _from_pairs(pairs: object) -> dict[object, object]:
    found = [_list(one) for one in _list(pairs)]
    if any(len(one) != 2 for one in found):
        raise ValueError("a pair has two elements")
    return {one[0]: one[1] for one in found}


def _to_json(value: object) -> str:
    return json.dumps(_measured(value), indent=2, sort_keys=True, ensure_ascii=False, default=str)


def _from_json(text: object) -> object:
    if len(_text(text)) > SIZE_MAX:
        raise ValueError(f"no more than {SIZE_MAX} characters")
    return json.loads(_text(text))


def _from_base64(text: object) -> str:
    try:
        return base64.b64decode(_text(text), validate=True).decode("utf-8", "replace")
    except binascii.Error as error:
        raise ValueError(f"{text!r} is no base64: {error}") from None


def _bits(compute: Callable[[int, int], int]) -> Callable[[object, object], int]:
    def computed(left: object, right: object) -> int:
        found = compute(_whole(left), _whole(right)) & _ALL_BITS
        return found - _ALL_BITS - 1 if found > _ALL_BITS // 2 else found

    return computed


def _shift(count: int) -> int:
    """Beyond all bits nothing is left. Raises ValueError below zero."""
    if count < 0:
        raise ValueError("bits cannot be moved by less than none")
    return min(count, _BITS)


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "len": _length,
    "type": _kind,
    "lower": lambda text: _text(text).lower(),
    "upper": lambda text: _text(text).upper(),
    "trim": _trim,
    "trimPrefix": lambda text, prefix=" ": _text(text).removeprefix(_text(prefix)),
    "trimSuffix": lambda text, suffix=" ": _text(text).removesuffix(_text(suffix)),
    "split": _split(keep=False),
    "splitAfter": _split(keep=True),
    "join": _join,
    "replace": _replace,
    "repeat": _repeat,
    "hasPrefix": lambda text, prefix: _text(text).startswith(_text(prefix)),
    "hasSuffix": lambda text, suffix: _text(text).endswith(_text(suffix)),
    "indexOf": lambda text, part: _text(text).find(_text(part)),
    "lastIndexOf": lambda text, part: _text(text).rfind(_text(part)),
    "int": _int,
    "float": _float,
    "string": _shown,
    "abs": lambda value: bounded(abs(_number(value))),
    "ceil": lambda value: float(math.ceil(_number(value))),
    "floor": lambda value: float(math.floor(_number(value))),
    "round": _round,
    "min": lambda *values: min(_numbers(values), default=None),
    "max": lambda *values: max(_numbers(values), default=None),
    "mean": lambda *values: float(sum(found := _numbers(values))) / max(len(found), 1),
    "median": lambda *values: float(median(_numbers(values) or [0])),
    "keys": lambda value: list(_map(value)),
    "values": lambda value: list(_map(value).values()),
    "toPairs": lambda value: [[key, one] for key, one in _map(value).items()],
    "fromPairs": _from_pairs,
    "first": lambda items: _get(items, 0),
    "last": lambda items: _get(items, -1),
    "get": _get,
    "take": _take,
    "reverse": lambda items: list(_list(items)[::-1]),
    "uniq": _uniq,
    "concat": _concat,
    "flatten": lambda items: list(_flat(items)),
    "sort": lambda items, order="asc": in_order(_list(items), _list(items), _text(order)),
    "toJSON": _to_json,
    "fromJSON": _from_json,
    "toBase64": lambda text: base64.b64encode(_text(text).encode()).decode(),
    "fromBase64": _from_base64,
    "now": lambda: Moment(time_ns()),
    "date": moment_of,
    "duration": span_of,
    "bitand": _bits(lambda left, right: left & right),
    "bitor": _bits(lambda left, right: left | right),
    "bitxor": _bits(lambda left, right: left ^ right),
    "bitnand": _bits(lambda left, right: left & ~right),
    "bitshl": _bits(lambda left, right: left << _shift(right)),
    "bitshr": _bits(lambda left, right: left >> _shift(right)),
    "bitushr": _bits(lambda left, right: (left & _ALL_BITS) >> _shift(right)),
    "bitnot": lambda value: ~_whole(value),
}
"""What all expressions have; those over lists that look at each element are FOLDS."""
