"""Why a SUB is refused, in the words of the -ERR that the client gets."""

from typing import NamedTuple

from jsctl.broker.accounts.permissions import Permissions
from jsctl.broker.protocol.ops import Subscribe
from jsctl.broker.routing.limits import RoutingLimits

AUTH_VIOLATION = b"Authorization Violation"
AUTH_FAILURE = "Authentication Failure"
ACCOUNT_FULL = (
    "Maximum Account Connections Exceeded",
    b"maximum account active connections exceeded",
)
"""Why a client is closed that its account has no room for, and what it is told."""
SUBSCRIPTIONS_FULL = ("Maximum Subscriptions Exceeded", b"maximum subscriptions exceeded")
"""The same of one that has more subscriptions than it may."""
SYSTEM_QUEUE = b"_sys_"
"""The queue group of the server's own subscriptions."""


class Refusal(NamedTuple):
    """What a client was not allowed, and what it was told."""

    told: bytes
    subject: bytes
    """Or the reply of a message."""
    queue: bytes = b""
    sid: bytes = b""
    """Of a subscription."""


def refusal(
    op: Subscribe,
    limits: RoutingLimits,
    own_max: int,
    permissions: Permissions | None,
    count: int,
) -> bytes:
    """The error for a subscription of a client that has `count` of them and may have `own_max`, if
    that is not negative; empty: it is allowed."""
    tokens_max = limits.subscription_tokens_max
    if tokens_max > 0 and op.subject.count(b".") + 1 > tokens_max:
        text = b'Permissions Violation for Subscription to "%s", too many tokens'
        return text % op.subject
    allowed = op.queue != SYSTEM_QUEUE and (
        permissions is None or permissions.may_subscribe(op.subject, op.queue)
    )
    if not allowed and op.queue:
        text = b'Permissions Violation for Subscription to "%s" using queue "%s"'
        return text % (op.subject, op.queue)
    if not allowed:
        return b'Permissions Violation for Subscription to "%s"' % op.subject
    if 0 < limits.subscriptions_max <= count or 0 <= own_max <= count:
        return b"maximum subscriptions exceeded"
    return b""
