"""Operators of expressions over values that are not known before."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard, TypeVar

from jsctl.commands.toolkit.content.expressions.moments import Moment, Span, moment_of, span_of
from jsctl.commands.toolkit.grammar.regexps import compiled

SIZE_MAX = 1_000_000
"""Characters of a text, and elements of a list with all that is in it, that are made."""
RANGE_MAX = 100_000
_WHOLE_END = 2**63

Made = TypeVar("Made", str, list[object])
Operation = Callable[[object, object], object]


def truth(value: object) -> bool:
    """Of an operand of `&&`. Raises TypeError."""
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is not true or false")
    return value


def equal(left: object, right: object) -> bool:
    """Whether two values are the same; a truth is no number."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if is_list(left) and is_list(right):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    return left == right


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether it has elements; a text has none."""
    return isinstance(value, list | tuple)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it can be counted with."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def bounded(value: int | float) -> int | float:
    """A number that was computed. Raises ValueError beyond 64 bits."""
    if isinstance(value, int) and not -_WHOLE_END <= value < _WHOLE_END:
        raise ValueError("a number is too large")
    return value


def sized(value: Made) -> Made:
    """A text or list that was made. Raises ValueError where it is too large."""
    if len(value) > SIZE_MAX:
        raise ValueError(f"no more than {SIZE_MAX} characters or elements")
    return value


def negative(value: object) -> object:
    """The number below zero. Raises TypeError."""
    if not is_number(value):
        raise TypeError(f"{value!r} is not a number")
    return bounded(-value)


def less(left: object, right: object) -> bool:
    """Whether one comes before the other. Raises TypeError where that cannot be said."""
    return truth(_OPERATORS_OF_ORDER["<"](left, right))


def operation(word: str) -> Operation:
    """What an operator does that looks at both sides."""
    return _OPERATIONS[word]


def _ordered(compare: Callable[..., bool]) -> Operation:
    def ordered(left: object, right: object) -> bool:
        if isinstance(left, str) and isinstance(right, str):
            return compare(left, right)
        left, right = _of_one_kind(left, right)
        if isinstance(left, Moment | Span) and type(left) is type(right):
            return compare(left.ns, right.ns)
        if is_number(left) and is_number(right):
            return compare(left, right)
        raise TypeError(f"{left!r} and {right!r} cannot be compared")

    return ordered


def _of_one_kind(left: object, right: object) -> tuple[object, object]:
    """A time beside a text that tells one, a length beside nanoseconds: as servers say them."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Moment) and isinstance(other, str):
            return moment_of(left), moment_of(right)
        if isinstance(one, Span) and isinstance(other, int) and not isinstance(other, bool):
            return span_of(left), span_of(right)
    return left, right


def added(left: object, right: object) -> object:
    """The sum of two numbers or times, or both texts. Raises TypeError, ValueError."""
    if isinstance(left, str) and isinstance(right, str):
        sized(left)
        return sized(left + right)
    if is_number(left) and is_number(right):
        return bounded(left + right)
    if isinstance(left, Span) and isinstance(right, Span):
        return Span(left.ns + right.ns)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Moment) and isinstance(other, Span):
            return one.moved(other)
    raise TypeError(f"{left!r} and {right!r} cannot be added")


def _subtracted(left: object, right: object) -> object:
    left, right = _of_one_kind(left, right)
    if isinstance(left, Moment) and isinstance(right, Moment):
        return left.since(right)
    if isinstance(left, Moment) and isinstance(right, Span):
        return left.moved(Span(-right.ns))
    if isinstance(left, Span) and isinstance(right, Span):
        return Span(left.ns - right.ns)
    return _of_numbers(operator.sub)(left, right)


def _multiplied(left: object, right: object) -> object:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Span) and is_number(other):
            return Span(int(one.ns * other))
    return _of_numbers(operator.mul)(left, right)


def _of_numbers(compute: Callable[..., int | float]) -> Operation:
    def checked(left: object, right: object) -> object:
        if not is_number(left) or not is_number(right):
            raise TypeError(f"{left!r} and {right!r} are not numbers")
        return bounded(compute(left, right))

    return checked


def _remainder(left: int | float, right: int | float) -> int:
    """With the sign of what is divided."""
    if not isinstance(left, int) or not isinstance(right, int):
        raise TypeError("a remainder needs whole numbers")
    found = abs(left) % abs(right)
    return -found if left < 0 else found


def _power(left: int | float, right: int | float) -> float:
    try:
        found = pow(float(left), float(right))
    except OverflowError:
        raise ValueError("a power is too large") from None
    if isinstance(found, complex):
        raise ValueError(f"{left!r} has no such root")
    return float(found)


def _range(left: object, right: object) -> list[int]:
    if not isinstance(left, int) or not isinstance(right, int):
        raise TypeError("a range needs whole numbers")
    if right - left >= RANGE_MAX:
        raise ValueError("a range is too long")
    return list(range(left, right + 1))


def _within(left: object, right: object) -> bool:
    if isinstance(right, Mapping):
        return isinstance(left, str) and left in right
    if right is None:
        return False
    if not is_list(right):
        raise TypeError(f"nothing is in {right!r}")
    return any(equal(left, one) for one in right)


def _matches(left: object, right: object) -> bool:
    try:
        pattern, text = _texts(right, left)
        return compiled(pattern).search(text) is not None
    except re.error as error:
        raise ValueError(f"{right!r}: {error}") from None


def _texts(left: object, right: object) -> tuple[str, str]:
    if not isinstance(left, str) or not isinstance(right, str):
        raise TypeError(f"{left!r} and {right!r} are not texts")
    return left, right


def _contains(left: object, right: object) -> bool:
    text, part = _texts(left, right)
    return part in text


def _starts(left: object, right: object) -> bool:
    text, part = _texts(left, right)
    return text.startswith(part)


def _ends(left: object, right: object) -> bool:
    text, part = _texts(left, right)
    return text.endswith(part)


_OPERATORS_OF_ORDER: Mapping[str, Operation] = {
    "<": _ordered(operator.lt),
    ">": _ordered(operator.gt),
    "<=": _ordered(operator.le),
    ">=": _ordered(operator.ge),
}
_OPERATIONS: Mapping[str, Operation] = {
    **_OPERATORS_OF_ORDER,
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    "+": added,
    "-": _subtracted,
    "*": _multiplied,
    "/": _of_numbers(operator.truediv),
    "%": _of_numbers(_remainder),
    "**": _of_numbers(_power),
    "^": _of_numbers(_power),
    "..": _range,
    "in": _within,
    "matches": _matches,
    "contains": _contains,
    "startsWith": _starts,
    "endsWith": _ends,
}
