"""`/connz`, `/routez`, `/subsz`, `/leafz`."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from jsctl.api.monitoring.connz import (
    ConnInfo,
    Connz,
    ConnzOptions,
    Leafz,
    LeafzOptions,
    RouteInfo,
    Routez,
    RoutezOptions,
    SubDetail,
    SublistStats,
    Subsz,
    SubszOptions,
)
from jsctl.api.times import format_duration, format_time
from jsctl.broker import lazy
from jsctl.broker.subject.matching import overlapping
from jsctl.broker.subject.validity import is_valid_literal
from jsctl.broker.system.monitoring.view import ConnFacts, ListedConn, RouteFacts, ServerView
from jsctl.broker.system.monitoring.words import (
    CONNECTIONS_LISTED,
    Refused,
    number,
    page,
    time_or_nothing,
    uptime,
)

if TYPE_CHECKING:
    from jsctl.broker.claims import telling
else:
    telling = lazy.module("jsctl.broker.claims.telling", optional=True)

OPEN, CLOSED, ALL = 0, 1, 2
GLOBAL_ACCOUNT = "$G"
_CLOSED_ONLY = ("stop", "reason")

SortKey = Callable[[ConnFacts, int], int | str]
Sort = tuple[SortKey | None, bool]

# name -> (key of a connection at a time or None for its number, largest first)
_SORTS: dict[str, Sort] = {
    "": (None, False),
    "cid": (None, False),
    "start": (None, False),
    "subs": (lambda c, now: c.subscriptions, True),
    "pending": (lambda c, now: c.pending_bytes, True),
    "msgs_to": (lambda c, now: c.out_msgs, True),
    "msgs_from": (lambda c, now: c.in_msgs, True),
    "bytes_to": (lambda c, now: c.out_bytes, True),
    "bytes_from": (lambda c, now: c.in_bytes, True),
    "last": (lambda c, now: c.last_ns, True),
    "idle": (lambda c, now: now - c.last_ns, True),
    "uptime": (lambda c, now: (c.stop_ns or now) - c.start_ns, False),
    "stop": (lambda c, now: c.stop_ns, True),
    "reason": (lambda c, now: c.reason, False),
    "rtt": (lambda c, now: c.rtt_ns, True),
}


def connz(view: ServerView, options: ConnzOptions) -> Connz:
    """Client connections: open, closed or both; filtered, sorted, one page of them."""
    sort = _SORTS.get(options.sort)
    if sort is None:
        raise Refused(f"invalid sorting option: {options.sort}")
    if options.sort in _CLOSED_ONLY and options.state != CLOSED:
        raise Refused(f"sort by {options.sort} only valid on closed connections")
    if options.filter_subject not in ("", ">") and not options.acc:
        raise Refused("filter by subject only valid with account filtering")
    limit = 1 if options.cid else options.limit if options.limit > 0 else CONNECTIONS_LISTED
    candidates = _of_state(view, options)
    found = _filtered(view, candidates, options)
    offset = max(options.offset, 0)
    shown = [conn_info(view, one, options) for one in _sorted(view, found, sort, offset, limit)]
    return Connz(
        server_id=view.settings.server_id,
        now=format_time(view.now_ns),
        num_connections=len(shown),
        total=len(candidates),
        offset=offset,
        limit=limit,
        connections=tuple(shown),
    )


def _sorted(
    view: ServerView, found: list[ListedConn], sort: Sort, offset: int, limit: int
) -> Sequence[ConnFacts]:
    """A page of them; where they stand by their numbers, nothing is asked of the others."""
    key, largest_first = sort
    if key is None:
        found.sort(key=attrgetter("cid"))
        return [one.facts() for one in page(found, offset, limit)]
    facts = [one.facts() for one in found]
    facts.sort(key=lambda conn: key(conn, view.now_ns), reverse=largest_first)
    return page(facts, offset, limit)


def _of_state(view: ServerView, options: ConnzOptions) -> list[ListedConn]:
    conns: list[ListedConn] = []
    if options.state in (OPEN, ALL):
        conns.extend(view.connections(options.acc))
    if options.state in (CLOSED, ALL):
        conns.extend(view.closed_connections(options.acc))
    return conns


def _filtered(view: ServerView, conns: list[ListedConn], options: ConnzOptions) -> list[ListedConn]:
    if options.cid:
        return [conn for conn in conns if conn.cid == options.cid][:1]
    if options.mqtt_client:
        return []
    if options.user:
        conns = [conn for conn in conns if conn.facts().user == options.user]
    if options.filter_subject not in ("", ">"):
        meets = overlapping(options.filter_subject.encode())
        conns = [conn for conn in conns if conn.stop_ns or view.listens(conn.cid, meets)]
    return conns


def conn_info(view: ServerView, conn: ConnFacts, options: ConnzOptions) -> ConnInfo:
    """A connection in the words of a page."""
    subjects: tuple[str, ...] = ()
    details: tuple[SubDetail, ...] = ()
    if options.subscriptions or options.subscriptions_detail:
        subs = conn.kept_subscriptions() or view.subscriptions_of(conn.cid)
        if options.subscriptions_detail:
            details = tuple(subs)
        else:
            subjects = tuple(sub.subject for sub in subs)
    auth = options.auth
    end_ns = conn.stop_ns or view.now_ns
    return ConnInfo(
        cid=conn.cid,
        kind=conn.kind,
        type=conn.type,
        ip=conn.host,
        port=conn.port,
        start=format_time(conn.start_ns),
        last_activity=format_time(conn.last_ns),
        stop=time_or_nothing(conn.stop_ns),
        reason=conn.reason,
        rtt=format_duration(conn.rtt_ns),
        uptime=uptime(end_ns - conn.start_ns),
        idle=uptime(end_ns - conn.last_ns),
        pending_bytes=conn.pending_bytes,
        in_msgs=conn.in_msgs,
        out_msgs=conn.out_msgs,
        in_bytes=conn.in_bytes,
        out_bytes=conn.out_bytes,
        stalls=conn.stalls,
        subscriptions=conn.subscriptions,
        name=conn.name,
        lang=conn.lang,
        version=conn.version,
        tls_version=conn.tls_version,
        tls_cipher_suite=conn.tls_cipher_suite,
        authorized_user=conn.user if auth else "",
        account=conn.account if auth and conn.account != GLOBAL_ACCOUNT else "",
        subscriptions_list=subjects,
        subscriptions_list_detail=details,
        jwt=_shown_token(conn) if auth else "",
        issuer_key=conn.issuer_key if auth else "",
        name_tag=_shown_tag(conn) if auth else "",
        tags=conn.tags if auth else (),
    )


def _shown_token(conn: ConnFacts) -> str:
    """Not one that makes a user of whoever sees it."""
    if not conn.jwt:
        return ""
    bearer = telling.is_bearer(conn.jwt) if conn.bearer is None else conn.bearer
    return "" if bearer else conn.jwt


def _shown_tag(conn: ConnFacts) -> str:
    """What people call its account, unless that is where clients are before they log in."""
    nowhere = conn.stop_ns and conn.account == GLOBAL_ACCOUNT
    return "" if nowhere else conn.account_tag or conn.account


def routez(view: ServerView, options: RoutezOptions) -> Routez:
    """Route connections; several to each server."""
    routes = view.routes()
    return Routez(
        server_id=view.settings.server_id,
        server_name=view.settings.server_name,
        now=format_time(view.now_ns),
        num_routes=len(routes),
        routes=tuple(_route_info(view, route, options) for route in routes),
    )


def _route_info(view: ServerView, route: RouteFacts, options: RoutezOptions) -> RouteInfo:
    wanted = options.subscriptions or options.subscriptions_detail
    subs = view.subscriptions_of(route.cid) if wanted else ()
    return RouteInfo(
        rid=route.cid,
        remote_id=route.remote_id,
        remote_name=route.remote_name,
        did_solicit=route.solicited,
        is_configured=route.configured,
        ip=route.host,
        port=route.port,
        start=format_time(route.start_ns),
        last_activity=format_time(route.last_ns),
        rtt=format_duration(route.rtt_ns),
        uptime=uptime(view.now_ns - route.start_ns),
        idle=uptime(view.now_ns - route.last_ns),
        pending_size=route.pending_bytes,
        in_msgs=route.in_msgs,
        out_msgs=route.out_msgs,
        in_bytes=route.in_bytes,
        out_bytes=route.out_bytes,
        subscriptions=route.subscriptions,
        subscriptions_list=(
            () if options.subscriptions_detail else tuple(sub.subject for sub in subs)
        ),
        subscriptions_list_detail=tuple(subs) if options.subscriptions_detail else (),
        account=route.account,
        compression=route.compression,
    )


def subsz(view: ServerView, options: SubszOptions) -> Subsz:
    """How subscriptions are matched, and on request which there are."""
    if options.test and not is_valid_literal(options.test.encode()):
        raise Refused(f"invalid test subject, must be valid publish subject: {options.test}")
    names = [account.name for account in view.accounts() if options.account in ("", account.name)]
    limit = options.limit if options.limit > 0 else CONNECTIONS_LISTED
    offset = max(options.offset, 0)
    subs: list[SubDetail] = []
    total = 0
    if options.subscriptions:
        meets = overlapping(options.test.encode()) if options.test else None
        for name in names:
            window = max(offset - total, 0), limit - len(subs)
            count, found = view.account_subscriptions(name, meets, *window)
            total += count
            subs += found
    return Subsz(
        server_id=view.settings.server_id,
        now=format_time(view.now_ns),
        stats=_summed([view.sublist_stats(name) for name in names]),
        total=total,
        offset=offset,
        limit=limit,
        subscriptions_list=tuple(subs),
    )


def _summed(stats: Sequence[SublistStats]) -> SublistStats:
    """The statistics of several accounts as one."""
    matched = sum(one.num_matches for one in stats)
    hits = sum(one.cache_hit_rate * one.num_matches for one in stats)
    cached = sum(one.num_cache for one in stats)
    fanout = sum(one.avg_fanout * one.num_cache for one in stats)
    return SublistStats(
        num_subscriptions=sum(one.num_subscriptions for one in stats),
        num_cache=cached,
        num_inserts=sum(one.num_inserts for one in stats),
        num_removes=sum(one.num_removes for one in stats),
        num_matches=matched,
        cache_hit_rate=number(hits / matched) if matched else 0,
        max_fanout=max((one.max_fanout for one in stats), default=0),
        avg_fanout=number(fanout / cached) if cached else 0,
    )


def leafz(view: ServerView, options: LeafzOptions) -> Leafz:
    """Leaf nodes and hubs, with their subscriptions only on request."""
    found = tuple(view.leafs(options.account, subscriptions=options.subscriptions))
    return Leafz(
        server_id=view.settings.server_id,
        now=format_time(view.now_ns),
        leafnodes=len(found),
        leafs=found,
    )
