"""Stored contexts: the list and the screen of one."""

from collections.abc import Sequence

from jsctl.dataclass import dataclass
from jsctl.render.column import Column
from jsctl.render.details import Details


@dataclass(frozen=True, slots=True)
class ContextRow:
    """A context in the list."""

    name: str
    description: str
    selected: bool


CONTEXT_COLUMNS: tuple[Column[ContextRow], ...] = (
    Column("name", "Name", lambda row: row.name, lambda row: row.name + "*" * row.selected),
    Column("description", "Description", lambda row: row.description),
)


def context_screen(name: str, rows: Sequence[tuple[str, str]]) -> Details:
    """Labels with their values; rows without a value are left out."""
    screen = Details(f'NATS Configuration Context "{name}"')
    for label, value in rows:
        screen.row_if(label, value)
    return screen
