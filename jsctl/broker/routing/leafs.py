"""Connections of leaf nodes and hubs: what they are told of interest, and what they tell.

A leaf node's connection belongs to one account. A hub tells it of all interest in that account, in
its whole cluster; a leaf node tells its hub of what is its own, and of what hangs on it. Each link
knows what it has been told, so a change is told where it makes a difference and nowhere else.

A loop is found by a subject of chance, which each account tells over its links: where it comes
back, what was sent would come back, too.
"""

from collections.abc import Container, Iterable, Iterator
from enum import Enum, auto

from jsctl.broker.accounts.accounts import Account
from jsctl.broker.accounts.crossing import EVERYBODY
from jsctl.broker.interest.kinds import CAPTURED, EACH, HUB, LEAF, Served
from jsctl.broker.interest.links import BROKERS, GATEWAY_REPLY, ReplyWay
from jsctl.broker.interest.targets import Key, LeafLink, Namespace, Subscription, leaf_of
from jsctl.broker.protocol import writer
from jsctl.broker.protocol.ops import Interest, NoInterest, Routed, RouteOp
from jsctl.broker.routing.router import Router
from jsctl.broker.routing.setup import random_name
from jsctl.broker.routing.shown import ANSWER, split_reply
from jsctl.broker.subject.validity import has_wildcard, is_valid_subject

LOOP_PREFIX = b"$LDS."
LOOP_NAME_LENGTH = 22
TOO_MANY = b"maximum subscriptions exceeded"
UNCHECKED = (LOOP_PREFIX, GATEWAY_REPLY, b"$GR.")
"""Interest of the servers' own, which no permission is asked for."""


class Offence(Enum):
    """Why a link cannot go on."""

    LOOP = auto()
    PUBLISHED = auto()
    """It said what it may not say."""
    SUBSCRIBED = auto()
    """It listens to what it may not hear."""


