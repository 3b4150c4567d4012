"""What monitoring may know of subscriptions, as plain data (`/subsz`, `/connz?subs=1`)."""

from collections.abc import Callable, Iterable, Iterator

from jsctl.broker.accounts.accounts import Account
from jsctl.broker.interest.kinds import Served
from jsctl.broker.interest.outbound import Outbound
from jsctl.broker.interest.targets import LeafLink, RouteLink, Subscription
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.subject.matching import covering
from jsctl.broker.subject.validity import has_wildcard, is_valid_literal
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SubscriptionFacts:
    """One subscription. `client_id` is 0 for the server's own; `maximum` 0 is unlimited."""

    account: str
    subject: str
    queue: str
    sid: str
    delivered: int
    maximum: int
    client_id: int
    weight: int
    account_tag: str = ""


@dataclass(frozen=True, slots=True)
class SublistFacts:
    """How the subscriptions of some accounts are found."""

    subscriptions: int
    cached: int
    inserts: int
    removes: int
    matches: int
    hits: int

    @property
    def hit_rate(self) -> float:
        """Share of the matches that the cache answered, 0 to 1."""
        return self.hits / self.matches if self.matches else 0.0


def _served(listed: Subscription) -> Subscription:
    """The subscription that a shadow in another account is of."""
    target = listed.target
    return target.sub if target.served is Served.SHADOW else listed


def _facts(listed: Subscription) -> SubscriptionFacts:
    sub = _served(listed)
    target = sub.target
    return SubscriptionFacts(
        sub.account.name,
        listed.subject.decode(errors="replace"),
        sub.queue.decode(errors="replace"),
        sub.sid.decode(errors="replace"),
        sub.delivered,
        sub.maximum,
        target.client_id if target.served is Served.EACH else 0,
        sub.weight,
        sub.account.tag,
    )


def of_session(session: ClientSession) -> Iterator[SubscriptionFacts]:
    """Subscriptions of a client; of a closed one those that it had last."""
    source: Iterable[Subscription] = session.subscriptions.values()
    return map(_facts, session.kept if session.closing else source)


def of_link(link: RouteLink | LeafLink) -> Iterator[SubscriptionFacts]:
    """Interest learned from another server."""
    return map(_facts, link.subscriptions.values())


def of_links(subs: Iterable[Subscription]) -> tuple[SubscriptionFacts, ...]:
    """The same of any such."""
    return tuple(map(_facts, subs))


def of_account(
    account: Account, wanted: Callable[[bytes], bool] | None, offset: int, limit: int
) -> tuple[int, list[SubscriptionFacts]]:
    """How many subscriptions of an account are on this server, its own included, other servers'
    not; and a page of them. There may be a million, and only those of the page are told of."""
    here = [sub for sub in account.sublist if sub.target.served is not Served.ONCE]
    if wanted is not None:
        here = [sub for sub in here if wanted(sub.subject)]
    return len(here), list(map(_facts, here[offset : offset + limit]))


def reached(account: Account, subject: bytes, queue: str) -> int:
    """How many of these a subject reaches, in a queue group if one is named; of one with wildcards,
    how many hear nothing else. Any client may ask: none is listed for it."""
    found: Iterable[Subscription] = ()
    if has_wildcard(subject):
        covers = covering(subject)
        found = [sub for sub in account.sublist if covers(sub.subject)]
    elif is_valid_literal(subject):
        found = account.sublist.matching(subject)
    here = [sub for sub in found if sub.target.served is not Served.ONCE]
    return sum([not queue or _served(sub).queue.decode(errors="replace") == queue for sub in here])


def sublists(accounts: Iterable[Account]) -> SublistFacts:
    """The sublists of some accounts taken together."""
    lists = [account.sublist for account in accounts]
    hits = sum(one.cache_hits for one in lists)
    return SublistFacts(
        subscriptions=sum(len(one) for one in lists),
        cached=sum(one.cache_count for one in lists),
        inserts=sum(one.inserts for one in lists),
        removes=sum(one.removes for one in lists),
        matches=hits + sum(one.cache_misses for one in lists),
        hits=hits,
    )


def pending_bytes(target: Outbound) -> int:
    """What a connection still has to be sent."""
    return target.kernel_pending + target.out_bytes
