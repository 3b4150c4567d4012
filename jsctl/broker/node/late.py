"""Modules that a server needs only once somebody asks it something.

Most of what a broker could import is JetStream, answers requests, fills monitoring pages and words
events and advisories; some of it is for clusters alone. Each such module is imported with the
first request, page, listener or link that needs it, and JetStream's when it starts, so that a
server, and a test that starts one, is ready in half the time, and in a quarter without JetStream.
What decides whether it is needed (subscriptions, counters, whether anybody listens) is in modules
that are always there: `sys_door`, `client_events`, and `advisories` with JetStream.
"""

from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jsctl.broker.cluster import engine, last_writes, traffic
    from jsctl.broker.handlers import answers, api, consumer_info, direct, lists, streams
    from jsctl.broker.jetstream import advisories, consumer_advisories
    from jsctl.broker.node import advisories as jetstream_advisories
    from jsctl.broker.node import (
        api_service,
        api_view,
        engine_setup,
        links,
        peers,
        reports,
        sys_service,
        usage,
    )
    from jsctl.broker.node import direct as direct_gets

_PACKAGES = {
    "cluster": ("engine", "last_writes", "traffic"),
    "handlers": ("answers", "api", "consumer_info", "direct", "lists", "streams"),
    "jetstream": ("advisories", "consumer_advisories"),
    "node": (
        "api_service",
        "api_view",
        "engine_setup",
        "links",
        "peers",
        "reports",
        "sys_service",
        "usage",
    ),
}
_PLACES = {
    name: f"jsctl.broker.{package}.{name}" for package, names in _PACKAGES.items() for name in names
} | {
    "direct_gets": "jsctl.broker.node.direct",
    "jetstream_advisories": "jsctl.broker.node.advisories",
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
    "api_service",
    "api_view",
    "consumer_advisories",
    "consumer_info",
    "direct",
    "direct_gets",
    "engine",
    "engine_setup",
    "jetstream_advisories",
    "last_writes",
    "links",
    "lists",
    "peers",
    "reports",
    "streams",
    "sys_service",
    "traffic",
    "usage",
]