class LeafRouting:
    """All links of leaf nodes and hubs, by account."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._links: dict[Namespace, list[LeafLink]] = {}
        self._loops: dict[Account, bytes] = {}
        self.remote_accounts: dict[str, str] = {}
        """What this server's accounts are called at the other side."""
        self.crowded: set[LeafLink] = set()
        """Links that were refused subscriptions, as they have too many."""

    def __iter__(self) -> Iterator[LeafLink]:
        for links in self._links.values():
            yield from links

    def links_of(self, account: Namespace) -> list[LeafLink]:
        """The links of an account."""
        return self._links.get(account, [])

    # ---- what is told

    def add(self, link: LeafLink) -> None:
        """A link has finished its handshake: it is told all that it may know."""
        account = self._account(link)
        self._links.setdefault(account, []).append(link)
        self._tell_all(link)

    def drop(self, link: LeafLink) -> None:
        """Forget a link and all that was learned on it."""
        account = self._account(link)
        links = self._links.get(account, [])
        if link in links:
            links.remove(link)
        if not links:
            self._links.pop(account, None)
        link.closing = link.closing or "Client Closed"
        link.out.clear()
        self.crowded.discard(link)
        for sub in list(link.subscriptions.values()):
            self._router.unsubscribe(sub)
        link.subscriptions.clear()

    def permitted(self, link: LeafLink) -> None:
        """Other permissions count from now on: what is told and sent follows."""
        link.account.sublist.touch(b">")
        self.tell_again(link)

    def tell_again(self, link: LeafLink) -> None:
        """What the link may know has changed: tell the difference."""
        before, link.told = link.told, {}
        wanted = self._wanted(link)
        lines = [writer.leaf_interest(*key, 0) for key in before if key not in wanted]
        changed = {key: count for key, count in wanted.items() if before.get(key) != count}
        lines += [
            writer.leaf_interest(*key, count)
            for key, count in changed.items()
            if key[1] or key not in before
        ]
        link.told = wanted
        self._write(link, lines)

    def _tell_all(self, link: LeafLink) -> None:
        link.told = self._wanted(link)
        lines = [writer.leaf_interest(*key, count) for key, count in link.told.items()]
        self._write(link, lines)

    def _wanted(self, link: LeafLink) -> dict[Key, int]:
        account = self._account(link)
        found: dict[Key, int] = {}
        for sub in account.sublist:
            if self._is_told(link, sub):
                key = (sub.subject, sub.queue)
                found[key] = found.get(key, 0) + sub.weight
        for mapping in account.options.mappings:
            pattern = mapping.source.encode()
            if link.kind is LEAF or link.guard is None or link.guard.may_tell(pattern):
                found[pattern, b""] = found.get((pattern, b""), 0) + 1
        found[self.loop_subject(account), b""] = 1
        return found

    def loop_subject(self, account: Account) -> bytes:
        """What finds loops of an account."""
        found = self._loops.get(account)
        if found is None:
            name = random_name(self._router.jitter, LOOP_NAME_LENGTH)
            found = self._loops[account] = LOOP_PREFIX + name.encode()
        return found

    def forget_gone(self) -> None:
        """Accounts were taken away, and all links of theirs are closed."""
        known = self._router.accounts
        self._loops = {one: name for one, name in self._loops.items() if known.get(one.name) is one}

    def changed(self, sub: Subscription, step: int) -> None:
        """A subscription of whomever has so many members more, or less."""
        for link in self._links.get(sub.account, ()):
            if self._is_told(link, sub):
                self._count(link, (sub.subject, sub.queue), step)

    def remapped(self, account: Account) -> None:
        """What is mapped is wanted from the other sides."""
        for link in self.links_of(account):
            self.tell_again(link)

    def _count(self, link: LeafLink, key: Key, step: int) -> None:
        before = link.told.get(key, 0)
        now = max(before + step, 0)
        if now:
            link.told[key] = now
        else:
            link.told.pop(key, None)
        if bool(now) is not bool(before) or (key[1] and now != before):
            self._router.delivery.write(link, writer.leaf_interest(*key, now))

    def _is_told(self, link: LeafLink, sub: Subscription) -> bool:
        """Whether a subscription is the other side's business."""
        target = sub.target
        if isinstance(target, ReplyWay):
            # What leads to other clusters goes by way of the hub.
            return target.is_door and link.kind is LEAF
        if sub.local_only and target.served is not Served.CROSSING:
            return False
        other = leaf_of(sub)
        finds_loops = sub.subject.startswith(LOOP_PREFIX)
        # Leaf nodes may hang on other servers of the cluster.
        of_leaf = other is not None or (sub.origin and not finds_loops)
        if other is link or (of_leaf and link.isolated):
            return False
        led = other is not None and other.account is not link.account and link.kind is LEAF
        if sub.origin and sub.origin == link.cluster and not led:
            return False
        if link.kind is HUB and not finds_loops:
            near = target.served in (EACH, CAPTURED, Served.CROSSING, Served.SHADOW)
            if other.kind is not LEAF if other is not None else not near:
                return False
        return finds_loops or link.guard is None or link.guard.may_tell(sub.subject)

    def _write(self, link: LeafLink, lines: Iterable[bytes]) -> None:
        data = b"".join(lines)
        if data:
            self._router.delivery.write(link, data)

    # ---- what is heard

    def take(self, link: LeafLink, ops: Iterable[RouteOp]) -> tuple[Offence, bytes] | None:
        """Carry out operations; what is wrong with one, with its subject, ends that."""
        for op in ops:
            if isinstance(op, Routed):
                if not self._message(link, op):
                    return Offence.PUBLISHED, op.subject
            elif isinstance(op, Interest):
                offence = self._interest(link, op)
                if offence is not None:
                    return offence, op.subject
            elif isinstance(op, NoInterest):
                sub = link.subscriptions.pop((op.subject, op.queue), None)
                if sub is not None:
                    self._router.unsubscribe(sub)
        return None

    def _interest(self, link: LeafLink, op: Interest) -> Offence | None:
        account, subject = self._account(link), op.subject
        if subject == self.loop_subject(account):
            return Offence.LOOP
        if not is_valid_subject(subject):
            self._router.delivery.write(link, writer.error(b"Invalid Subscription"))
            return None
        known = link.subscriptions.get((subject, op.queue))
        if known is not None:
            if known.weight != op.weight:
                self._router.weigh(known, op.weight)
            return None
        checked = not subject.startswith(UNCHECKED) and not has_wildcard(subject)
        if checked and link.guard is not None and not link.guard.may_send(subject):
            # A hub has told what it may be sent; that it asks for more is nothing to a leaf node.
            return Offence.SUBSCRIBED if link.kind is LEAF else None
        if self._is_full(link, account):
            self.crowded.add(link)
            self._router.delivery.write(link, writer.error(TOO_MANY))
            return None
        sub = Subscription(
            account, subject, op.queue, b"", link, weight=op.weight, origin=link.cluster
        )
        link.subscriptions[subject, op.queue] = sub
        self._router.add(sub)
        return None

    def _is_full(self, link: LeafLink, account: Account) -> bool:
        """Whether a link has as many subscriptions as are allowed."""
        count, own = len(link.subscriptions), account.limits.subscriptions_max
        return 0 < self._router.limits.subscriptions_max <= count or 0 <= own <= count

    def _message(self, link: LeafLink, op: Routed) -> bool:
        """Pass one on; False when it may not be said."""
        size = len(op.payload) + len(op.headers or b"")
        account, router = self._account(link), self._router
        link.in_messages += 1
        link.in_bytes += size
        account.in_messages += 1
        account.in_bytes += size
        guard = link.guard
        if guard is not None and not guard.may_take(op.subject, router.now_ns):
            return link.kind is HUB
        said = op.subject
        queues: Container[bytes] = op.queues
        if account.mappings and not op.subject.startswith(GATEWAY_REPLY):
            subject = account.map_subject(op.subject, router.jitter)
            if subject != op.subject:
                queues = queues or EVERYBODY
                op = op._replace(subject=subject)
        if not op.subject or op.subject.startswith(BROKERS):
            return True
        plan = account.sublist.match(op.subject)
        # Only servers of a cluster tell each other that they answer a request.
        reply, shown = split_reply(op.reply) if op.reply != ANSWER else (b"", b"")
        shown = shown or op.subject
        if op.headers is not None and router.tracing.concerns(account, op.headers):
            router.tracing.routed(link, account, plan, op, reply, shown, queues, said)
        elif not plan.empty:
            rest = (op.subject, reply, op.headers, op.payload, shown, queues)
            router.delivery.one(link, account, plan, *rest)
        return True

    @staticmethod
    def _account(link: LeafLink) -> Account:
        assert isinstance(link.account, Account)
        return link.account
