"""Replies that find their way back to the cluster that asks.

Over there it is not known at once that somebody here has just subscribed: interest travels on
another connection than requests do. So a request whose reply was subscribed a moment ago says where
the answer has to go: `_GR_.<cluster>.<server>.<reply>`. Who receives it sees the reply alone; what
he says to it is led back directly, for as long as the news of the interest may take. In the cluster
that asked, the answer goes on to the server that asked.

A leaf node of the cluster is told the same, as it may hear of the request first, too. It does the
same with what comes from its hub: what is said to such a reply goes there, and the hub passes it on
to the other cluster.

Both are subscriptions with a `ReplyWay` as their target: one of each such reply, or of all those
of one client where they can be told, and in every account one of everything that leads to any
cluster, which leaf nodes are told of. So they are found as everything else is.
"""

import hashlib
from collections import deque
from collections.abc import Iterator
from dataclasses import field
from functools import lru_cache

from jsctl.broker.interest.links import (
    GATEWAY_HASH_BYTES,
    GATEWAY_REPLY,
    GATEWAY_REPLY_BYTES,
    GatewayLink,
    ReplyWay,
)
from jsctl.broker.interest.targets import Namespace, Subscription
from jsctl.broker.routing.setup import NAME_ALPHABET
from jsctl.broker.routing.shown import split_reply
from jsctl.broker.subject.sublist import Sublist
from jsctl.broker.subject.validity import is_valid_literal
from jsctl.dataclass import dataclass

RECENT_NS = 2_000_000_000
"""How long news of interest may take to the other cluster, and an answer back."""
WAYS_MAX = 65_536
"""Replies that are led back at a time; at the limit the oldest is forgotten."""
INBOX, INBOX_WORDS, DRAWN_BYTES = b"_INBOX", 3, 22
"""`_INBOX.<drawn>.<number of the request>`."""
MARKS_KEPT = 1024


@lru_cache(maxsize=MARKS_KEPT)
def mark(name: str) -> bytes:
    """What stands for a cluster, by its name, or a server, by its id, in replies."""
    digest = hashlib.sha256(name.encode()).digest()[:GATEWAY_HASH_BYTES]
    return "".join(NAME_ALPHABET[byte % len(NAME_ALPHABET)] for byte in digest).encode()


@dataclass(slots=True)
class _Recent:
    """What was subscribed in one account a moment ago."""

    found: "Sublist[Subscription, bool]"
    subs: deque[tuple[int, Subscription]] = field(default_factory=deque)


