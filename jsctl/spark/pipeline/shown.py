"""How a value of a report is written, the same in tables, charts and pages."""

from collections.abc import Callable, Mapping
from typing import Any

from jsctl.render.humanize import duration, number, size
from jsctl.spark.pipeline.jobs.model import Unit


def shown(value: Any, unit: Unit) -> str:
    """The text of a value; a dash where nothing is known."""
    return "–" if value is None else _FORMS[unit](value)


def _count(value: Any) -> str:
    return number(int(value))


def _days(value: Any) -> str:
    return f"{value:,.1f}"


def _seconds(value: Any) -> str:
    return duration(int(float(value) * 1e9))


def _ratio(value: Any) -> str:
    return f"{float(value):.1%}"


_FORMS: Mapping[Unit, Callable[[Any], str]] = {
    Unit.TEXT: str,
    Unit.COUNT: _count,
    Unit.BYTES: lambda value: size(int(value)),
    Unit.RATIO: _ratio,
    Unit.SECONDS: _seconds,
    Unit.DAYS: _days,
    Unit.TIME: str,
}
