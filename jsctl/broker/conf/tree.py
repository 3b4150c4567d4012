"""What a configuration file is once parsed: values that know where they stand."""

from collections.abc import Iterator
from datetime import datetime

from jsctl.broker.errors import ConfigError
from jsctl.dataclass import dataclass

Scalar = bool | int | float | str | datetime
Content = Scalar | list["ConfigNode"] | dict[str, "ConfigNode"]


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a file; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(slots=True)
class ConfigNode:
    """One value. `place` is that of its key where it has one, as operators look for keys."""

    content: Content
    place: Place
    variable: bool = False
    """Some `$name` referred to it: it may stand where an option of its name is unknown."""
    again: bool = False
    """The same key was there before in the same map: this value has replaced that one."""

    @property
    def kind(self) -> str:
        """What the value is, in an operator's words."""
        return KIND_NAMES[type(self.content)]

    def error(self, reason: str, remedy: str = "") -> ConfigError:
        """A ConfigError at this place."""
        return ConfigError(reason, place=str(self.place), remedy=remedy)

    def items(self) -> Iterator["ConfigNode"]:
        """The elements of an array; nothing for other kinds."""
        if isinstance(self.content, list):
            yield from self.content


KIND_NAMES: dict[type, str] = {
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    datetime: "a date",
    list: "an array",
    dict: "a map",
}
