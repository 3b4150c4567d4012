"""Words to declare API fields with: what the type of a field cannot say.

A field's JSON name is its attribute name without a trailing underscore, unless `key` names
another. Defaults are the zero values of the real server's structs, so that leaving a field
out of a request means the same here as there.
"""

from dataclasses import field
from typing import Annotated, TypeVar

from jsctl.dataclass import dataclass

T = TypeVar("T")

Time = Annotated[str, "time"]
"""A point in time as RFC 3339 text with up to nine digits of fraction, as on the wire."""

Nanos = Annotated[int, "time.Duration"]
"""A length of time in nanoseconds."""

Int64 = Annotated[int, "int64"]
Int32 = Annotated[int, "int32"]
Uint64 = Annotated[int, "uint64"]
Uint32 = Annotated[int, "uint32"]

Json = object
"""A JSON value of no declared shape, carried through unchanged."""

ZERO_TIME = "0001-01-01T00:00:00Z"
"""How the real server writes a time that was never set."""

NANOS_MAX = 2**63 - 1
"""The real server's `forever`."""


@dataclass(frozen=True, slots=True)
class About:
    """Everything people see of a configuration field; flags, checks and edits read it.

    `flag` is the long option without dashes. `unit` is one of count, unsigned, bytes, duration,
    percent, text, subjects, map, choice, flag, switch or inverse (a switch that turns the field
    off).
    `choices` maps the words accepted on the command line to wire values. Fields with `editable`
    False cannot change once the asset exists. `maximum` bounds numbers.
    """

    help: str = ""
    flag: str = ""
    unit: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    editable: bool = True
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Wire:
    """How a field travels: its JSON name and when it is left out."""

    key: str = ""
    omit: bool = False
    embed: bool = False
    unknown: bool = False
    about: About | None = None


def always(default: T, *, key: str = "", about: About | None = None) -> T:
    """A field that is always written."""
    return _declare(default, Wire(key=key, about=about))


def omit(default: T, *, key: str = "", about: About | None = None) -> T:
    """A field that is left out when it has its zero value (Go's `omitempty`)."""
    return _declare(default, Wire(key=key, omit=True, about=about))


def embed(cls: type[T]) -> T:
    """A struct whose fields stand among its owner's."""
    made: T = field(default_factory=cls, metadata={"wire": Wire(embed=True)})
    return made


def embed_maybe(cls: type[T]) -> T | None:
    """A struct whose fields stand among its owner's, or nothing of it (in errors)."""
    made: T | None = field(default=None, metadata={"wire": Wire(embed=True)})
    return made


def struct(cls: type[T], *, key: str = "") -> T:
    """A nested struct that is always there."""
    made: T = field(default_factory=cls, metadata={"wire": Wire(key=key)})
    return made


def unknown() -> dict[str, Json]:
    """Where keys go that this version does not know, so that printing loses nothing."""
    made: dict[str, Json] = field(
        default_factory=dict, compare=False, metadata={"wire": Wire(unknown=True)}
    )
    return made


def mapping(*, always: bool = False, key: str = "", about: About | None = None) -> dict[str, T]:
    """A JSON object with free keys."""
    made: dict[str, T] = field(
        default_factory=dict, metadata={"wire": Wire(key=key, omit=not always, about=about)}
    )
    return made


def _declare(default: T, wire: Wire) -> T:
    made: T = field(default=default, metadata={"wire": wire})
    return made
