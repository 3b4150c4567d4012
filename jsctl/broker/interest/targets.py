"""Who messages go to: sinks inside the server, connections outside.

Everything here is plain data on the hot path; the router fills `out` and `messages`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol, TypeAlias

from jsctl.broker.interest.guard import Guard
from jsctl.broker.interest.kinds import HUB, LEAF, ROUTE, PeerKind, Served
from jsctl.broker.interest.links import GatewayLink, ReplyWay, ServerLink
from jsctl.broker.interest.outbound import SINK_TARGETS, TARGETS_SHIFT, Origin, Outbound
from jsctl.broker.subject.matching import Filters, intersection
from jsctl.broker.subject.sublist import Sublist
from jsctl.broker.subject.transforms import Transform

Captured: TypeAlias = tuple[bytes, bytes, bytes, bytes, object]
"""(subject, reply, headers, payload, origin); headers empty when there are none. The origin is
the connection that it came from, None for the broker itself. That of a traced message is its
trace, where a stream captures it."""

Key: TypeAlias = tuple[bytes, bytes]
"""(subject, queue) of interest."""
RouteKey: TypeAlias = tuple[str, bytes, bytes, bytes]
"""(account, subject, queue, origin) of interest that another server of the cluster has, the origin
being the cluster of leaf nodes on whose behalf."""


class Namespace(Protocol):
    """What routing needs of an account: its subscriptions, and what to count where."""

    name: str
    wire_name: bytes
    tag: str
    is_system: bool
    sublist: AccountSublist
    streams: list[StreamImport]
    interest: dict[Key, int]
    out_messages: int
    out_bytes: int


class ClientPeer(Outbound):
    """A connection that gets a message once for each of its subscriptions: a client.

    `echo` tells whether it hears itself. One that `tracks_replies` has to be told of each request
    that is delivered to it.
    """

    __slots__ = ("client_id", "echo", "subscriptions", "tracks_replies")

    served: ClassVar[Literal[Served.EACH]] = Served.EACH

    def __init__(self, conn: int, kind: PeerKind, client_id: int) -> None:
        super().__init__(conn, kind)
        self.client_id = client_id
        self.echo = True
        self.tracks_replies = False
        self.subscriptions: dict[bytes, Subscription] = {}

    @property
    def number(self) -> int:
        """By which monitoring knows the connection."""
        return self.client_id

    @abstractmethod
    def note_reply(self, reply: bytes) -> None:
        """A request with this reply was delivered to it."""


ROUTE_IDS_FROM = 1 << 20
"""Routes are numbered from here on, apart from clients and leaf nodes."""


class RouteLink(ServerLink):
    """One connection to another server of the cluster.

    `account` names the account that it is dedicated to; pool links have none, and carry the
    accounts whose hash falls on `pool_index` of `pool_size` (1 for a peer without a pool).
    """

    __slots__ = ("account", "pool_index", "pool_size", "subscriptions", "unclaimed")

    def __init__(
        self,
        conn: int,
        peer: str,
        account: str | None = None,
        pool_index: int = 0,
        pool_size: int = 1,
        *,
        name: str = "",
        traces: bool = True,
        serves: bool = False,
    ) -> None:
        super().__init__(conn, ROUTE, peer, traces=traces, serves=serves)
        self.name = name
        self.account = account
        self.pool_index = pool_index
        self.pool_size = pool_size
        self.subscriptions: dict[RouteKey, Subscription] = {}
        self.unclaimed: dict[RouteKey, int] = {}
        """Interest, with its weight, in accounts that this server does not know."""

    @property
    def number(self) -> int:
        """By which monitoring knows the connection."""
        return ROUTE_IDS_FROM + self.conn


SERVICE_REPLY = b"_R_."
"""Replies to requests that were led into another account begin so."""


class LeafLink(ServerLink):
    """A connection to a leaf node (`LEAF`), or to the hub of this one (`HUB`), in one account.

    `told` is what the other side knows of interest here, with its weights. On an `isolated` one
    other leaf nodes' interest is not told. One that `tracks_replies` has a guard that is to know
    of each request that is sent.
    """

    __slots__ = (
        "account",
        "guard",
        "isolated",
        "leaf_id",
        "subscriptions",
        "told",
        "tracks_replies",
    )

    def __init__(
        self,
        conn: int,
        leaf_id: int,
        account: Namespace,
        *,
        hub: bool,
        peer: str,
        cluster: bytes,
        guard: Guard | None = None,
        isolated: bool = False,
    ) -> None:
        super().__init__(conn, HUB if hub else LEAF, peer)
        self.account = account
        self.cluster = cluster
        self.guard = guard
        self.isolated = isolated
        self.leaf_id = leaf_id
        self.subscriptions: dict[Key, Subscription] = {}
        self.told: dict[Key, int] = {}
        self.tracks_replies = guard is not None and guard.tracks_replies

    @property
    def number(self) -> int:
        """By which monitoring knows the connection."""
        return self.leaf_id

    def notes_replies(self, account: str) -> bool:
        """See `tracks_replies`."""
        return self.tracks_replies

    def cluster_in(self, account: object) -> bytes:
        """What a service import led into another account is no echo to leaf nodes there."""
        return b"" if self.kind is LEAF and account is not self.account else self.cluster

    def takes(self, subject: bytes, origin: Origin) -> bool:
        """Whether a message is for it: nothing comes back to where it is from, nor to another leaf
        node of that cluster."""
        if origin is not None and (
            origin is self or self.cluster == origin.cluster_in(self.account) != b""
        ):
            return False
        return self.guard is None or self.guard.may_send(subject)

    def takes_replies_of(self, kind: PeerKind, subject: bytes) -> bool:
        """A hub's request may be answered by another server of the cluster."""
        return kind is ROUTE and subject.startswith(SERVICE_REPLY)


