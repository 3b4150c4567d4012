"""Links to other servers: what they are told of interest here, what they tell of theirs.

An account's interest and messages travel on one link per peer: the one dedicated to it, or the
pool link that its name hashes to. Messages from a link are never sent on to another one.

Interest of leaf nodes here is told apart from this server's own, by their cluster: others ask them
last, and send nothing back to where it came from.
"""

from collections.abc import Callable, Collection, Iterator

from jsctl.broker.accounts.accounts import Accounts
from jsctl.broker.interest.targets import Namespace, RouteKey, RouteLink, Sink, Subscription
from jsctl.broker.protocol import writer
from jsctl.broker.protocol.ops import Interest, NoInterest, Routed, RouteOp
from jsctl.broker.routing.delivery import Deliverer
from jsctl.broker.routing.shown import ANSWER, split_reply
from jsctl.broker.routing.tracing import Tracing
from jsctl.broker.subject.transforms import fnv1a32


def pool_index(account: str, pool_size: int) -> int:
    """The pool connection that carries an account."""
    return fnv1a32(account.encode()) % pool_size if pool_size > 1 else 0


class Routes:
    """All links, and the interest that crosses them."""

    def __init__(
        self,
        accounts: Accounts,
        delivery: Deliverer,
        tracing: Tracing,
        insert: Callable[[Subscription], None],
        remove: Callable[[Subscription], None],
        weigh: Callable[[Subscription, int], None],
        answers: Sink | None,
    ) -> None:
        self._accounts = accounts
        self._delivery = delivery
        self._tracing = tracing
        self._insert = insert
        self._remove = remove
        self._weigh = weigh
        self.pinned: frozenset[str] = frozenset()
        """Accounts that have a link of their own to every pooled peer, and use no other."""
        self._links: dict[int, RouteLink] = {}
        self._of_account: dict[str, list[RouteLink]] = {}
        self.answers = answers
        """Takes answers of other servers to requests that came in here; their origin is the
        account."""
        self._of_leafs: dict[Namespace, dict[tuple[bytes, bytes, bytes], int]] = {}
        """(subject, queue, cluster) -> members, of leaf nodes that hang on this server."""

    def pin(self, accounts: Collection[str]) -> None:
        """Have links of their own for these; none that would move may be there."""
        self.pinned = frozenset(accounts)
        self._of_account.clear()

    def __iter__(self) -> Iterator[RouteLink]:
        return iter(self._links.values())

    def links_of(self, account: str) -> list[RouteLink]:
        """The link of each peer that carries the account."""
        found = self._of_account.get(account)
        if found is None:
            by_peer: dict[str, RouteLink] = {}
            for link in self._links.values():
                if link.account == account:
                    by_peer[link.peer] = link
                elif link.account is None and (link.pool_size == 1 or account not in self.pinned):
                    index = pool_index(account, link.pool_size)
                    if index == link.pool_index:
                        by_peer.setdefault(link.peer, link)
            found = self._of_account[account] = list(by_peer.values())
        return found

    def add(self, link: RouteLink) -> None:
        """Register a link after its handshake: it is told all interest of its accounts.

        What a link of another kind to the same peer was told until now is taken back there, else
        messages would cross both.
        """
        carried = self._carriers(link.peer)
        self._links[link.conn] = link
        self._of_account.clear()
        self._move_interest(carried, link.peer)

    def drop(self, link: RouteLink) -> None:
        """Forget a link and all that was learned on it; another one takes its accounts over."""
        carried = self._carriers(link.peer)
        carried = {name: one for name, one in carried.items() if one is not link}
        self._links.pop(link.conn, None)
        self._of_account.clear()
        for sub in link.subscriptions.values():
            self._remove(sub)
        link.subscriptions.clear()
        link.unclaimed.clear()
        self._move_interest(carried, link.peer)

    def _carriers(self, peer: str) -> dict[str, RouteLink]:
        """Account -> its link to a peer."""
        return {
            account.name: link
            for account in self._accounts
            for link in self.links_of(account.name)
            if link.peer == peer
        }

    def _move_interest(self, before: dict[str, RouteLink], peer: str) -> None:
        after = self._carriers(peer)
        for account in self._accounts:
            old, new = before.get(account.name), after.get(account.name)
            if new is old:
                continue
            if old is not None:
                self._write(old, list(self._told(account, old, gone=True)))
            if new is not None:
                self._write(new, list(self._told(account, new)))

    def _told(self, account: Namespace, link: RouteLink, *, gone: bool = False) -> Iterator[bytes]:
        """Lines that tell all interest in an account, or take it back."""
        name = b"" if link.account is not None else account.wire_name
        for (subject, queue), count in account.interest.items():
            yield _line(name, subject, queue, 0 if gone else count)
        for (subject, queue, origin), count in self._of_leafs.get(account, {}).items():
            yield _line(name, subject, queue, 0 if gone else count, origin)

    def _write(self, link: RouteLink, lines: list[bytes]) -> None:
        if lines:
            self._delivery.write(link, b"".join(lines))

    def changed(self, account: Namespace, subject: bytes, queue: bytes, step: int) -> None:
        """Local interest has one more (`step` 1) or one less (-1) subscription."""
        key = (subject, queue)
        before = account.interest.get(key, 0)
        now = before + step
        assert now >= 0
        if now:
            account.interest[key] = now
        else:
            account.interest.pop(key, None)
        self._tell(account, subject, queue, before, now)

    def leaf_changed(self, sub: Subscription, step: int) -> None:
        """A leaf node's interest has so many members more, or less."""
        account, origin = sub.account, sub.origin
        if not origin:
            self.changed(account, sub.subject, sub.queue, step)
            return
        counts = self._of_leafs.setdefault(account, {})
        key = (sub.subject, sub.queue, origin)
        before = counts.get(key, 0)
        now = before + step
        assert now >= 0
        if now:
            counts[key] = now
        else:
            counts.pop(key, None)
        if not counts:
            del self._of_leafs[account]
        self._tell(account, sub.subject, sub.queue, before, now, origin)

    def _tell(
        self,
        account: Namespace,
        subject: bytes,
        queue: bytes,
        before: int,
        now: int,
        origin: bytes = b"",
    ) -> None:
        if before and now and not queue:
            return
        for link in self.links_of(account.name):
            name = b"" if link.account is not None else account.wire_name
            self._delivery.write(link, _line(name, subject, queue, now, origin))

    def take(self, link: RouteLink, ops: list[RouteOp]) -> None:
        """Carry out a link's operations; those of the handshake are not for here."""
        for op in ops:
            if isinstance(op, Routed):
                self._message(link, op)
            elif isinstance(op, Interest):
                self._interest(link, op)
            elif isinstance(op, NoInterest):
                account = op.account.decode(errors="replace")
                key = (account, op.subject, op.queue, op.origin)
                link.unclaimed.pop(key, None)
                sub = link.subscriptions.pop(key, None)
                if sub is not None:
                    self._remove(sub)

    def _interest(self, link: RouteLink, op: Interest) -> None:
        name = op.account.decode(errors="replace")
        account = self._accounts.get(name)
        key = (name, op.subject, op.queue, op.origin)
        if account is None:
            # The other server may have been told of the account first.
            link.unclaimed[key] = op.weight
            return
        old = link.subscriptions.get(key)
        if old is not None:
            if old.weight != op.weight:
                self._weigh(old, op.weight)
            return
        self._subscribed(link, account, key, op.weight)

    def _subscribed(self, link: RouteLink, account: Namespace, key: RouteKey, weight: int) -> None:
        _, subject, queue, origin = key
        sub = Subscription(account, subject, queue, b"", link, weight=weight, origin=origin)
        link.subscriptions[key] = sub
        self._insert(sub)

    def account_added(self, account: Namespace) -> None:
        """What other servers told of an account before it was known here counts now."""
        for link in self._links.values():
            for key in [key for key in link.unclaimed if key[0] == account.name]:
                self._subscribed(link, account, key, link.unclaimed.pop(key))

    def account_removed(self, account: Namespace) -> None:
        """Other servers may still have an account that this one has not: what they told of it
        counts again if it comes back."""
        for link in self._links.values():
            for key in [key for key in link.subscriptions if key[0] == account.name]:
                sub = link.subscriptions.pop(key)
                link.unclaimed[key] = sub.weight
                self._remove(sub)

    def _message(self, link: RouteLink, op: Routed) -> None:
        link.in_messages += 1
        link.in_bytes += len(op.payload) + len(op.headers or b"")
        account = self._accounts.get(op.account.decode(errors="replace"))
        if account is None:
            return
        if op.reply == ANSWER and self.answers is not None:
            answer = (op.subject, op.reply, op.headers or b"", op.payload, account)
            self._delivery.capture(self.answers, answer)
            return
        plan = account.sublist.match(op.subject)
        if plan.empty:
            return
        reply, shown = split_reply(op.reply)
        link.cluster = op.origin
        if op.headers is not None and self._tracing.concerns(account, op.headers):
            shown = shown or op.subject
            self._tracing.routed(link, account, plan, op, reply, shown, op.queues)
            return
        self._delivery.one(
            link,
            account,
            plan,
            op.subject,
            reply,
            op.headers,
            op.payload,
            shown or op.subject,
            op.queues,
        )


def _line(name: bytes, subject: bytes, queue: bytes, count: int, origin: bytes = b"") -> bytes:
    """What tells of interest with so many members, or that there is none."""
    if count:
        return writer.interest(name, subject, queue, count, origin)
    return writer.no_interest(name, subject, queue, origin)
