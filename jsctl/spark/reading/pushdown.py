"""Filters of a query -> `Bounds` of a read, so that what nobody wants is not fetched.

Only bounds on `seq` are exact; every other filter is left to Spark as well, which checks again.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from jsctl.spark.reading.plan import Bounds
from jsctl.spark.scan.direct import subject_matcher

SUBJECTS_MAX = 100
"""A longer list of subjects is left to Spark."""
_MICROSECOND_NS = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def bounds_of(
    filters: Sequence[Filter], user_subjects: tuple[str, ...]
) -> tuple[Bounds, list[Filter]]:
    """The bounds, and the filters that Spark still has to check.

    `user_subjects` are the subject filters of the options: pushed ones only narrow them.
    """
    bounds = Bounds()
    left: list[Filter] = []
    for one in filters:
        bounds, exact = _narrowed(bounds, one, user_subjects)
        if not exact:
            left.append(one)
    return bounds, left


def _narrowed(bounds: Bounds, one: Filter, user_subjects: tuple[str, ...]) -> tuple[Bounds, bool]:
    attribute: tuple[str, ...] = getattr(one, "attribute", ())
    column = attribute[0] if len(attribute) == 1 else ""
    if column == "seq":
        low, end, exact = _interval(one, _integer, 1)
        found = replace(
            bounds, first_seq=_max(bounds.first_seq, low), end_seq=_min(bounds.end_seq, end)
        )
        return found, exact
    if column in ("timestamp", "ts_ns"):
        stamp = column == "timestamp"
        convert = _nanoseconds if stamp else _integer
        low, end, _ = _interval(one, convert, _MICROSECOND_NS if stamp else 1)
        found = replace(
            bounds, first_ns=_max(bounds.first_ns, low), end_ns=_min(bounds.end_ns, end)
        )
        return found, False
    if column == "stream" and (names := _texts(one)) is not None:
        known = frozenset(names)
        return replace(bounds, streams=known & (bounds.streams or known)), False
    if column == "subject" and bounds.subjects is None:
        return replace(bounds, subjects=_subjects(one, user_subjects)), False
    return bounds, False


def _interval(
    one: Filter, convert: Callable[[object], int | None], step: int
) -> tuple[int | None, int | None, bool]:
    """First value, end, and whether they say the same as the filter. `step` is one unit."""
    values = one.value if isinstance(one, In) else (getattr(one, "value", None),)
    numbers = [convert(value) for value in values]
    if not numbers or any(number is None for number in numbers):
        return None, None, False
    low, high = min(n for n in numbers if n is not None), max(n for n in numbers if n is not None)
    table: dict[type[Filter], tuple[int | None, int | None, bool]] = {
        EqualTo: (low, low + step, True),
        In: (low, high + step, False),
        GreaterThan: (low + step, None, True),
        GreaterThanOrEqual: (low, None, True),
        LessThan: (None, low, True),
        LessThanOrEqual: (None, low + step, True),
    }
    return table.get(type(one), (None, None, False))


def _subjects(one: Filter, user_subjects: tuple[str, ...]) -> tuple[str, ...] | None:
    """Subject filters of a filter on `subject`, None if it has none that may be used."""
    if isinstance(one, StringStartsWith):
        prefix = one.value
        if user_subjects or not prefix.endswith(".") or not _plain(prefix[:-1]):
            return None
        return (f"{prefix}>",)
    texts = _texts(one)
    if texts is None or len(texts) > SUBJECTS_MAX or not all(map(_plain, texts)):
        return None
    if not user_subjects:
        return tuple(texts)
    matches = subject_matcher(user_subjects)
    within = tuple(text for text in texts if matches(text.encode()))
    return within or None


def _texts(one: Filter) -> list[str] | None:
    values = one.value if isinstance(one, In) else (getattr(one, "value", None),)
    if not isinstance(one, EqualTo | In) or not all(isinstance(value, str) for value in values):
        return None
    return list(dict.fromkeys(values))


def _plain(subject: str) -> bool:
    tokens = subject.split(".")
    return all(tokens) and not any(c in "*> \t\r\n" for c in subject)


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _nanoseconds(value: object) -> int | None:
    if not isinstance(value, datetime):
        return None
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    delta = aware - _EPOCH
    return ((delta.days * 86400 + delta.seconds) * 1_000_000 + delta.microseconds) * 1_000


def _max(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _min(one: int | None, other: int | None) -> int | None:
    return min((value for value in (one, other) if value is not None), default=None)
