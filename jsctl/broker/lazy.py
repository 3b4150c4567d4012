"""Modules that a server needs only once somebody asks it something.

Most of what a broker could import is JetStream, answers requests, fills monitoring pages and words
events and advisories; some of it is for clusters alone. Who uses such a module names it here, and
for the type checker imports it:

    if TYPE_CHECKING:
        from jsctl.broker.handlers import direct
    else:
        direct = lazy.module("jsctl.broker.handlers.direct")

A server, and a test that starts one, is ready in half the time so, and in a quarter without
JetStream. What decides whether a module is needed (subscriptions, counters, whether anybody
listens) is in modules that are always there. Once a server is ready it loads those that requests
need one after the other (`ahead`), so that the first who asks does not wait for them.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_REAL = "the module itself"
_NAMED_IN = "whose names it is among"


class _LazyModule(ModuleType):
    """Stands for a module, which is imported when something of it is used first, and then takes its
    place: each look through this one fails before it comes here, which takes a microsecond."""

    def __getattr__(self, name: str) -> Any:  # Whatever the module has
        held = self.__dict__
        real = held.get(_REAL)
        if real is None:
            real = held[_REAL] = load(self.__name__)
            names: dict[str, Any] = held[_NAMED_IN]
            for word in [word for word, meant in names.items() if meant is self]:
                names[word] = real
        return getattr(real, name)


_waiting: dict[str, None] = {}
"""Named and not imported yet, in the order of their naming."""
_optional: dict[str, None] = {}
"""The same for what a server may never need."""


def module(place: str, *, optional: bool = False) -> ModuleType:
    """The module at `place`, imported when something of it is used first.

    An optional one is for what is switched on at the start or never: it is not loaded ahead.
    """
    (_optional if optional else _waiting).setdefault(place)
    made = _LazyModule(place)
    made.__dict__[_NAMED_IN] = sys._getframe(1).f_globals
    return made


def parts(*places: str) -> None:
    """Load these ahead as well, before what is named later and imports them: a large module would
    take a turn of a quarter of a second, in which nobody is heard."""
    _waiting.update(dict.fromkeys(places))


def load(place: str) -> ModuleType:
    """Import it now."""
    _waiting.pop(place, None)
    _optional.pop(place, None)
    return import_module(place)


def ahead(*, optional: bool = False) -> bool:
    """Import one of those that are waiting; False when there was none. Others may follow it.

    `optional` takes one that may never be needed where no other is left: for who serves many.
    """
    place = next(iter(_waiting), None) or (next(iter(_optional), None) if optional else None)
    if place is None:
        return False
    load(place)
    return True
