"""Links to other servers: what they are told of interest here, what they tell of theirs.

An account's interest and messages travel on one link per peer: the one dedicated to it, or the
pool link that its name hashes to. Messages from a link are never sent on to another one.
"""

from collections.abc import Callable, Collection, Iterator

from jsctl.broker.accounts.accounts import Accounts
from jsctl.broker.interest.targets import Namespace, RouteLink, Subscription
from jsctl.broker.protocol import writer
from jsctl.broker.protocol.ops import Interest, NoInterest, Routed, RouteOp
from jsctl.broker.routing.delivery import ACK_PREFIX, Deliverer
from jsctl.broker.routing.tracing import Tracing
from jsctl.broker.subject.transforms import fnv1a32

ACK_DOTS = 8
"""An ack reply has this many dots in front of an `@` that ends it."""


def pool_index(account: str, pool_size: int) -> int:
    """The pool connection that carries an account."""
    return fnv1a32(account.encode()) % pool_size if pool_size > 1 else 0


def split_reply(reply: bytes) -> tuple[bytes, bytes]:
    """(reply, subject to show) of a routed JetStream delivery; the latter empty elsewhere."""
    if not reply.startswith(ACK_PREFIX) or b"@" not in reply:
        return reply, b""
    position = -1
    for _ in range(ACK_DOTS):
        position = reply.find(b".", position + 1)
        if position < 0:
            return reply, b""
    at = reply.find(b"@", position)
    if at < 0 or at == len(reply) - 1:
        return reply, b""
    return reply[:at], reply[at + 1 :]


class Routes:
    """All links, and the interest that crosses them."""

    def __init__(
        self,
        accounts: Accounts,
        delivery: Deliverer,
        tracing: Tracing,
        insert: Callable[[Subscription], None],
        remove: Callable[[Subscription], None],
    ) -> None:
        self._accounts = accounts
        self._delivery = delivery
        self._tracing = tracing
        self._insert = insert
        self._remove = remove
        self.pinned: frozenset[str] = frozenset()
        """Accounts that have a link of their own to every pooled peer, and use no other."""
        self._links: dict[int, RouteLink] = {}
        self._of_account: dict[str, list[RouteLink]] = {}

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
            name = account.wire_name
            if old is not None:
                gone = b"" if old.account is not None else name
                self._write(old, [writer.no_interest(gone, *key) for key in account.interest])
            if new is not None:
                told = b"" if new.account is not None else name
                interest = account.interest.items()
                self._write(new, [writer.interest(told, *key, count) for key, count in interest])

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
        if before and now and not queue:
            return
        for link in self.links_of(account.name):
            name = b"" if link.account is not None else account.wire_name
            if now:
                line = writer.interest(name, subject, queue, now)
            else:
                line = writer.no_interest(name, subject, queue)
            self._delivery.write(link, line)

    def take(self, link: RouteLink, ops: list[RouteOp]) -> None:
        """Carry out a link's operations; those of the handshake are not for here."""
        for op in ops:
            if isinstance(op, Routed):
                self._message(link, op)
            elif isinstance(op, Interest):
                self._interest(link, op)
            elif isinstance(op, NoInterest):
                account = op.account.decode(errors="replace")
                link.unclaimed.pop((account, op.subject, op.queue), None)
                sub = link.subscriptions.pop((account, op.subject, op.queue), None)
                if sub is not None:
                    self._remove(sub)

    def _interest(self, link: RouteLink, op: Interest) -> None:
        name = op.account.decode(errors="replace")
        account = self._accounts.get(name)
        key = (name, op.subject, op.queue)
        if account is None:
            # The other server may have been told of the account first.
            link.unclaimed[key] = op.weight
            return
        old = link.subscriptions.get(key)
        if old is not None:
            if old.weight != op.weight:
                old.weight = op.weight
                account.sublist.touch(op.subject)
            return
        sub = Subscription(account, op.subject, op.queue, b"", link, weight=op.weight)
        link.subscriptions[key] = sub
        self._insert(sub)

    def account_added(self, account: Namespace) -> None:
        """What other servers told of an account before it was known here counts now."""
        for link in self._links.values():
            for key in [key for key in link.unclaimed if key[0] == account.name]:
                _, subject, queue = key
                weight = link.unclaimed.pop(key)
                sub = Subscription(account, subject, queue, b"", link, weight=weight)
                link.subscriptions[key] = sub
                self._insert(sub)

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
        plan = account.sublist.match(op.subject)
        if plan.empty:
            return
        reply, shown = split_reply(op.reply)
        if op.headers is not None and self._tracing.concerns(account, op.headers):
            self._tracing.routed(link, account, plan, op, reply, shown or op.subject)
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
