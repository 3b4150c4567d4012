"""Whom a message concerns that it might go to: links to other servers, and who is asked last."""

from collections.abc import Callable

from jsctl.broker.interest.kinds import PeerKind
from jsctl.broker.interest.links import GatewayLink
from jsctl.broker.interest.outbound import Origin
from jsctl.broker.interest.targets import (
    AnyLink,
    LeafLink,
    QueueGroup,
    RouteLink,
    Shadow,
    SublistResult,
    Subscription,
)


def concerns(link: AnyLink, origin: Origin, kind: PeerKind, subject: bytes) -> bool:
    """Whether a message of `origin`, whose kind that is, goes on over a link."""
    heard = kind.reaches(link.kind) or link.takes_replies_of(kind, subject)
    return heard and link.takes(subject, origin)


def is_for(sub: Subscription, origin: Origin, kind: PeerKind, subject: bytes) -> bool:
    """Whether one who is asked last may have a message."""
    target = sub.target
    if isinstance(target, Shadow):
        seen = target.way.seen(subject, subject)
        target = target.sub.target
        assert isinstance(target, LeafLink)
        return bool(seen) and concerns(target, origin, kind, seen)
    assert isinstance(target, RouteLink | LeafLink | GatewayLink)
    cluster = b"" if origin is None else origin.cluster_in(sub.account)
    return not (cluster and cluster == sub.origin) and concerns(target, origin, kind, subject)


def distance(sub: Subscription) -> int:
    """The round trip to another cluster."""
    assert isinstance(sub.target, GatewayLink)
    return sub.target.rtt_ns


def elsewhere(
    group: QueueGroup, plan: SublistResult, kind: PeerKind, draw: Callable[[int], int]
) -> RouteLink | None:
    """Another server with members, for a message that came from a server of the cluster for one who
    has just left. Where plain subscriptions bring the message anyway, they would get it twice."""
    others = [link for link, _ in group.remote if link not in plan.links] if kind.meshed else []
    return others[draw(len(others))] if others else None
