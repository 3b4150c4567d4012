"""The router: subscriptions of all accounts, and messages from anybody to whom they concern.

Clients publish through the lane and their sessions, other servers through `route_ops`, and the
broker's own parts with `publish` and `publish_batch`. What comes of it is collected: bytes per
connection (`flush`) and captured messages per sink (`take_dirty`). A turn sets `now_ns` first.
"""

from collections.abc import Sequence

from jsctl.broker.accounts.account_services import AccountServices
from jsctl.broker.accounts.accounts import AccountChange, AccountChangeKind, Accounts
from jsctl.broker.accounts.crossing import CROSSINGS_MAX
from jsctl.broker.accounts.imports import Imports
from jsctl.broker.interest.outbound import Outbound
from jsctl.broker.interest.targets import (
    ClientPeer,
    Namespace,
    RouteLink,
    Sink,
    SublistResult,
    Subscription,
)
from jsctl.broker.pieces import Piece
from jsctl.broker.protocol.deliveries import Deliveries, Item, OutgoingMessage
from jsctl.broker.protocol.ops import RouteOp
from jsctl.broker.routing.delivery import Deliverer
from jsctl.broker.routing.limits import RoutingLimits
from jsctl.broker.routing.routes import Routes
from jsctl.broker.routing.tracing import Tracing
from jsctl.broker.turn import Jitter

SLOW_CONSUMER = "Slow Consumer (Pending Bytes)"


class Router:
    """Routes messages between clients, sinks and other servers."""

    def __init__(self, accounts: Accounts, limits: RoutingLimits, jitter: Jitter) -> None:
        self.accounts = accounts
        self.limits = limits
        self.jitter = jitter
        self.imports = Imports(accounts, jitter, self.add, self.unsubscribe)
        self.delivery = Deliverer(jitter, self.expire, self.imports.lead_back)
        self.tracing = Tracing(self.delivery, jitter)
        self.routes = Routes(accounts, self.delivery, self.tracing, self._insert, self._remove)
        self.services = AccountServices(accounts, self.unsubscribe)
        self.slow: list[tuple[Outbound, str]] = []
        self.slow_consumers = 0
        self.imports.install()

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
            if change.kind is AccountChangeKind.ADDED:
                self.routes.account_added(change.account)
            elif change.kind is AccountChangeKind.REMOVED:
                self.routes.account_removed(change.account)

    def add(self, sub: Subscription) -> None:
        """Add a client's or a sink's subscription and tell the routes."""
        self._insert(sub)
        if not sub.local_only:
            self.routes.changed(sub.account, sub.subject, sub.queue, 1)
            if sub.account.streams:
                self.imports.listened(sub)

    def unsubscribe(self, sub: Subscription) -> None:
        """Remove a client's or a sink's subscription and tell the routes."""
        self._remove(sub)
        if not sub.local_only:
            self.routes.changed(sub.account, sub.subject, sub.queue, -1)
            if sub.account.streams:
                self.imports.left(sub)

    def expire(self, client: ClientPeer, sub: Subscription) -> None:
        """Remove a client's subscription that has had all it asked for."""
        if client.subscriptions.get(sub.sid) is sub:
            del client.subscriptions[sub.sid]
            self.unsubscribe(sub)

    def _insert(self, sub: Subscription) -> None:
        sub.account.sublist.insert(sub.subject, sub)

    def _remove(self, sub: Subscription) -> None:
        sub.account.sublist.remove(sub.subject, sub)

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

    def publish_pieces(self, account: Namespace, subject: bytes, pieces: Sequence[Piece]) -> None:
        """As `publish` for a payload in pieces, which are not joined for one other server."""
        plan = account.sublist.match(subject)
        if plan.simple and len(plan.links) == 1 and not plan.clients and not plan.sinks:
            self.delivery.pieces(plan.links[0], account, subject, pieces)
        else:
            self.publish(account, subject, b"".join(pieces))

    def publish_at(
        self, account: Namespace, server_id: str, subject: bytes, headers: bytes, payload: bytes
    ) -> bool:
        """Publish at another server; False when there is no link to it.

        It arrives behind all interest that was told on the account's link before: who gets
        the answer to a create can publish at once.
        """
        for link in self.routes.links_of(account.name):
            if link.peer == server_id:
                self.delivery.to_server(link, account, subject, headers, payload)
                return True
        return False

    def publish_batch(self, account: Namespace, said: Sequence[OutgoingMessage]) -> None:
        """Publish many messages, in order."""
        items: list[Item] = []
        for one in said:
            if not isinstance(one, Deliveries):
                items.append(one)
                continue
            plan = self._sole_of(account, one.inboxes)
            if plan is None:
                items += one.items()
                continue
            self._publish_items(account, items)
            items = []
            self.delivery.together(account, plan, one)
        self._publish_items(account, items)

    def _sole_of(self, account: Namespace, subjects: Sequence[bytes]) -> SublistResult | None:
        """The plan of some subjects that lead to one client and to nobody else."""
        first, *others = account.sublist.match_many(subjects)
        same = all([one is first or (one.sole and one.clients == first.clients) for one in others])
        return first if first.sole and same else None

    def _publish_items(self, account: Namespace, items: Sequence[Item]) -> None:
        plans = account.sublist.match_many([item[0] for item in items])
        start, count = 0, len(items)
        while start < count:
            plan = plans[start]
            stop = start + 1
            while stop < count and plans[stop] is plan:
                stop += 1
            if not plan.empty:
                self.delivery.many(account, plan, items[start:stop])
            start = stop

    def has_interest(self, account: Namespace, subject: bytes) -> bool:
        """Whether anybody, here or on another server, listens to a subject."""
        return self._listens(account, subject, CROSSINGS_MAX)

    def _listens(self, account: Namespace, subject: bytes, crossings: int) -> bool:
        plan = account.sublist.match(subject)
        if plan.clients or plan.sinks or plan.links or plan.groups or plan.shadows:
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
            pending = target.kernel_pending + target.out_bytes
            if target.kind.expendable and pending > pending_max and not target.closing:
                self.slow.append((target, SLOW_CONSUMER))
                self.slow_consumers += 1
            elif pieces and target.closing != SLOW_CONSUMER:
                writes.append((target.conn, b"".join(pieces)))
            target.out_bytes = 0
        return writes
