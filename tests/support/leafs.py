"""Hubs and leaf nodes as processes, of either kind, and what is known of interest between them."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support.waiting import wait_for

_NEXT = "\n"
PAIRS = [(hub, leaf) for hub in KINDS for leaf in KINDS]
"""(kind of the hub, kind of the leaf node)."""
IDS = [f"{hub}-{leaf}" for hub, leaf in PAIRS]
LISTENING = re.compile(r"Listening for leafnode connections on \S+:(\d+)")
ROUTES = re.compile(r"Listening for route connections on \S+:(\d+)")


def leaf_port(hub: Broker) -> int:
    """Where leaf nodes connect."""
    found = wait_for(lambda: LISTENING.findall(hub.logs), "the port of leaf nodes")
    return int(found[-1])


def route_port(broker: Broker) -> int:
    """Where other servers of the cluster connect."""
    found = wait_for(lambda: ROUTES.findall(broker.logs), "the port of routes")
    return int(found[-1])


def hub_block(more: str = "") -> str:
    """A `leafnodes` block that listens."""
    return f'leafnodes {{ listen: "{HOST}:-1", {more} }}\n'


def remote(port: int, more: str = "", login: str = "") -> str:
    """One remote of a `leafnodes` block."""
    who = f"{login}@" if login else ""
    return f'{{ url: "nats://{who}{HOST}:{port}", {more} }}'


def spoke_block(*remotes: str, more: str = "") -> str:
    """A `leafnodes` block that dials."""
    return f'leafnodes {{ reconnect: "100ms", remotes: [ {_NEXT.join(remotes)} ], {more} }}\n'


def leafz(broker: Broker, *, subscriptions: bool = False) -> list[dict[str, Any]]:
    """The rows of `/leafz`."""
    page = broker.monitor(f"/leafz?subs={int(subscriptions)}", timeout_s=60)
    assert isinstance(page, dict)
    rows = page["leafs"]
    assert isinstance(rows, list)
    return [row for row in rows if isinstance(row, dict)]


def linked(broker: Broker, count: int = 1) -> list[dict[str, Any]]:
    """Wait until so many leaf nodes and hubs are connected, and both sides have told the account's
    interest; the rows of `/leafz`."""

    def rows() -> list[dict[str, Any]] | None:
        found = leafz(broker, subscriptions=True)
        whole = all(
            any(subject.startswith("$LDS.") for subject in row.get("subscriptions_list", ()))
            for row in found
        )
        return found if len(found) == count and whole else None

    if not count:
        wait_for(lambda: not leafz(broker), f"{broker.name} has no leaf nodes")
        return []
    found = wait_for(rows, f"{broker.name} has {count} leaf nodes")
    assert found is not None
    return found


def told(broker: Broker, subject: str, *, gone: bool = False, count: int = 1) -> None:
    """Wait until so many of a server's leaf nodes or hubs have told it of interest in a subject, or
    until none has any more."""

    def fact() -> bool:
        found = 0
        for row in leafz(broker, subscriptions=True):
            found += subject in row.get("subscriptions_list", ())
        return not found if gone else found >= count

    wait_for(fact, f"{broker.name} is told that {subject} is {'not ' * gone}listened to")


def routed(broker: Broker, subject: str, *, gone: bool = False) -> None:
    """The same of the other servers of its cluster."""

    def fact() -> bool:
        text = json.dumps(broker.monitor("/routez?subs=1", timeout_s=60))
        return (f'"{subject}"' in text) is not gone

    wait_for(fact, f"{broker.name} is told by routes that {subject} is listened to")


@contextmanager
def pair(
    kinds: tuple[str, str],
    *,
    hub: str = "",
    listen: str = "",
    leaf: str = "",
    remote_more: str = "",
    login: str = "",
    links: int = 1,
) -> Iterator[tuple[Broker, Broker]]:
    """A hub and a leaf node. `hub` and `leaf` are further configuration, `listen` stands in the
    block of the hub, `remote_more` and `login` in the remote of the leaf node."""
    with ExitStack() as stack:
        one = KINDS[kinds[0]](config=hub_block(listen) + hub, name="hub")
        stack.enter_context(one)
        block = spoke_block(remote(leaf_port(one), remote_more, login))
        other = KINDS[kinds[1]](config=block + leaf, name="leaf")
        stack.enter_context(other)
        if links:
            linked(one, links)
            linked(other, links)
        yield one, other
