"""Modules that a server needs only once somebody asks it something.

Half of what a broker could import answers requests, fills monitoring pages and words events and
advisories; some of it is for clusters alone. Each such module is imported with the first request,
page, listener or link that needs it, so that a server, and a test that starts one, is ready in
half the time. What decides whether it is needed (subscriptions, counters, whether anybody
listens) is in modules that are always there: `sys_door`, `client_events`, `advisories`.
"""

from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jsctl.broker.handlers import answers, api, consumer_info, direct, lists, streams
    from jsctl.broker.jetstream import advisories, consumer_advisories
    from jsctl.broker.node import links, sys_service

_PACKAGES = {
    "handlers": ("answers", "api", "consumer_info", "direct", "lists", "streams"),
    "jetstream": ("advisories", "consumer_advisories"),
    "node": ("links", "sys_service"),
}
_PLACES = {
    name: f"jsctl.broker.{package}.{name}" for package, names in _PACKAGES.items() for name in names
}
_loaded: dict[str, ModuleType] = {}


def __getattr__(name: str) -> ModuleType:
    """One of the modules by its name."""
    module = _loaded.get(name)
    if module is None:
        place = _PLACES.get(name)
        if place is None:
            raise AttributeError(name)
        from importlib import import_module

        module = _loaded[name] = import_module(place)
    return module


__all__ = [
    "advisories",
    "answers",
    "api",
    "consumer_advisories",
    "consumer_info",
    "direct",
    "links",
    "lists",
    "streams",
    "sys_service",
]
