"""Messages put into the hands of their targets in a super-cluster: as in `delivery`, and replies
find their way between clusters, see `gateway_replies`."""

from collections.abc import Callable, Container, Sequence

from jsctl.broker.accounts.crossing import Crossings, LeadBack
from jsctl.broker.interest.kinds import GATEWAY, HUB, ROUTE
from jsctl.broker.interest.links import (
    GATEWAY_REPLY,
    GATEWAY_REPLY_BYTES,
    GatewayLink,
    ReplyWay,
)
from jsctl.broker.interest.outbound import Origin, kind_of
from jsctl.broker.interest.targets import (
    AnyLink,
    ClientPeer,
    LeafLink,
    Namespace,
    RouteLink,
    SublistResult,
    Subscription,
)
from jsctl.broker.routing.delivery import ACK_PREFIX, Deliverer
from jsctl.broker.routing.gateway_replies import GatewayReplies, mark
from jsctl.broker.turn import Jitter

LinksOf = Callable[[str], Sequence[RouteLink]]
"""The links to other servers of the cluster that carry an account."""


class GatewayDeliverer(Deliverer):
    """See the module."""

    def __init__(
        self,
        jitter: Jitter,
        expire: Callable[[ClientPeer, Subscription], None],
        lead_back: LeadBack,
        routes_of: LinksOf,
        replies: GatewayReplies,
    ) -> None:
        super().__init__(jitter, expire, lead_back)
        self.crossings = Crossings(lead_back, replies.clusters)
        self._routes_of = routes_of
        self._replies = replies

    def one(
        self,
        origin: Origin,
        account: Namespace,
        plan: SublistResult,
        subject: bytes,
        reply: bytes,
        headers: bytes | None,
        payload: bytes,
        shown: bytes,
        queues: Container[bytes] = (),
    ) -> bool:
        """As in `Deliverer`; what is for another cluster, or comes back from one, goes its way."""
        beyond = origin is not None and origin.kind in (GATEWAY, ROUTE, HUB)
        for way in plan.returns:
            message = (subject, reply, headers, payload, shown)
            if beyond and not way.prefix:
                return self._came_back(origin, account, *message)
            if way.until_ns > self.now_ns and kind_of(origin) not in (GATEWAY, ROUTE, HUB):
                return self._go_back(way, origin, account, *message)
        if beyond and reply.startswith(GATEWAY_REPLY):
            reply, seen = self._replies.noted(account, reply, self.now_ns)
            shown = seen or shown
        message = (subject, reply, headers, payload, shown)
        return super().one(origin, account, plan, *message, queues)

    def _go_back(
        self,
        way: ReplyWay,
        origin: Origin,
        account: Namespace,
        subject: bytes,
        reply: bytes,
        headers: bytes | None,
        payload: bytes,
        shown: bytes,
    ) -> bool:
        """To the cluster that a reply came from, or the hub, and nowhere else."""
        link = self._replies.link_of(way.prefix)
        to = way.prefix + subject
        seen = to if shown is subject else shown
        if link is None:
            plan = account.sublist.match(to)
            return super().one(origin, account, plan, to, reply, headers, payload, seen)
        self.to_link(link, origin, account, to, reply, [], headers, payload, seen)
        return True

    def _came_back(
        self,
        origin: Origin,
        account: Namespace,
        subject: bytes,
        reply: bytes,
        headers: bytes | None,
        payload: bytes,
        shown: bytes,
    ) -> bool:
        """An answer for this cluster: to the server that asked, which passes it on to whoever
        listens, in other clusters as well."""
        wanted = self._replies.server_of(subject)
        if kind_of(origin) is GATEWAY and wanted != self._replies.server:
            for link in self._routes_of(account.name):
                if mark(link.peer) == wanted:
                    rest = (headers, payload, shown)
                    self.to_link(link, origin, account, subject, reply, [], *rest)
                    return True
        own = subject[GATEWAY_REPLY_BYTES:]
        seen = own if shown is subject else shown
        if reply.startswith(GATEWAY_REPLY):
            reply, other = self._replies.noted(account, reply, self.now_ns)
            seen = other or seen
        plan = account.sublist.match(own)
        return super().one(None, account, plan, own, reply, headers, payload, seen)

    def to_link(
        self,
        link: AnyLink,
        origin: Origin,
        account: Namespace,
        subject: bytes,
        reply: bytes,
        queues: list[bytes],
        headers: bytes | None,
        payload: bytes,
        shown: bytes,
    ) -> None:
        """As in `Deliverer`; replies tell the way back where that has to be told."""
        prefix = self._prefix(link, origin, account, reply) if reply else b""
        if prefix:
            if shown is not subject and reply.startswith(ACK_PREFIX):
                reply = reply + b"@" + shown
            reply = prefix + reply
        super().to_link(link, origin, account, subject, reply, queues, headers, payload, shown)

    def _prefix(self, link: AnyLink, origin: Origin, account: Namespace, reply: bytes) -> bytes:
        if isinstance(link, GatewayLink):
            return self._replies.prefix_of_request(account, reply)
        if isinstance(link, LeafLink) or kind_of(origin) is not GATEWAY:
            return b""
        return self._replies.prefix_of(account, reply)
