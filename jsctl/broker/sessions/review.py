"""What becomes of clients that are here when accounts, users or limits change.

Who has lost the right to be here is closed: with an -ERR where what it said is good for nothing
any more, and without one where its user is gone or belongs to another account, since a client
that connects again finds its way. All others stay, and notice nothing but the end of
subscriptions that they may not have any more.
"""

from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.accounts.accounts import CONNECTION_TYPE
from jsctl.broker.accounts.auth import authenticate
from jsctl.broker.accounts.identity import Check, ClientIdentity
from jsctl.broker.accounts.permissions import Permissions
from jsctl.broker.interest.targets import Namespace, Subscription
from jsctl.broker.sessions import standing
from jsctl.broker.sessions.refusals import (
    ACCOUNT_FULL,
    AUTH_FAILURE,
    AUTH_VIOLATION,
    SUBSCRIPTIONS_FULL,
)
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.turn import LogLevel, LogLine, Verify
from jsctl.dataclass import replace

if TYPE_CHECKING:
    from jsctl.broker.accounts import claimed
else:
    claimed = lazy.module("jsctl.broker.accounts.claimed", optional=True)

MOVED = "Client Closed"
"""The reason for which nats-server closes who has no user, or another account, now."""


def review(
    sessions: Iterable[ClientSession], accounts: Container[Namespace] | None = None
) -> list[LogLine]:
    """Look at all clients again, or at those of `accounts`, whose JWTs are others, or gone; what
    the operator should know is returned. Where they are too many the youngest go.
    """
    lines: list[LogLine] = []
    for session in reversed(list(sessions)):
        if session.closing or (accounts is not None and session.account not in accounts):
            continue
        if session.waiting:
            lines += _review_waiting(session)
        elif session.identity is not None and session.identity.vouched is not None:
            lines += _review_vouched(session, session.identity, expired=accounts is not None)
        elif session.identity is not None:
            lines += _review(session, session.identity)
    return lines


def _review_vouched(
    session: ClientSession, known: ClientIdentity, *, expired: bool
) -> list[LogLine]:
    """In operator mode: whether the JWT of a client still counts, and for what. `expired`: an
    account that is gone has ceased to count, or was deleted."""
    logins = session.context.router.accounts.logins
    gone = known.account is not logins.by_key.get(known.account.name)
    if expired and gone:
        session.close(standing.EXPIRED, standing.ACCOUNT_EXPIRED)
        return []
    if not logins.by_claims:
        session.close(MOVED)
        return []
    if gone:
        return _refuse(session)
    given, challenge = session.greeting.credentials, session.challenge
    try:
        found = claimed.identify(logins, given, challenge, standing.seen(session), CONNECTION_TYPE)
    except claimed.Revoked:
        session.close("Credentials Revoked", b"User Authentication Revoked")
    except claimed.BearerRefused:
        return _refuse(session)
    except claimed.NotBelieved as error:
        session.close(AUTH_FAILURE)
        text = f'cid:{session.client_id} - user "{session.user}" may not stay: {error}'
        return [LogLine(LogLevel.DEBUG, text)]
    else:
        if found.role == known.role:
            return adopt(session, found)
        session.close(AUTH_FAILURE)  # It comes again, as what its signing key is now.
    return []


def _review_waiting(session: ClientSession) -> list[LogLine]:
    """A password is being checked: it has to be the one that counts now."""
    logins, check = session.context.router.accounts.logins, session.check
    given, challenge = session.greeting.credentials, session.challenge
    found = authenticate(logins, given, challenge, seen=standing.seen(session))
    if found is None:
        return _refuse(session)
    if isinstance(found, Check) and check is not None and found.hashed == check.hashed:
        session.check = found
    else:
        session.close(MOVED)
    return []


