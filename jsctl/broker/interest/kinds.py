"""Kinds of peers: all that routing has to know of who sends a message, and of who is to get it.

Routing asks no connection for its class. What differs between kinds is a row here; what differs
between two connections of a kind (does it hear itself, does it take headers) is in `Outbound`; and
how a target is served at all is its `Served`.
"""

from dataclasses import replace
from enum import Enum, auto
from typing import Final

from jsctl.dataclass import dataclass


class Served(Enum):
    """How a message reaches a target of subscriptions."""

    EACH = auto()
    """Once for each of its subscriptions, under their ids: whoever speaks a client protocol."""
    ONCE = auto()
    """Once for each connection, which has other subscribers behind it."""
    CAPTURED = auto()
    """It is kept until its owner in the broker takes it."""
    CROSSING = auto()
    """It goes on in another account, by a service import."""
    SHADOW = auto()
    """It reaches who listens through a stream import."""
    RETURNED = auto()
    """It goes to the cluster that a reply came from."""


EACH: Final = Served.EACH
CAPTURED: Final = Served.CAPTURED
SHADOW: Final = Served.SHADOW
"""Members of an enum are found much slower than these, and some are asked for per message."""


@dataclass(frozen=True, slots=True, eq=False)
class PeerKind:
    """One row: what connections of a kind have in common."""

    name: str
    number: int
    """As events of traces number it."""
    hears: frozenset[str] | None = None
    """The kinds whose messages reach it; None for all."""
    meshed: bool = False
    """Its servers hear each other anyway: what one says goes on to leaf nodes alone."""
    draws: bool = True
    """Its messages are for all queue groups. Else the server that it leads to has chosen: a message
    names the groups that are to be served from here."""
    crosses: bool = True
    """Its requests are led into other accounts here, and not where they came in."""
    pauses: bool = False
    """It is not read while somebody whom it sends to does not keep up."""
    expendable: bool = False
    """It is closed when it does not keep up itself."""
    verb: bytes = b""
    """How a message begins."""
    header_verb: bytes = b""
    """How one with a header block begins."""

    def reaches(self, other: "PeerKind") -> bool:
        """Whether messages of this kind are for `other`."""
        return other.hears is None or self.name in other.hears


CLIENT = PeerKind("client", 0, pauses=True, expendable=True, verb=b"MSG ", header_verb=b"HMSG ")

ROUTE = PeerKind(
    "route",
    1,
    hears=frozenset({"client", "broker", "leaf", "gateway"}),
    meshed=True,
    draws=False,
    crosses=False,
    verb=b"RMSG ",
    header_verb=b"HMSG ",
)
LEAF = PeerKind(
    "leaf",
    4,
    hears=frozenset({"client", "broker", "route", "gateway", "leaf", "hub"}),
    draws=False,
    expendable=True,
    verb=b"LMSG ",
    header_verb=b"HMSG ",
)
"""A leaf node that hangs on this server."""

HUB = replace(LEAF, name="hub", hears=frozenset({"client", "broker", "leaf", "hub"}))
"""A hub that this server hangs on. The other servers of a cluster hang on it themselves, so it
hears nothing of theirs, and they hear nothing of it."""

GATEWAY = PeerKind(
    "gateway",
    2,
    hears=frozenset({"client", "broker", "leaf", "hub"}),
    draws=False,
    crosses=False,
    verb=b"RMSG ",
    header_verb=b"HMSG ",
)
"""A server of another cluster: what it says is for this one and its leaf nodes, and goes no
further."""

BROKER = PeerKind("broker", 3)
"""The broker itself: what it publishes, and its sinks, which capture what anybody sends."""

KINDS = (CLIENT, ROUTE, GATEWAY, LEAF, HUB, BROKER)
