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
from jsctl.broker.routing.delivery import Deliverer
from jsctl.broker.routing.gateway_replies import GatewayReplies, mark
from jsctl.broker.routing.shown import telling
from jsctl.broker.subject.validity import is_valid_literal
from jsctl.broker.turn import Jitter

AWARE = (GATEWAY, ROUTE, HUB)
"""Those who tell of replies where they lead to, and need not be told."""
Message = tuple[bytes, bytes, bytes | None, bytes, bytes]
"""Subject, reply, headers, payload, and the subject that receivers see."""
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
        self.crossings = Crossings(jitter, lead_back, replies.clusters)
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
        for way in plan.returns:
            message = (subject, reply, headers, payload, shown)
            if way.is_door:
                return self._through(origin, account, plan, message)
            if way.until_ns > self.now_ns and kind_of(origin) not in AWARE:
                return self._go_back(way, origin, account, message)
        reply, shown = self.heard(origin, account, reply, shown)
        message = (subject, reply, headers, payload, shown)
        return super().one(origin, account, plan, *message, queues)

    def heard(
        self, origin: Origin, account: Namespace, reply: bytes, shown: bytes
    ) -> tuple[bytes, bytes]:
        """As in `Deliverer`: what is said to a reply of another cluster is led back from now on."""
        if reply.startswith(GATEWAY_REPLY) and kind_of(origin) in AWARE:
            reply, seen = self._replies.noted(account, reply, self.now_ns)
            shown = seen or shown
        return reply, shown

    def _through(
        self, origin: Origin, account: Namespace, plan: SublistResult, message: Message
    ) -> bool:
        """What says itself where it leads to: here, or to another cluster from a leaf node. Else it
        may be for somebody further on who has connections there."""
        subject, reply, headers, payload, shown = message
        if kind_of(origin) in (GATEWAY, ROUTE):
            return self._replies.is_own(subject) and self._came_back(origin, account, message)
        link = self._replies.link_of(subject)
        if link is None:
            return super().one(origin, account, plan, *message)
        self.to_link(link, origin, account, subject, reply, [], headers, payload, shown)
        return True

    def _go_back(self, way: ReplyWay, origin: Origin, account: Namespace, message: Message) -> bool:
        """To the cluster that a reply came from, or the hub, and nowhere else."""
        subject, reply, headers, payload, shown = message
        link = self._replies.link_of(way.prefix)
        to = way.prefix + subject
        seen = to if shown is subject else shown
        if link is None:
            plan = account.sublist.match(to)
            return super().one(origin, account, plan, to, reply, headers, payload, seen)
        self.to_link(link, origin, account, to, reply, [], headers, payload, seen)
        return True

    def _came_back(self, origin: Origin, account: Namespace, message: Message) -> bool:
        """An answer for this cluster: to the server that asked, which passes it on to whoever
        listens, in other clusters as well."""
        subject, reply, headers, payload, shown = message
        own = subject[GATEWAY_REPLY_BYTES:]
        if not is_valid_literal(own):
            return False
        wanted = self._replies.server_of(subject)
        if kind_of(origin) is GATEWAY and wanted != self._replies.server:
            for link in self._routes_of(account.name):
                if mark(link.peer) == wanted:
                    rest = (headers, payload, shown)
                    self.to_link(link, origin, account, subject, reply, [], *rest)
                    return True
        seen = own if shown is subject else shown
        reply, seen = self.heard(origin, account, reply, seen)
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
            reply = prefix + telling(reply, subject, shown)
        super().to_link(link, origin, account, subject, reply, queues, headers, payload, shown)

    def _prefix(self, link: AnyLink, origin: Origin, account: Namespace, reply: bytes) -> bytes:
        if isinstance(link, GatewayLink):
            return self._replies.prefix_of_request(account, reply)
        if kind_of(origin) in (AWARE if isinstance(link, LeafLink) else (GATEWAY,)):
            return self._replies.prefix_of(account, reply)
        return b""