class Sink:
    """An internal subscription target: collects messages until somebody takes them."""

    __slots__ = ("account", "arrivals", "dirty", "messages", "owner", "service", "stream", "traced")

    served: ClassVar[Literal[Served.CAPTURED]] = Served.CAPTURED
    nearest: ClassVar[bool] = False
    """Whether, of a queue group, no member of another server is drawn in its place."""

    def __init__(
        self,
        owner: object = None,
        account: Namespace | None = None,
        *,
        stream: str = "",
        service: str = "",
        arrivals: bool = False,
    ) -> None:
        self.owner = owner
        self.arrivals = arrivals
        """Whether a consumer delivers here, whose messages are shown as what they are."""
        self.service = service
        """The account that nats-server answers such requests in, where it is another one."""
        self.stream = stream
        """The stream that stores what is captured; empty for other owners."""
        self.account = account
        self.messages: list[Captured] = []
        self.dirty = False
        self.traced = False
        """Whether some of the messages are traced."""

    def take(self) -> list[Captured]:
        """The messages captured so far; the sink is empty afterwards."""
        messages = self.messages
        self.messages = []
        self.dirty = self.traced = False
        return messages


class AccountImport:
    """A way into another account: a service import, or the way back of one request's replies.

    `service`: replies of requests are led back. `response`: is such a way back, to `reply`;
    `single` ones end with their first message. `share`: who asks is told in detail.
    """

    __slots__ = (
        "account",
        "allow_trace",
        "reply",
        "response",
        "service",
        "share",
        "single",
        "threshold_ns",
        "transform",
    )

    served: ClassVar[Literal[Served.CROSSING]] = Served.CROSSING

    def __init__(
        self,
        account: Namespace,
        *,
        transform: Transform | None = None,
        reply: bytes = b"",
        service: bool = False,
        share: bool = False,
        single: bool = False,
        threshold_ns: int = 0,
        allow_trace: bool = False,
    ) -> None:
        self.account = account
        self.allow_trace = allow_trace
        self.transform = transform
        self.reply = reply
        self.response = transform is None
        self.service = service
        self.share = share
        self.single = single
        self.threshold_ns = threshold_ns

    def map_subject(self, subject: bytes) -> bytes:
        """The subject on the other side; empty when this way is not for it."""
        if self.transform is None:
            return self.reply
        return self.transform.apply(subject) or b""


class StreamImport:
    """What an account takes of another one's subjects; `local` is the pattern it is known by.

    `forth` maps subjects of the exporter to those of the importer, `back` the other way.
    """

    __slots__ = ("allow_trace", "back", "exporter", "forth", "local")

    def __init__(
        self,
        exporter: Namespace,
        local: bytes,
        forth: Transform,
        back: Transform,
        *,
        allow_trace: bool = False,
    ) -> None:
        self.exporter = exporter
        self.local = local
        self.forth = forth
        self.back = back
        self.allow_trace = allow_trace

    def exported(self, pattern: bytes) -> bytes:
        """What `pattern` listens to in the exporting account; empty when it is nothing."""
        common = intersection(pattern, self.local)
        return b"" if common is None else self.back.apply(common) or b""

    def seen(self, subject: bytes, shown: bytes) -> bytes:
        """The subject that the importer sees.

        A message that is shown under another subject than its own, as JetStream's are, keeps
        it: where it is delivered is nothing to the importer.
        """
        return self.forth.apply(subject) or b"" if shown == subject else shown


class Shadow:
    """The target of a subscription in an exporting account that stands for `sub` of an importer.

    It has the queue group of `sub`, and other servers are told of it: whoever publishes in the
    exporting account, on any server, sees one group, and the message crosses where it is received.
    """

    __slots__ = ("sub", "way")

    served: ClassVar[Literal[Served.SHADOW]] = Served.SHADOW

    def __init__(self, sub: Subscription, way: StreamImport) -> None:
        self.sub = sub
        self.way = way


AnyLink: TypeAlias = RouteLink | LeafLink | GatewayLink
Target: TypeAlias = "ClientPeer | Sink | AnyLink | AccountImport | Shadow | ReplyWay"


