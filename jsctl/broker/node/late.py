"""Modules that a server needs only once somebody asks it something.

Half of what a broker has to import is there to answer requests. It is imported with the first
request, so that a server, and a test that starts one, is ready in half the time.
"""

from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jsctl.broker.handlers import api, consumer_info, direct, lists, streams

_loaded: dict[str, ModuleType] = {}


def __getattr__(name: str) -> ModuleType:
    """A module of the handlers by its name."""
    from importlib import import_module

    module = _loaded.get(name)
    if module is None:
        module = _loaded[name] = import_module(f"jsctl.broker.handlers.{name}")
    return module


__all__ = ["api", "consumer_info", "direct", "lists", "streams"]
