"""Connections to servers of other clusters: what they are told of interest, and what they tell.

Each server has one connection to each other cluster on which it sends, and any number on which it
is sent to. The interest of the whole cluster, its leaf nodes included, goes to whoever sends here:
each subject and each queue group once, whatever the number of listeners. Nothing is sent to a
cluster where nobody is known to listen. What comes in is for this cluster and goes no further.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import field

from jsctl.broker.accounts.accounts import Account
from jsctl.broker.interest.kinds import CAPTURED, EACH, HUB, SHADOW, Served
from jsctl.broker.interest.links import GATEWAY_REPLIES, GatewayLink, ReplyWay
from jsctl.broker.interest.targets import Key, LeafLink, Namespace, Subscription, leaf_of
from jsctl.broker.protocol import writer
from jsctl.broker.protocol.ops import Interest, NoInterest, Routed, RouteOp
from jsctl.broker.routing.gateway_replies import GatewayReplies
from jsctl.broker.routing.router import Router
from jsctl.broker.routing.shown import split_reply
from jsctl.broker.subject.validity import is_valid_subject
from jsctl.dataclass import dataclass

HeardKey = tuple[str, bytes, bytes]
"""(account, subject, queue)"""
NEAR = (EACH, CAPTURED, SHADOW, Served.CROSSING)


@dataclass(slots=True)
class Heard:
    """What one connection told of interest in the other cluster."""

    subs: dict[HeardKey, Subscription] = field(default_factory=dict)
    unclaimed: dict[HeardKey, int] = field(default_factory=dict)
    """In accounts that this server does not know, with its weight."""
    accounts: dict[str, None] = field(default_factory=dict)
    """Those whose interest is told."""


class GatewayRouting:
    """All of them. `switch` words what frames the interest of one account: whether it begins."""

    def __init__(
        self, router: Router, replies: GatewayReplies, switch: Callable[[str, bool], bytes]
    ) -> None:
        self._router = router
        self._switch = switch
        self.replies = replies
        self.inbound: dict[int, GatewayLink] = {}
        self.outbound: dict[int, GatewayLink] = {}
        """By connection."""
        self._heard: dict[GatewayLink, Heard] = {}
        self._tally: dict[Namespace, dict[Key, int]] = {}
        """Members of this cluster."""
        self.news: list[tuple[Subscription, bool]] = []
        """What other clusters listen to since these were taken: it came, or is gone."""
        router.watchers.append(self)
        router.followers.append(self)
        for account in router.accounts:
            for sub in account.sublist:
                self.changed(sub, sub.weight)
        router.services.offer(lambda account: [self._door(account)])

    def _door(self, account: Account) -> Subscription:
        sub = Subscription(account, GATEWAY_REPLIES, b"", b"", ReplyWay(), local_only=True)
        self._router.add(sub)
        return sub

    def take_news(self) -> list[tuple[Subscription, bool]]:
        """What came and went, in its order, each time once."""
        news, self.news = self.news, []
        return news

    def heard_of(self, link: GatewayLink) -> Collection[Subscription]:
        """What a connection told of interest."""
        known = self._heard.get(link)
        return () if known is None else known.subs.values()

    def accounts_of(self, link: GatewayLink) -> tuple[str, ...]:
        """The accounts whose interest is told on a connection."""
        known = self._heard.get(link)
        if known is None:
            return tuple(account.name for account in self._router.accounts)
        return tuple(dict.fromkeys([*known.accounts, *(key[0] for key in known.subs)]))

    def begun(self, link: GatewayLink, account: str) -> None:
        """The other side tells all interest in an account."""
        self._heard[link].accounts.setdefault(account)

    # ---- what is told

    def changed(self, sub: Subscription, step: int) -> None:
        """A subscription of whomever has so many members more, or less."""
        if sub.local_only or not _is_told(sub):
            return
        if step > 0 and (sub.target.served in NEAR or isinstance(sub.target, LeafLink)):
            self.replies.subscribed(sub, self._router.now_ns)
        tally, key = self._tally.setdefault(sub.account, {}), (sub.subject, sub.queue)
        before = tally.get(key, 0)
        now = max(before + step, 0)
        if now:
            tally[key] = now
        else:
            tally.pop(key, None)
        if not tally:
            del self._tally[sub.account]  # Which may be gone.
        if bool(now) is not bool(before):
            line = _line(sub.account, key, gone=not now)
            for link in self.inbound.values():
                self._router.delivery.write(link, line)

    def add(self, link: GatewayLink) -> None:
        """A connection has finished its handshake."""
        if link.outbound:
            self.outbound[link.conn] = link
            self._heard[link] = Heard()
            self.replies.links[link.mark] = link
            return
        self.inbound[link.conn] = link
        lines = [line for account in self._router.accounts for line in self._queues(account)]
        for account in self._router.accounts:
            lines += self._plain(account)
        self._router.delivery.write(link, b"".join(lines))

    def _queues(self, account: Account) -> Iterator[bytes]:
        for key in self._tally.get(account, ()):
            if key[1]:
                yield _line(account, key)

    def _plain(self, account: Account) -> Iterator[bytes]:
        yield self._switch(account.name, True)
        for key in self._tally.get(account, ()):
            if not key[1]:
                yield _line(account, key)
        yield self._switch(account.name, False)

    def account_added(self, account: Account) -> None:
        """Servers of other clusters are told of its interest; what they told of theirs counts."""
        lines = b"".join([*self._queues(account), *self._plain(account)])
        for link in self.inbound.values():
            self._router.delivery.write(link, lines)
        for link, heard in self._heard.items():
            for key in [key for key in heard.unclaimed if key[0] == account.name]:
                self._subscribed(link, account, key, heard.unclaimed.pop(key))

    def account_removed(self, account: Account) -> None:
        """Others may still have it: what they told counts again if it comes back."""
        for heard in self._heard.values():
            for key in [key for key in heard.subs if key[0] == account.name]:
                sub = heard.subs.pop(key)
                heard.unclaimed[key] = sub.weight
                self._router.withdraw(sub)

    def drop(self, link: GatewayLink) -> None:
        """Forget a connection and all that was learned on it."""
        link.closing = link.closing or "Gateway Removed"
        link.out.clear()
        self.inbound.pop(link.conn, None)
        if self.outbound.pop(link.conn, None) is None:
            return
        if self.replies.links.get(link.mark) is link:
            del self.replies.links[link.mark]
        for sub in self._heard.pop(link).subs.values():
            self._forget(sub)

    # ---- what is heard

    def take(self, link: GatewayLink, ops: Iterable[RouteOp]) -> str:
        """Carry operations out; what is wrong with one ends that, and is returned."""
        for op in ops:
            if isinstance(op, Routed):
                if link.outbound:
                    return "Received a message on an outbound gateway connection"
                self._message(link, op)
            elif link.outbound:
                self._told(link, op)
            else:
                word = "RS+" if isinstance(op, Interest) else "RS-"
                return f"Received {word} from gateway on inbound connection"
        return ""

    def _told(self, link: GatewayLink, op: RouteOp) -> None:
        heard = self._heard[link]
        if isinstance(op, Interest):
            key = (op.account.decode(errors="replace"), op.subject, op.queue)
            if key in heard.subs or not is_valid_subject(op.subject):
                return
            account = self._router.accounts.get(key[0])
            if account is None:
                # The other server may have been told of the account first.
                heard.unclaimed[key] = op.weight
            else:
                self._subscribed(link, account, key, op.weight)
        elif isinstance(op, NoInterest):
            key = (op.account.decode(errors="replace"), op.subject, op.queue)
            heard.unclaimed.pop(key, None)
            sub = heard.subs.pop(key, None)
            if sub is not None:
                self._forget(sub)

    def _subscribed(self, link: GatewayLink, account: Account, key: HeardKey, weight: int) -> None:
        _, subject, queue = key
        sub = Subscription(account, subject, queue, b"", link, weight=weight)
        self._heard[link].subs[key] = sub
        self._router.admit(sub)
        self.news.append((sub, True))

    def _forget(self, sub: Subscription) -> None:
        self._router.withdraw(sub)
        self.news.append((sub, False))

    def _message(self, link: GatewayLink, op: Routed) -> None:
        size, router = len(op.payload) + len(op.headers or b""), self._router
        link.in_messages += 1
        link.in_bytes += size
        account = router.accounts.get(op.account.decode(errors="replace"))
        if account is None or not op.subject:
            return
        account.in_messages += 1
        account.in_bytes += size
        plan = account.sublist.match(op.subject)
        if plan.empty:
            return
        reply, shown = split_reply(op.reply)
        shown = shown or op.subject
        if op.headers is not None and router.tracing.concerns(account, op.headers):
            router.tracing.routed(link, account, plan, op, reply, shown, op.queues)
            return
        rest = (op.subject, reply, op.headers, op.payload, shown, op.queues)
        router.delivery.one(link, account, plan, *rest)


def _is_told(sub: Subscription) -> bool:
    """Whether a subscription is other clusters' business: theirs are not, and the servers that hang
    on a hub have connections of their own to it."""
    if isinstance(sub.target, GatewayLink | ReplyWay):
        return False
    leaf = leaf_of(sub)
    return leaf is None or leaf.kind is not HUB


def _line(account: Namespace, key: Key, *, gone: bool = False) -> bytes:
    subject, queue = key
    if gone:
        return writer.no_interest(account.wire_name, subject, queue)
    return writer.interest(account.wire_name, subject, queue, 1)