def _review(session: ClientSession, known: ClientIdentity) -> list[LogLine]:
    logins = session.context.router.accounts.logins
    if known.user and known.user not in logins.users and known.user not in logins.nkeys:
        session.close(MOVED)
        return []
    given, challenge = session.greeting.credentials, session.challenge
    found = authenticate(logins, given, challenge, known, seen=standing.seen(session))
    if found is None:
        return _refuse(session)
    identity = found.identity if isinstance(found, Check) else found
    pending = session.check
    if identity.account is not session.account:
        session.close(MOVED)
    elif not isinstance(found, Check):
        if pending is not None:
            session.check = replace(pending, needed=False)
        return adopt(session, identity)
    elif pending is None:
        session.check = found
        session.context.verifies.append(Verify(session.conn, found.password, found.hashed))
    elif pending.hashed == found.hashed:
        session.check = found
    else:
        session.close(MOVED)  # The verdict that comes is on another hash.
    return []


def verified(session: ClientSession, ok: bool) -> list[LogLine]:
    """The password of a client that is here was checked against another hash."""
    check, session.check = session.check, None
    if check is None or session.closing or not check.needed:
        return []
    return adopt(session, check.identity) if ok else _refuse(session)


def _refuse(session: ClientSession) -> list[LogLine]:
    session.close(AUTH_FAILURE, AUTH_VIOLATION)
    return []


def adopt(session: ClientSession, identity: ClientIdentity) -> list[LogLine]:
    """Have a client go on as a user of its account whom, or which, the configuration changed."""
    assert identity.account is session.account
    before, session.identity = session.identity, identity
    session.alive.leaves(identity.leaves_ns)
    lines: list[LogLine] = []
    if before is None or before.permissions != identity.permissions:
        rules, old = identity.permissions, session.permissions
        session.permissions = Permissions(rules) if rules is not None else None
        if session.permissions is not None and old is not None:
            session.permissions.take_replies(old)
        session.tracks_replies = rules is not None and rules.responses is not None
        lines = _drop_subscriptions(session)
    renew(session)
    _enforce_limits(session)
    return lines


def renew(session: ClientSession) -> None:
    """Forget what was concluded from limits, permissions and mappings that have changed."""
    session.plans.clear()
    session.heads.clear()
    session.generation, session.fans = -1, None
    session.refresh()


def _drop_subscriptions(session: ClientSession) -> list[LogLine]:
    """End what a client may not listen to any more, and filter anew what it may."""
    permissions, lines = session.permissions, []
    for sid, sub in list(session.subscriptions.items()):
        if permissions is not None and not permissions.may_subscribe(sub.subject, sub.queue):
            del session.subscriptions[sid]
            session.context.router.unsubscribe(sub)
            shown = _shown(sub)
            session.error(b"Permissions Violation for Subscription to %s" % shown)
            text = shown.decode(errors="replace")
            line = f'Removed sub {text} for User "{session.user}" - not authorized'
            lines.append(LogLine(LogLevel.INFO, line))
            continue
        sub.denied = (
            None if permissions is None else permissions.denied_within(sub.subject, sub.queue)
        )
        session.account.sublist.touch(sub.subject)
    return lines


def _shown(sub: Subscription) -> bytes:
    using = b' using queue "%s"' % sub.queue if sub.queue else b""
    return b'"%s"%s (sid "%s")' % (sub.subject, using, sub.sid)


def _enforce_limits(session: ClientSession) -> None:
    """Close a client that its account has no room for any more."""
    own_max = standing.subscriptions_max(session)
    if session.account.connections_over(session.account.leafs):
        session.close(*ACCOUNT_FULL)
    elif 0 <= own_max < len(session.subscriptions):
        session.close(*SUBSCRIPTIONS_FULL)


def shed(sessions: Sequence[ClientSession], maximum: int) -> int:
    """Close clients beyond a lower maximum, the youngest first; how many that were."""
    here = [session for session in sessions if not session.closing]
    for session in here[max(maximum, 0) :]:
        session.close("Maximum Connections Exceeded", b"maximum connections exceeded")
    return max(len(here) - max(maximum, 0), 0)
