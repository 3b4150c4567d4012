"""Who a client is for others, and what its own credentials leave it: limits, and time."""

from typing import TYPE_CHECKING, Protocol

from jsctl.broker import lazy
from jsctl.broker.accounts.accounts import CONNECTION_TYPE, Account
from jsctl.broker.accounts.identity import NOT_VOUCHED, ClientIdentity, Surroundings, Vouched
from jsctl.broker.interest.outbound import ClientFacts
from jsctl.broker.sessions.greeting import Greeting
from jsctl.broker.sessions.keepalive import KeepAlive
from jsctl.broker.sessions.session_context import SessionContext
from jsctl.broker.turn import Accepted

if TYPE_CHECKING:
    from jsctl.broker.accounts import claimed
else:
    claimed = lazy.module("jsctl.broker.accounts.claimed", optional=True)


class VouchedClient(Protocol):
    """A client, as far as it matters here."""

    account: Account
    alive: KeepAlive
    challenge: bytes
    client_id: int
    context: SessionContext
    greeting: Greeting
    identity: ClientIdentity | None
    remote: Accepted
    started_ns: int
    user: str

    def close(self, reason: str, text: bytes = b"") -> None:
        """Let it go."""


EXPIRED = "Authentication Expired"
USER_EXPIRED = b"User Authentication Expired"
ACCOUNT_EXPIRED = b"Account Authentication Expired"


def vouched_of(session: VouchedClient) -> Vouched | None:
    """What the JWT of a client says; None outside operator mode."""
    return None if session.identity is None else session.identity.vouched


def facts(session: VouchedClient) -> ClientFacts:
    """Who it is."""
    greeting, identity = session.greeting, session.context.identity
    vouched = vouched_of(session) or NOT_VOUCHED
    return ClientFacts(
        session.client_id,
        session.account.name,
        session.user,
        session.remote.remote_host,
        greeting.name,
        greeting.lang,
        greeting.version,
        session.started_ns,
        session.alive.rtt_ns,
        issuer(session),
        identity.server_name,
        identity.cluster,
        token=vouched.token,
        name_tag=vouched.name,
        tags=vouched.tags,
    )


def given_token(session: VouchedClient) -> str:
    """The JWT that it has logged in with, or was refused with; empty outside operator mode."""
    vouched = vouched_of(session)
    if vouched is not None:
        return vouched.token
    by_claims = session.context.router.accounts.logins.by_claims
    return session.greeting.credentials.jwt if by_claims else ""


def issuer(session: VouchedClient) -> str:
    """The account, or the key of it, that vouches for a user known by a key; empty for others."""
    vouched = vouched_of(session)
    if vouched is not None:
        return vouched.issuer
    by_key = session.user in session.context.router.accounts.logins.nkeys
    return session.account.name if by_key else ""


def seen(session: VouchedClient) -> Surroundings:
    """What counts at a login besides what the client says."""
    remote = session.remote
    return Surroundings(session.context.router.now_ns, remote.remote_host, remote.certificate)


def payload_max(session: VouchedClient) -> int:
    """The largest message that a client may publish."""
    here, vouched = session.context.limits.payload_bytes_max, vouched_of(session)
    own = -1 if vouched is None else vouched.payload_bytes_max
    return here if own < 0 else min(here, own)


def subscriptions_max(session: VouchedClient) -> int:
    """How many subscriptions it, and any client of its account, may have; -1: no limit."""
    vouched = vouched_of(session)
    return (
        session.account.limits.subscriptions_max if vouched is None else vouched.subscriptions_max
    )


def has_expired(session: VouchedClient, now_ns: int) -> bool:
    """Whether its time is over; it is closed then."""
    identity = session.identity
    if identity is None or not vouching_over(identity, now_ns):
        return False
    vouched = identity.vouched
    assert vouched is not None
    own = vouched.leaves_ns == vouched.expires_ns
    session.close(EXPIRED, USER_EXPIRED if own else ACCOUNT_EXPIRED)
    return True


def vouching_over(identity: ClientIdentity, now_ns: int) -> bool:
    """Whether the JWT of a user, or of its account, has expired."""
    vouched = identity.vouched
    return vouched is not None and 0 < vouched.leaves_ns <= now_ns


def refused_for(session: VouchedClient) -> str:
    """Why the JWT of a client that was refused does not count; empty outside operator mode. It is
    looked at again: what refuses many keeps nothing of any."""
    logins, given = session.context.router.accounts.logins, session.greeting.credentials
    if not logins.by_claims:
        return ""
    try:
        claimed.identify(logins, given, session.challenge, seen(session), CONNECTION_TYPE)
    except claimed.NotBelieved as error:
        return str(error)
    return ""
