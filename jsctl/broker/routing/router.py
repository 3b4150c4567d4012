"""The router: subscriptions of all accounts, and messages from anybody to whom they concern.

Clients publish through the lane and their sessions, other servers through `route_ops`, and the
broker's own parts with `publish` and `publish_batch`. What comes of it is collected: bytes per
connection (`flush`) and captured messages per sink (`take_dirty`). A turn sets `now_ns` first.
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Protocol

from jsctl.broker import lazy
from jsctl.broker.accounts.account_services import AccountServices
from jsctl.broker.accounts.accounts import Account, AccountChange, AccountChangeKind, Accounts
from jsctl.broker.accounts.crossing import CROSSINGS_MAX
from jsctl.broker.accounts.imports import Imports
from jsctl.broker.interest.kinds import LEAF, SHADOW
from jsctl.broker.interest.links import JETSTREAM, is_request
from jsctl.broker.interest.outbound import Outbound
from jsctl.broker.interest.targets import (
    ClientPeer,
    LeafLink,
    Namespace,
    RouteLink,
    Sink,
    SublistResult,
    Subscription,
    leaf_of,
)
from jsctl.broker.pieces import Piece
from jsctl.broker.protocol.deliveries import AckRun, Deliveries, Item, OutgoingMessage
from jsctl.broker.protocol.ops import RouteOp
from jsctl.broker.routing.answers import answer_each
from jsctl.broker.routing.delivery import Deliverer
from jsctl.broker.routing.limits import RoutingLimits
from jsctl.broker.routing.routes import Routes
from jsctl.broker.routing.shown import ANSWER
from jsctl.broker.routing.tracing import Tracing
from jsctl.broker.turn import Jitter

if TYPE_CHECKING:
    from jsctl.broker.routing import gateway_delivery
    from jsctl.broker.routing.gateway_replies import GatewayReplies
else:
    gateway_delivery = lazy.module("jsctl.broker.routing.gateway_delivery", optional=True)

SOLE = attrgetter("sole")
SLOW_CONSUMER = "Slow Consumer (Pending Bytes)"


class InterestWatcher(Protocol):
    """Who has to know of all subscriptions that come and go, whosever they are."""

    def changed(self, sub: Subscription, step: int) -> None:
        """One has so many members more, or less."""


class AccountFollower(Protocol):
    """Who keeps what other servers tell of accounts that this one may not have."""

    def account_added(self, account: Account) -> None:
        """There is one more."""

    def account_removed(self, account: Account) -> None:
        """There is one less."""


class Router:
    """Routes messages between clients, sinks and other servers."""

    def __init__(
        self,
        accounts: Accounts,
        limits: RoutingLimits,
        jitter: Jitter,
        replies: "GatewayReplies | None" = None,
        answers: Sink | None = None,
    ) -> None:
        """`replies`: of a server that is part of a super-cluster. `answers`: of one with JetStream,
        takes what other servers answer to requests that came in here."""
        self.accounts = accounts
        self.limits = limits
        self.jitter = jitter
        self.imports = Imports(accounts, jitter, self.add, self.unsubscribe)
        delivery = (jitter, self.expire, self.imports.lead_back)
        if replies is None:
            self.delivery = Deliverer(*delivery)
        else:
            made = gateway_delivery.GatewayDeliverer(*delivery, self._routes_of, replies)
            self.delivery = made
        self.tracing = Tracing(self.delivery, jitter)
        self.routes = Routes(
            accounts, self.delivery, self.tracing, self.admit, self.withdraw, self.weigh, answers
        )
        self.watchers: list[InterestWatcher] = []
        """Leaf nodes and hubs, and other clusters; none of them while there can be none."""
        self.followers: list[AccountFollower] = [self.routes]
        self.remapped: list[Callable[[Account], None]] = []
        """Who has to know of accounts with other subject mappings than they had."""
        self.services = AccountServices(accounts, self.unsubscribe)
        self.slow: list[tuple[Outbound, str]] = []
        self.slow_consumers = 0
        self.imports.install()

    def _routes_of(self, account: str) -> Sequence[RouteLink]:
        return self.routes.links_of(account)

    @property
    def now_ns(self) -> int:
        """The time of this turn."""
        return self.delivery.now_ns

    @now_ns.setter
    def now_ns(self, now_ns: int) -> None:
        self.delivery.now_ns = now_ns
        self.imports.now_ns = now_ns

    def subscribe(
        self,
        account: Namespace,
        pattern: bytes,
        sink: Sink,
        queue: bytes = b"",
        *,
        local_only: bool = False,
    ) -> Subscription:
        """Capture what is published on `pattern`. `local_only` hides it from other servers."""
        sub = Subscription(account, pattern, queue, b"", sink, local_only=local_only)
        self.add(sub)
        return sub

    def subscribe_everywhere(self, pattern: bytes, owner: object) -> None:
        """Capture `pattern` in every account, on this server only.

        One sink per account: `sink.account` tells where a message came from.
        """
        self.services.offer(
            lambda account: [
                self.subscribe(account, pattern, Sink(owner, account), local_only=True)
            ]
        )

    def follow(self, changes: Sequence[AccountChange]) -> None:
        """Accounts have changed: services, imports and other servers' interest follow."""
        self.services.follow(changes)
        self.imports.install()
        for change in changes:
            before = change.before
            if before is not None and before.mappings != change.account.options.mappings:
                for remapped in self.remapped:
                    remapped(change.account)
            for follower in self.followers:
                if change.kind is AccountChangeKind.ADDED:
                    follower.account_added(change.account)
                elif change.kind is AccountChangeKind.REMOVED:
                    follower.account_removed(change.account)

    def add(self, sub: Subscription) -> None:
        """Add a client's, a sink's or a leaf node's subscription and tell the routes."""
        self.admit(sub)
        if not sub.local_only:
            self._tell_routes(sub, sub.weight)
            if sub.account.streams:
                self.imports.listened(sub)

    def unsubscribe(self, sub: Subscription) -> None:
        """Remove such a subscription and tell the routes."""
        self.withdraw(sub)
        if not sub.local_only:
            self._tell_routes(sub, -sub.weight)
            if sub.account.streams:
                self.imports.left(sub)

    def weigh(self, sub: Subscription, weight: int) -> None:
        """Another server's queue group has other members than it had."""
        step, sub.weight = weight - sub.weight, weight
        sub.account.sublist.touch(sub.subject)
        for watcher in self.watchers:
            watcher.changed(sub, step)
        if isinstance(sub.target, LeafLink):
            self._tell_routes(sub, step)
            for shadow in self.imports.shadows_of(sub):
                self.weigh(shadow, weight)
        elif sub.target.served is SHADOW:
            self._tell_routes(sub, step)

    def _tell_routes(self, sub: Subscription, step: int) -> None:
        leaf = leaf_of(sub) if self.watchers else None
        if leaf is None:
            self.routes.changed(sub.account, sub.subject, sub.queue, step)
        elif leaf.kind is LEAF:
            # The other servers of the cluster have hubs of their own.
            self.routes.leaf_changed(sub, step)

    def expire(self, client: ClientPeer, sub: Subscription) -> None:
        """Remove a client's subscription that has had all it asked for."""
        if client.subscriptions.get(sub.sid) is sub:
            del client.subscriptions[sub.sid]
            self.unsubscribe(sub)

    def admit(self, sub: Subscription) -> None:
        """Add another server's subscription, of which the routes are told nothing."""
        sub.account.sublist.insert(sub.subject, sub)
        for watcher in self.watchers:
            watcher.changed(sub, sub.weight)

    def withdraw(self, sub: Subscription) -> None:
        """Remove such a subscription."""
        sub.account.sublist.remove(sub.subject, sub)
        for watcher in self.watchers:
            watcher.changed(sub, -sub.weight)

    def publish(
        self,
        account: Namespace,
        subject: bytes,
        payload: bytes,
        *,
        reply: bytes = b"",
        headers: bytes = b"",
        deliver_as: bytes = b"",
    ) -> bool:
        """Publish from inside the broker; whether anybody got it.

        `deliver_as` is the subject that receivers see while `subject` finds them.
        """
        plan = account.sublist.match(subject)
        if plan.empty:
            return False
        return self.delivery.one(
            None, account, plan, subject, reply, headers or None, payload, deliver_as or subject
        )

    def answer(
        self, account: Namespace, subject: bytes, payload: bytes, headers: bytes = b""
    ) -> None:
        """Publish where somebody wants it who may not be allowed all that the broker is: it is no
        request to JetStream, and becomes none in another account."""
        if not is_request(subject):
            with self.delivery.crossings.answers():
                self.publish(account, subject, payload, headers=headers)

    def publish_pieces(self, account: Namespace, subject: bytes, pieces: Sequence[Piece]) -> None:
        """As `publish` for a payload in pieces, which are not joined for one other server."""
        plan = account.sublist.match(subject)
        if plan.lone is not None:
            self.delivery.pieces(plan.lone, account, subject, pieces)
        else:
            self.publish(account, subject, b"".join(pieces))

    def answer_at(
        self, account: Namespace, server_id: str, subject: bytes, headers: bytes, payload: bytes
    ) -> bool:
        """Have another server publish an answer; False when there is no link to it.

        It arrives behind all interest that was told on the account's link before: who gets
        the answer to a create can publish at once.
        """
        for link in self.routes.links_of(account.name):
            if link.peer == server_id:
                shown, held = subject, headers or None
                self.delivery.to_link(
                    link, None, account, subject, ANSWER, [], held, payload, shown
                )
                return True
        return False

    def publish_batch(self, account: Namespace, said: Sequence[OutgoingMessage]) -> None:
        """Publish many messages, in order.

        Clients chose where these go, as with deliveries and answers, and may not be allowed all
        that the broker is: none of them is a request to JetStream.
        """
        items: list[Item] = []
        for one in said:
            if isinstance(one, tuple):
                items.append(one)
                continue
            plans = self._plans_of(account, one)
            if plans is None:
                items += one.items()
                continue
            self._publish_items(account, items)
            items = []
            if len(plans) == 1:
                self.delivery.together(account, plans[0], one)
            else:
                assert isinstance(one, AckRun), "each of the others goes to one place"
                answer_each(self.delivery.touched, account, plans, one)
        self._publish_items(account, items)

    def _plans_of(
        self, account: Namespace, one: Deliveries | AckRun
    ) -> Sequence[SublistResult] | None:
        """The plan of messages that lead to one client or one server, and to nobody else; or those
        of acknowledgements that lead to a client each. None for others."""
        subjects = one.inboxes
        if any([subject.startswith(JETSTREAM) for subject in subjects]):
            return None
        first = account.sublist.match(subjects[0])
        if not first.sole and first.lone is None:
            return None
        if len(subjects) == 1:
            return (first,)
        may_differ = isinstance(one, AckRun)
        if not (may_differ or _is_alike(account.sublist.match(subjects[-1]), first)):
            return None
        plans = account.sublist.match_many(subjects)
        # Many publishers that wait have an inbox each: the last one tells that.
        if _is_alike(plans[-1], first) and (
            all(map(is_, plans, repeat(first))) or all([_is_alike(plan, first) for plan in plans])
        ):
            return (first,)
        return plans if may_differ and all(map(SOLE, plans)) else None

    def _publish_items(self, account: Namespace, items: Sequence[Item]) -> None:
        if any([item[0].startswith(JETSTREAM) for item in items]):
            items = [item for item in items if not is_request(item[0])]
        plans = account.sublist.match_many([item[0] for item in items])
        start, count = 0, len(items)
        while start < count:
            plan = plans[start]
            stop = start + 1
            while stop < count and plans[stop] is plan:
                stop += 1
            if plan.bridges:
                with self.delivery.crossings.answers():
                    self.delivery.many(account, plan, items[start:stop])
            elif not plan.empty:
                self.delivery.many(account, plan, items[start:stop])
            start = stop

    def has_interest(self, account: Namespace, subject: bytes) -> bool:
        """Whether anybody, here or on another server, listens to a subject."""
        return self._listens(account, subject, CROSSINGS_MAX)

    def _listens(self, account: Namespace, subject: bytes, crossings: int) -> bool:
        plan = account.sublist.match(subject)
        if plan.clients or plan.sinks or plan.links or plan.groups or plan.shadows or plan.returns:
            return True
        return crossings > 0 and any(
            self._listens(one.account, one.map_subject(subject), crossings - 1)
            for one in plan.bridges
        )

    def add_route(self, link: RouteLink) -> None:
        """A link has finished its handshake."""
        self.routes.add(link)

    def remove_route(self, link: RouteLink) -> None:
        """A link is gone."""
        link.closing = link.closing or "Route Removed"
        link.out.clear()
        self.routes.drop(link)

    def route_ops(self, link: RouteLink, ops: list[RouteOp]) -> None:
        """Interest and messages from another server."""
        self.routes.take(link, ops)

    @property
    def dirty(self) -> Sequence[Sink]:
        """What `take_dirty` would give."""
        return self.delivery.dirty

    @property
    def has_dirty(self) -> bool:
        """Whether `take_dirty` has something."""
        return bool(self.delivery.dirty)

    def take_dirty(self) -> list[Sink]:
        """Sinks that captured something since the last call, in order of their first message."""
        dirty = self.delivery.dirty
        self.delivery.dirty = []
        return dirty

    def flush(self) -> list[tuple[int, bytes]]:
        """One joined write per connection that something was written to.

        A client, or whoever is as expendable, that has more than the maximum unsent gets nothing:
        it is put into `slow`.
        """
        touched = self.delivery.touched
        self.delivery.touched = []
        writes = []
        pending_max = self.limits.pending_bytes_max
        for target in touched:
            target.touched = False
            pieces, target.out = target.out, []
            pending, target.out_bytes = target.kernel_pending + target.out_bytes, 0
            if pending > pending_max and target.kind.expendable and not target.closing:
                self.slow.append((target, SLOW_CONSUMER))
                self.slow_consumers += 1
            elif pieces and target.closing != SLOW_CONSUMER:
                writes.append((target.conn, b"".join(pieces)))
        return writes


def _is_alike(plan: SublistResult, other: SublistResult) -> bool:
    """Whether two plans of one client or one server lead to the same one."""
    return plan.sole == other.sole and plan.lone is other.lone and plan.clients == other.clients