class Subscription:
    """One subscription. `weight` is the number of members it stands for (remote queues), `origin`
    the cluster of leaf nodes on whose behalf a link told of it."""

    __slots__ = (
        "account",
        "delivered",
        "denied",
        "infix",
        "local_only",
        "maximum",
        "origin",
        "queue",
        "sid",
        "subject",
        "target",
        "weight",
    )

    def __init__(
        self,
        account: Namespace,
        subject: bytes,
        queue: bytes,
        sid: bytes,
        target: Target,
        *,
        local_only: bool = False,
        weight: int = 1,
        origin: bytes = b"",
        denied: Filters | None = None,
    ) -> None:
        self.account = account
        self.subject = subject
        self.queue = queue
        self.sid = sid
        self.infix = b" " + sid + b" "
        self.target = target
        self.local_only = local_only
        self.weight = weight
        self.origin = origin
        self.maximum = self.delivered = 0
        self.denied = denied


class QueueGroup:
    """The members of one queue group that a subject matches.

    One of `total` is drawn: each of this cluster has the same chance, unless one here is `nearest`.
    `remote` are members of this cluster, as links with the number of members that each stands for.
    `last` are leaf nodes, here or at other servers, and other clusters: they are asked when there
    is nobody else.
    """

    __slots__ = ("last", "local", "name", "remote", "total")

    def __init__(self, members: Sequence[Subscription]) -> None:
        self.name = members[0].queue
        self.local: list[Subscription] = []
        self.remote: list[tuple[RouteLink, int]] = []
        self.last: list[Subscription] = []
        for one in members:
            target = one.target
            if leaf_of(one) is not None or one.origin or isinstance(target, GatewayLink):
                self.last.append(one)
            elif isinstance(target, RouteLink):
                self.remote.append((target, one.weight))
            else:
                self.local.append(one)
        self.total = len(self.local)
        if not any([isinstance(one.target, Sink) and one.target.nearest for one in self.local]):
            self.total += sum(weight for _, weight in self.remote)

    def remote_member(self, drawn: int) -> RouteLink:
        """The link of a drawn remote member."""
        for link, weight in self.remote:
            drawn -= weight
            if drawn < 0:
                return link
        raise AssertionError("somebody was drawn who is not there")


def leaf_of(sub: Subscription) -> LeafLink | None:
    """The leaf node, or hub, that has subscribed, perhaps through a stream import."""
    target = sub.target
    if target.served is Served.SHADOW:
        target = target.sub.target
    return target if isinstance(target, LeafLink) else None


class SublistResult:
    """Where messages of one subject go; shared by all that publish it, never changed.

    `simple` plans have only clients without a delivery limit or filter, sinks and routes; a `sole`
    one has one client and nothing else, and one with a `lone` link only that other server; in a
    `doubled` one a client listens more than once. In one with `leafs` some are leaf nodes, hubs, or
    other clusters, and `returns` lead back to those.
    `weight` is what it serves, in clients; `spread` what one message to them costs and `built` what
    making the plan does, in units of `effort`.
    """

    __slots__ = (
        "bridges",
        "built",
        "clients",
        "doubled",
        "empty",
        "groups",
        "leafs",
        "links",
        "lone",
        "returns",
        "shadows",
        "simple",
        "sinks",
        "sole",
        "spread",
        "weight",
    )

    def __init__(
        self, plain: tuple[Subscription, ...], groups: tuple[tuple[Subscription, ...], ...]
    ) -> None:
        clients: list[tuple[Subscription, ClientPeer]] = []
        sinks: list[Sink] = []
        links: dict[int, AnyLink] = {}
        bridges: list[AccountImport] = []
        shadows: list[tuple[Subscription, Shadow]] = []
        returns: list[ReplyWay] = []
        self.simple = not groups
        for sub in plain:
            target = sub.target
            if target.served is Served.EACH:
                clients.append((sub, target))
                if sub.maximum or sub.denied is not None or target.tracks_replies:
                    self.simple = False
            elif target.served is Served.ONCE:
                links[id(target)] = target
            elif target.served is Served.CAPTURED:
                sinks.append(target)
            elif target.served is Served.CROSSING:
                bridges.append(target)
                self.simple = False
            elif target.served is Served.RETURNED:
                returns.append(target)
                self.simple = False
            else:
                shadows.append((sub, target))
                self.simple = False
        self.clients = clients
        self.sinks = sinks
        self.bridges = bridges
        self.returns = returns
        self.shadows = shadows
        self.links = list(links.values())
        self.groups = [QueueGroup(members) for members in groups]
        self.leafs = any([one.kind is not ROUTE for one in self.links])
        self.leafs = self.leafs or any([leaf_of(sub) for one in self.groups for sub in one.last])
        self.simple = self.simple and not self.leafs
        self.empty = not plain and not groups
        self.weight = len(clients) + SINK_TARGETS * len(sinks)
        self.spread = len(clients) + SINK_TARGETS * len([*bridges, *shadows]) >> TARGETS_SHIFT
        self.built = 1 + (len(plain) + sum(map(len, groups)) >> TARGETS_SHIFT)
        self.sole = self.simple and len(clients) == 1 and not sinks and not links
        only = next(iter(links.values())) if self.simple and len(links) == 1 else None
        self.lone = only if isinstance(only, RouteLink) and not (clients or sinks) else None
        self.doubled = len({id(session) for _, session in clients}) < len(clients)


AccountSublist = Sublist[Subscription, SublistResult]
