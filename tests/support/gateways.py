"""Clusters that gateways make one super-cluster of, as processes of either kind."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support.waiting import wait_for

PAIRS = [(one, other) for one in KINDS for other in KINDS]
"""(kind of the servers of cluster a, kind of those of cluster b)."""
IDS = [f"{one}-{other}" for one, other in PAIRS]
LISTENING = re.compile(r"Listening for gateways connections on \S+:(\d+)")
ROUTES = re.compile(r"Listening for route connections on \S+:(\d+)")


def gateway_port(broker: Broker) -> int:
    """Where other clusters connect."""
    found = wait_for(lambda: LISTENING.findall(broker.logs), "the port of gateways")
    return int(found[-1])


def route_port(broker: Broker) -> int:
    """Where other servers of the cluster connect."""
    found = wait_for(lambda: ROUTES.findall(broker.logs), "the port of routes")
    return int(found[-1])


def remote(name: str, *ports: int, login: str = "", more: str = "") -> str:
    """One entry of `gateways`."""
    who = f"{login}@" if login else ""
    urls = ", ".join(f'"nats://{who}{HOST}:{port}"' for port in ports)
    return f"{{ name: {name}, urls: [{urls}], {more} }}"


def block(name: str, *remotes: str, port: int = -1, more: str = "") -> str:
    """A `gateway` block."""
    listed = "\n".join(remotes)
    return f'gateway {{ name: {name}, listen: "{HOST}:{port}", gateways: [ {listed} ], {more} }}\n'


def page(broker: Broker, path: str) -> dict[str, Any]:
    """A monitoring page."""
    found = broker.monitor(path, timeout_s=60)
    assert isinstance(found, dict)
    return found


def gatewayz(broker: Broker, query: str = "accs=1&subs=1") -> dict[str, Any]:
    """The page `/gatewayz`."""
    return page(broker, f"/gatewayz?{query}")


def linked(broker: Broker, *clusters: str, inbound: int = 1) -> None:
    """Wait until a server is connected with these clusters, and so many servers of each with it."""

    def fact() -> bool:
        found = gatewayz(broker, "")
        there = found.get("outbound_gateways") or {}
        here = found.get("inbound_gateways") or {}
        enough = all(len(here.get(name, ())) >= inbound for name in clusters)
        return enough and set(there) == set(clusters)

    wait_for(fact, f"{broker.name} is connected with {clusters}")


def told(broker: Broker, subject: str, *, gone: bool = False, count: int = 1) -> None:
    """Wait until so many other clusters told a server that they listen to a subject, or until none
    does any more."""

    def fact() -> bool:
        outbound = gatewayz(broker)["outbound_gateways"] or {}
        found = sum(f'"{subject}"' in json.dumps(row) for row in outbound.values())
        return not found if gone else found >= count

    wait_for(fact, f"{broker.name} is told that {subject} is {'not ' * gone}listened to")


@contextmanager
def pair(
    kinds: tuple[str, str], *, a: str = "", b: str = "", more: Sequence[str] = ("", "")
) -> Iterator[tuple[Broker, Broker]]:
    """Two clusters of one server; `a` and `b` are further configuration, `more` stands in the
    blocks. The second one knows the first, which learns of it."""
    with ExitStack() as stack:
        one = KINDS[kinds[0]](config=block("A", more=more[0]) + a, name="a1")
        stack.enter_context(one)
        there = remote("A", gateway_port(one))
        other = KINDS[kinds[1]](config=block("B", there, more=more[1]) + b, name="b1")
        stack.enter_context(other)
        linked(one, "B")
        linked(other, "A")
        yield one, other
