"""Connections, routes, accounts and subscriptions as facts for monitoring."""

from collections.abc import Iterable
from functools import partial

from jsctl.api.monitoring.connz import SubDetail, SublistStats
from jsctl.api.server import DataStats, MsgBytes
from jsctl.broker.accounts.accounts import Account
from jsctl.broker.interest.targets import ROUTE_IDS_FROM, LeafLink, RouteLink
from jsctl.broker.linking.link_counts import LinkTraffic
from jsctl.broker.login_options.operators import SECOND_NS, AccountClaims
from jsctl.broker.routes.types import LinkFacts
from jsctl.broker.sessions import listing, standing
from jsctl.broker.sessions.listing import SubscriptionFacts
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.system.monitoring.view import AccountFacts, ConnFacts, RouteFacts

NO_CLAIMS = AccountClaims()


def conn_facts(session: ClientSession, *, closed: bool = False) -> ConnFacts:
    """A client connection, open or closed."""
    greeting, remote = session.greeting, session.remote
    vouched = standing.vouched_of(session)
    return ConnFacts(
        cid=session.client_id,
        host=remote.remote_host,
        port=remote.remote_port,
        start_ns=session.started_ns,
        last_ns=session.last_in_ns,
        stop_ns=session.stopped_ns if closed else 0,
        reason=session.closing if closed else "",
        rtt_ns=session.alive.rtt_ns,
        pending_bytes=0 if closed else listing.pending_bytes(session),
        in_msgs=session.in_messages,
        out_msgs=session.out_messages,
        in_bytes=session.in_bytes,
        out_bytes=session.payload_bytes_out,
        subscriptions=len(session.kept if closed else session.subscriptions),
        name=greeting.name,
        lang=greeting.lang,
        version=greeting.version,
        user=session.user,
        account=session.account.name,
        account_tag=session.account.tag,
        jwt=standing.given_token(session),
        bearer=None if vouched is None else vouched.bearer,
        tags=() if vouched is None else vouched.tags,
        issuer_key=standing.issuer(session),
        kept_subscriptions=partial(client_subscriptions, session) if closed else tuple,
    )


def sub_detail(sub: SubscriptionFacts, *, of_client: bool = False) -> SubDetail:
    """One subscription; a client's are told without the account, which is the client's."""
    return SubDetail(
        account="" if of_client else sub.account,
        account_tag="" if of_client else sub.account_tag,
        subject=sub.subject,
        qgroup=sub.queue,
        sid=sub.sid,
        msgs=sub.delivered,
        max=sub.maximum,
        cid=sub.client_id,
    )


def client_subscriptions(client: ClientSession | LeafLink) -> list[SubDetail]:
    """What a client or a leaf node has subscribed, or a client had when it was closed."""
    if isinstance(client, LeafLink):
        found = listing.of_link(client)
    else:
        found = listing.of_session(client)
    return [sub_detail(sub, of_client=True) for sub in found]


def route_facts(fact: LinkFacts, link: RouteLink, last_ns: int) -> RouteFacts:
    """A registered route connection."""
    return RouteFacts(
        cid=ROUTE_IDS_FROM + fact.conn,
        remote_id=fact.server_id,
        remote_name=fact.name,
        solicited=fact.solicited,
        configured=fact.configured,
        host=fact.host,
        port=fact.port,
        start_ns=fact.opened_ns,
        last_ns=max(last_ns, fact.opened_ns),
        rtt_ns=fact.rtt_ns,
        pending_bytes=listing.pending_bytes(link),
        in_msgs=link.in_messages,
        out_msgs=link.out_messages,
        in_bytes=link.in_bytes,
        out_bytes=link.payload_bytes_out,
        subscriptions=len(link.subscriptions),
        account=fact.account,
        compression=fact.compression or "off",
    )


def account_facts(
    account: Account, updated_ns: int, leafs: LinkTraffic, now_ns: int, *, jetstream: bool
) -> AccountFacts:
    """An account with its local connections and counters; `leafs` is what of these went over
    connections of leaf nodes."""
    claims = account.options.claims or NO_CLAIMS
    return AccountFacts(
        name=account.name,
        tag=account.tag,
        updated_ns=updated_ns,
        expired=0 < claims.expires_s * SECOND_NS <= now_ns,
        jwt=claims.token,
        issuer_key=claims.issuer,
        tags=claims.tags,
        jetstream=jetstream,
        clients=account.connections,
        leafs=account.leafs,
        subscriptions=len(account.sublist),
        sent=DataStats(
            msgs=account.out_messages,
            bytes=account.out_bytes,
            leafs=MsgBytes(msgs=leafs.out_msgs, bytes=leafs.out_bytes),
        ),
        received=DataStats(
            msgs=account.in_messages,
            bytes=account.in_bytes,
            leafs=MsgBytes(msgs=leafs.in_msgs, bytes=leafs.in_bytes),
        ),
        slow_consumers=account.slow_consumers,
    )


def sublist_stats(accounts: Iterable[Account]) -> SublistStats:
    """How the subscriptions of some accounts are matched."""
    found = listing.sublists(accounts)
    return SublistStats(
        num_subscriptions=found.subscriptions,
        num_cache=found.cached,
        num_inserts=found.inserts,
        num_removes=found.removes,
        num_matches=found.matches,
        cache_hit_rate=round(found.hit_rate, 6),
    )
