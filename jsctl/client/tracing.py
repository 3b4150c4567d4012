"""Asks servers to tell the way of a message: NATS ADR 41.

Each server that the message comes to tells once what it did with it; the parts are put together
by the numbers that servers give to the links between them.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import field
from time import monotonic
from typing import TYPE_CHECKING, Any

from jsctl.api import jsontext
from jsctl.dataclass import dataclass
from jsctl.errors import Unreachable

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient

PROPAGATION_S = 0.25
"""Far servers have to know of the inbox before they tell something."""
SERVERS_MAX = 10_000
WAY_LENGTH_MAX = 100
"""Servers behind each other: what is told beyond is not shown, and no server is there twice."""
CLIENT, ROUTER, GATEWAY, SYSTEM, LEAF, JETSTREAM, ACCOUNT = range(7)
MISSING = "This trace event was missing"

Event = Mapping[str, object]


@dataclass(slots=True)
class Passage:
    """What one server told; `links` are the passages that its links led to, by their hop."""

    server: Mapping[str, object]
    events: list[Event]
    hop: str = ""
    hops: int = 0
    links: dict[str, "Passage"] = field(default_factory=dict)

    def of(self, kind: str) -> Iterator[Event]:
        """Its events of a type: in, sm, si, se, js, eg."""
        return (event for event in self.events if event.get("type") == kind)

    @property
    def ingress(self) -> Event | None:
        """How the message came in."""
        return next(self.of("in"), None)


async def trace(
    client: "NatsClient",
    subject: str,
    payload: bytes,
    headers: Mapping[str, str],
    *,
    deliver: bool,
    timeout_s: float,
) -> Passage:
    """The way of a message, from the server that gets it on. Raises Unreachable.

    Without `deliver` the message is told about, but reaches nobody.
    """
    inbox = client.new_inbox()
    arrived: asyncio.Queue[Msg] = asyncio.Queue()
    subscription = await client.subscribe(inbox, cb=arrived.put)
    await client.flush()
    await asyncio.sleep(PROPAGATION_S)
    own = {**headers, "Nats-Trace-Dest": inbox}
    if not deliver:
        own["Nats-Trace-Only"] = "true"
    await client.publish(subject, payload, headers=own)
    origin: Passage | None = None
    others: dict[str, Passage] = {}
    try:
        ends = monotonic() + timeout_s
        while len(others) < SERVERS_MAX:
            async with asyncio.timeout(max(0.0, ends - monotonic())):
                found = _passage((await arrived.get()).data)
            if found is None:
                continue
            if found.hop:
                others[found.hop] = found
            else:
                origin = found
            if origin is not None and _whole(origin, others):
                break
    except TimeoutError:
        if origin is None:
            raise Unreachable("nats: timeout") from None
    finally:
        await subscription.unsubscribe()
    assert origin is not None
    return _linked(origin, others)


def _passage(data: bytes) -> Passage | None:
    """What a server told; None for anything else."""
    try:
        found: Any = jsontext.parse(data)
        events: list[Mapping[str, object]] = [
            event for event in found["events"] if isinstance(event, dict)
        ]
        header = (found.get("request") or {}).get("header") or {}
        hop = next(iter(header.get("Nats-Trace-Hop") or ()), "")
        passage = Passage(dict(found["server"]), events, str(hop), int(found.get("hops") or 0))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    ingress = passage.ingress
    if ingress is None or (not passage.hop and ingress.get("kind") != CLIENT):
        return None
    return passage


def _hops(passage: Passage) -> Iterator[str]:
    for event in passage.of("eg"):
        hop = event.get("hop")
        if isinstance(hop, str) and hop:
            yield hop


def _whole(passage: Passage, others: Mapping[str, Passage]) -> bool:
    """Whether every server that got the message has told."""
    waiting, seen = [passage], set[str]()
    while waiting:
        one = waiting.pop()
        for hop in _hops(one) if one.hops else ():
            if hop not in others:
                return False
            if hop not in seen:
                seen.add(hop)
                waiting.append(others[hop])
    return True


def _linked(origin: Passage, others: Mapping[str, Passage]) -> Passage:
    """The tree; a server that has not told is there with an error."""
    waiting, left = [(origin, WAY_LENGTH_MAX)], dict(others)
    while waiting:
        one, length = waiting.pop()
        for hop in _hops(one) if length else ():
            found = left.pop(hop, None)
            if found is None and one.hops and hop not in others:
                error = {"type": "in", "error": MISSING}
                one.links[hop] = Passage({}, [error], hop)
            elif found is not None:
                one.links[hop] = found
                waiting.append((found, length - 1))
    return origin
