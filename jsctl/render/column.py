"""A column of a report: where its value comes from and how it is shown and sorted."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Generic, TypeVar

from jsctl.api.times import format_duration
from jsctl.dataclass import dataclass

R = TypeVar("R")
Cell = str | int | float


class Duration(int):
    """A length of time in nanoseconds as a cell, which stands to the right as numbers do."""

    def __str__(self) -> str:
        return format_duration(self)


class Align(Enum):
    """`AUTO` puts a column right when every cell is a number."""

    AUTO = "auto"
    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """One column of rows `R`.

    `value` gives plain data for JSON, CSV and sorting; `text` what people see (by default the
    value). `raw` replaces `text` when unformatted numbers are wanted. `sort` overrides `value`
    as a sort key. Columns with a higher `priority` are dropped first when space is short.
    """

    key: str
    title: str
    value: Callable[[R], object]
    text: Callable[[R], Cell] | None = None
    raw: Callable[[R], Cell] | None = None
    sort: Callable[[R], object] | None = None
    align: Align = Align.AUTO
    priority: int = 0

    def cell(self, row: R, *, raw: bool = False) -> Cell:
        """What a table shows."""
        if raw and self.raw is not None:
            return self.raw(row)
        if self.text is not None and not raw:
            return self.text(row)
        value = self.value(row)
        return value if isinstance(value, str | int | float) else str(value)


def sort_rows(
    rows: Sequence[R], columns: Sequence[Column[R]], key: str, *, reverse: bool = False
) -> list[R]:
    """Rows ordered by the column of that key; equal rows keep their order."""
    column = next(column for column in columns if column.key == key)
    by = column.sort or column.value
    return sorted(rows, key=by, reverse=reverse)  # type: ignore[arg-type] # keys compare


def documents(rows: Sequence[R], columns: Sequence[Column[R]]) -> list[dict[str, object]]:
    """Rows as JSON objects, keys in column order."""
    return [{column.key: column.value(row) for column in columns} for row in rows]