@dataclass(slots=True)
class GatewayReplies:
    """See the module. `cluster` and `server` are the marks of this one. Times in ns."""

    cluster: bytes
    server: bytes
    links: dict[bytes, GatewayLink] = field(default_factory=dict)
    """By the mark of the cluster that they lead to."""
    replying: set[str] = field(default_factory=set)
    """Accounts in which somebody has just subscribed; shared with the links."""
    _recent: dict[Namespace, _Recent] = field(default_factory=dict)
    _ways: dict[tuple[Namespace, bytes], Subscription] = field(default_factory=dict)
    _last: tuple[bytes, bytes, Namespace | None, int] = (b"", b"", None, 0)
    """What was noted last, itself or as its family begins: many requests of a turn are of one
    client."""

    def clusters(self) -> list[str]:
        """The other clusters that messages go to, the nearest first."""
        return [one.gateway for one in sorted(self.links.values(), key=lambda one: one.rtt_ns)]

    @property
    def prefix(self) -> bytes:
        """What replies of this server have in front."""
        return b"%s%s.%s." % (GATEWAY_REPLY, self.cluster, self.server)

    # ---- requests that leave

    def subscribed(self, sub: Subscription, now_ns: int) -> None:
        """Somebody here has subscribed."""
        account = sub.account
        known = self._recent.get(account)
        if known is None:
            known = self._recent[account] = _Recent(Sublist(_is_any))
            self.replying.add(account.name)
        known.subs.append((now_ns + RECENT_NS, sub))
        known.found.insert(sub.subject, sub)

    def prefix_of_request(self, account: Namespace, reply: bytes) -> bytes:
        """What is put in front of the reply of a request that leaves; mostly nothing."""
        known = self._recent.get(account)
        return self.prefix if known is not None and known.found.match(reply) else b""

    # ---- requests that came in

    def noted(self, account: Namespace, reply: bytes, now_ns: int) -> tuple[bytes, bytes]:
        """The reply as receivers see it, and the subject that it says to show them (see
        `split_reply`); what is said to that reply is led back for a while."""
        same, front, account_then, then_ns = self._last
        if then_ns == now_ns and account is account_then:
            head, _, number = reply.rpartition(b".")
            if reply == same or (head == front and number.isalnum()):
                return reply[GATEWAY_REPLY_BYTES:], b""
        prefix = reply[:GATEWAY_REPLY_BYTES]
        rest, shown = split_reply(reply[GATEWAY_REPLY_BYTES:])
        if not is_valid_literal(rest):
            return reply, b""
        self._forget_old(now_ns)
        pattern = family(rest)
        known = self._ways.pop((account, pattern), None)
        if known is None:
            if len(self._ways) >= WAYS_MAX:
                self._forget(next(iter(self._ways)))
            known = Subscription(account, pattern, b"", b"", ReplyWay(), local_only=True)
            account.sublist.insert(pattern, known)
        self._ways[account, pattern] = known
        way = known.target
        assert isinstance(way, ReplyWay)
        way.prefix, way.until_ns = prefix, now_ns + RECENT_NS
        if not shown:
            front = b"" if pattern == rest else prefix + pattern[:-2]
            self._last = reply, front, account, now_ns
        return rest, shown

    def prefix_of(self, account: Namespace, reply: bytes) -> bytes:
        """What a reply that came in had in front."""
        known = self._ways.get((account, family(reply)))
        if known is None:
            return b""
        assert isinstance(known.target, ReplyWay)
        return known.target.prefix

    def link_of(self, prefix: bytes) -> GatewayLink | None:
        """The way to the cluster that a reply came from."""
        start = len(GATEWAY_REPLY)
        return self.links.get(prefix[start : start + GATEWAY_HASH_BYTES])

    def is_own(self, subject: bytes) -> bool:
        """Whether what leads to a cluster leads to this one."""
        return subject.startswith(self.cluster + b".", len(GATEWAY_REPLY))

    @staticmethod
    def server_of(subject: bytes) -> bytes:
        """The mark of the server that asked for what came back."""
        start = len(GATEWAY_REPLY) + GATEWAY_HASH_BYTES + 1
        return subject[start : start + GATEWAY_HASH_BYTES]

    # ---- time

    def tick(self, now_ns: int) -> None:
        """Forget what is old."""
        for account in [*self._recent]:
            self._age(account, self._recent[account], now_ns)
        self._forget_old(now_ns)

    def deadline_ns(self) -> int | None:
        """When `tick` has something to do."""
        return min(self._deadlines(), default=None)

    def _deadlines(self) -> Iterator[int]:
        for one in self._recent.values():
            yield one.subs[0][0]
        for sub in self._ways.values():
            yield self._until(sub)
            return

    def _age(self, account: Namespace, known: _Recent, now_ns: int) -> None:
        while known.subs and known.subs[0][0] <= now_ns:
            _, sub = known.subs.popleft()
            known.found.remove(sub.subject, sub)
        if not known.subs:
            del self._recent[account]
            if not any(one.name == account.name for one in self._recent):
                # Else there is another account of that name, which came when this one had gone.
                self.replying.discard(account.name)
            # Who keeps answers of where messages go is to ask anew: they are plain from now on.
            account.sublist.touch(b">")

    def _forget_old(self, now_ns: int) -> None:
        while self._ways:
            key, sub = next(iter(self._ways.items()))
            if self._until(sub) > now_ns:
                return
            self._forget(key)

    def _forget(self, key: tuple[Namespace, bytes]) -> None:
        sub = self._ways.pop(key)
        sub.account.sublist.remove(sub.subject, sub)

    @staticmethod
    def _until(sub: Subscription) -> int:
        assert isinstance(sub.target, ReplyWay)
        return sub.target.until_ns


def replies_of(gateway: str, server_id: str) -> GatewayReplies:
    """Those of a server of a cluster."""
    return GatewayReplies(mark(gateway), mark(server_id))


def family(reply: bytes) -> bytes:
    """The pattern of all replies of one client: what clients make their inboxes of is drawn, so
    nobody else has one that begins so. Any other reply stands for itself."""
    words = reply.split(b".")
    if len(words) == INBOX_WORDS and words[0] == INBOX and len(words[1]) >= DRAWN_BYTES:
        return b"%s.%s.*" % (INBOX, words[1])
    return reply


def _is_any(plain: tuple[Subscription, ...], groups: tuple[tuple[Subscription, ...], ...]) -> bool:
    return bool(plain or groups)
