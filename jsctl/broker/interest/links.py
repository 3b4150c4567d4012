"""Connections to other servers as targets of subscriptions, as far as they know of no account."""

from typing import ClassVar, Literal

from jsctl.broker.interest.kinds import GATEWAY, PeerKind, Served
from jsctl.broker.interest.outbound import Origin, Outbound

GATEWAY_REPLY = b"_GR_."
"""Replies that lead to another cluster begin so: `_GR_.<cluster>.<server>.<reply>`."""
JETSTREAM = b"$JS."
BROKERS = b"_JSB."
"""What brokers say to each other: over routes and gateways, where nobody else speaks."""
GATEWAY_REPLIES = GATEWAY_REPLY + b">"
"""All that leads to another cluster."""
GATEWAY_HASH_BYTES = 6
GATEWAY_REPLY_BYTES = len(GATEWAY_REPLY) + 2 * (GATEWAY_HASH_BYTES + 1)
"""What stands in front of the reply itself."""


def is_request(subject: bytes) -> bool:
    """Whether JetStream, here or in another domain, would take a message for a request."""
    return subject.startswith(JETSTREAM) and b"API" in subject.split(b".", 3)[1:3]


def without_way(subject: bytes) -> bytes:
    """A subject without what leads to another cluster in front of it: permissions are for this."""
    return subject[GATEWAY_REPLY_BYTES:] if subject.startswith(GATEWAY_REPLY) else subject


class ServerLink(Outbound):
    """A connection to another server, which has other subscribers behind it.

    `peer` is the other server's id, `traces` whether it traces messages, `serves` whether it is a
    broker with a JetStream: it sees to what its clients ask of that.
    """

    __slots__ = ("in_bytes", "in_messages", "peer", "serves", "traces")

    served: ClassVar[Literal[Served.ONCE]] = Served.ONCE

    def __init__(
        self,
        conn: int,
        kind: PeerKind,
        peer: str,
        *,
        headers: bool = True,
        traces: bool = True,
        serves: bool = False,
    ) -> None:
        super().__init__(conn, kind)
        self.peer = peer
        self.headers = headers
        self.traces = traces
        self.serves = serves
        self.in_messages = 0
        self.in_bytes = 0

    def takes(self, subject: bytes, origin: Origin) -> bool:
        """Whether a message is for this link at all; its kind apart."""
        return True

    def takes_replies_of(self, kind: PeerKind, subject: bytes) -> bool:
        """Whether a message comes back to it that its kind does not hear."""
        return False

    def notes_replies(self, account: str) -> bool:
        """Whether something is to be done about the reply of each message of an account."""
        return False


class GatewayLink(ServerLink):
    """A connection to a server of another cluster: `outbound` ones carry messages there, and bring
    what is listened to there; the others do so the other way round.

    `gateway` is the other cluster's name, `mark` what stands for it in replies. In accounts among
    `replying` somebody here has just subscribed, so that it is not known over there yet.
    """

    __slots__ = ("gateway", "link_id", "mark", "outbound", "replying", "rtt_ns")

    account: ClassVar[None] = None

    def __init__(
        self,
        conn: int,
        link_id: int,
        peer: str,
        gateway: str,
        mark: bytes,
        replying: set[str],
        *,
        outbound: bool,
        name: str = "",
        headers: bool = True,
        traces: bool = True,
        serves: bool = False,
    ) -> None:
        super().__init__(conn, GATEWAY, peer, headers=headers, traces=traces, serves=serves)
        self.name = name
        self.link_id = link_id
        self.gateway = gateway
        self.mark = mark
        self.replying = replying
        self.outbound = outbound
        self.rtt_ns = 0

    @property
    def number(self) -> int:
        """By which monitoring knows the connection."""
        return self.link_id

    def notes_replies(self, account: str) -> bool:
        """See `replying`."""
        return account in self.replying


class ReplyWay:
    """The target of what is said to a reply that leads to another cluster.

    `prefix` is what the reply had in front there. Without one it is a door: of what has a prefix in
    front of it.
    """

    __slots__ = ("prefix", "until_ns")

    served: ClassVar[Literal[Served.RETURNED]] = Served.RETURNED

    def __init__(self, prefix: bytes = b"", until_ns: int = 0) -> None:
        self.prefix = prefix
        self.until_ns = until_ns

    @property
    def is_door(self) -> bool:
        """See the class."""
        return not self.prefix
