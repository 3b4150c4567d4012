"""What a dialog says before something is changed: consequences, command line, way out."""

from collections.abc import Awaitable, Callable
from enum import IntEnum
from shlex import quote
from typing import TypeAlias

from jsctl.dashboard.connection.link import Link
from jsctl.dashboard.model.snapshot import Consumer, Level, Meta, Server, Stream
from jsctl.dataclass import dataclass

Target: TypeAlias = Server | Stream | Consumer | Meta
"""What an action can be done to."""
Run = Callable[[Link, str], Awaitable[str]]
"""Does it, with the choice made; gives the outcome in words. Raises JsctlError or ApiError."""


class Tier(IntEnum):
    """How much a dialog asks for, by what is at stake."""

    YES_NO = 1
    """Reversible, costs an election at most."""
    SUMMARY = 2
    """Changes behaviour: the effects are listed."""
    TYPED = 3
    """Data or redundancy may be lost: the name has to be typed."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One line of the table of effects."""

    label: str
    value: str
    note: str = ""
    level: Level = Level.OK


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a dialog shows. `command` and `effects` depend on the choice made.

    `typed` is the name to be typed for `Tier.TYPED`, which may depend on the choice too.
    """

    title: str
    tier: Tier
    headline: str
    button: str
    run: Run
    command: Callable[[str], str]
    effects: Callable[[str], tuple[Effect, ...]]
    typed: Callable[[str], str] = lambda _choice: ""
    choices: tuple[str, ...] = ()
    choice: int = 0
    free: str = ""
    """What else may be entered instead of a choice, in words; empty: nothing."""
    check: Callable[[str], str] = lambda _choice: ""
    """Why a choice entered by hand will not do; empty if it will."""
    warning: str = ""
    safer: str = ""
    mark: str = "warn"
    """The glyph in the title."""


def words(*parts: str) -> str:
    """A command line, quoted where a shell wants it."""
    return " ".join(["jsctl", *(quote(part) for part in parts)])


def name_of(target: Target) -> str:
    """How events and dialogs call it."""
    if isinstance(target, Consumer):
        return f"{target.stream} > {target.name}"
    return "meta group" if isinstance(target, Meta) else target.name
