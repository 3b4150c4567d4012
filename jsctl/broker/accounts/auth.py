"""Who a client is: what its CONNECT says against the configured users, or, in operator mode,
against those who sign JWTs (`claimed`).

Plain passwords and tokens are compared in constant time here, and signatures of nkeys verified.
bcrypt takes far longer than a turn may, so the answer can also be "check this first".
"""

import hmac
from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.accounts.accounts import CONNECTION_TYPE, Logins, User
from jsctl.broker.accounts.identity import (
    NOTHING_SEEN,
    Check,
    ClientIdentity,
    Credentials,
    Surroundings,
    is_signed,
)
from jsctl.broker.passwords import looks_hashed
from jsctl.broker.turn import PeerCertificate
from jsctl.dataclass import replace

if TYPE_CHECKING:
    from jsctl.broker.accounts import claimed
else:
    claimed = lazy.module("jsctl.broker.accounts.claimed", optional=True)


def _same(given: bytes, expected: bytes) -> bool:
    return hmac.compare_digest(given, expected)


def _identity(user: User, connection_type: str) -> ClientIdentity | None:
    if user.connection_types and connection_type not in user.connection_types:
        return None
    return ClientIdentity(user.account, user.name, user.permissions, user.password)


def measured(
    given: str,
    expected: bytes,
    identity: ClientIdentity | None,
    known: ClientIdentity | None = None,
) -> ClientIdentity | Check | None:
    """The identity if a password, or token, is the expected one; a `Check` if that takes time."""
    if identity is None:
        return None
    if known is not None and known.proof and known.proof == expected:
        return identity
    secret = given.encode()
    if looks_hashed(expected.decode()):
        return Check(identity, secret, expected)
    return identity if _same(secret, expected) else None


def authenticate(
    logins: Logins,
    given: Credentials,
    challenge: bytes,
    known: ClientIdentity | None = None,
    connection_type: str = CONNECTION_TYPE,
    seen: Surroundings = NOTHING_SEEN,
) -> ClientIdentity | Check | None:
    """Find out who a client is; None means that it has to go.

    `known` is who it has shown to be before: what it has proved and what has not changed since
    need not be proved again.

    `challenge` is the nonce that this connection, and no other, was given in INFO. Without nkey
    users there is none, and what a client says of nkeys means nothing.
    """
    if not logins.by_claims:
        return _as_configured(logins, given, challenge, known, connection_type, seen)
    try:
        return claimed.identify(logins, given, challenge, seen, connection_type)
    except claimed.NotBelieved as error:
        logins.unpinned.count += isinstance(error, claimed.NotPinned)
        return None


def _as_configured(
    logins: Logins,
    given: Credentials,
    challenge: bytes,
    known: ClientIdentity | None,
    connection_type: str,
    seen: Surroundings,
) -> ClientIdentity | Check | None:
    key = given.nkey if logins.nkeys else ""
    default = logins.no_auth_user
    if not logins.required or (given.empty and not key and logins.anonymous):
        return ClientIdentity(logins.default, "", None)
    if key:
        holder = logins.nkeys.get(key)
        if holder is not None and holder is default:
            return _identity(holder, connection_type)
        if holder is None:
            return None
        shown = known is not None and known.user == key and known.proof == holder.public_key
        shown = shown or is_signed(holder.public_key, given.signature, challenge)
        identity = _identity(holder, connection_type) if shown else None
        return None if identity is None else replace(identity, proof=holder.public_key)
    if logins.by_certificate and connection_type == CONNECTION_TYPE:
        return _by_certificate(logins, given, seen.certificate, known)
    if given.empty and default is not None:
        return _identity(default, connection_type)
    user = logins.users.get(given.user) if given.user else None
    if user is not None:
        if logins.by_certificate and user is not default and not user.password:
            return None  # Nothing but a certificate shows who that is.
        identity = _identity(user, connection_type)
        return measured(given.password, user.password, identity, known)
    if logins.token and given.token:
        anyone = ClientIdentity(logins.default, "", logins.token_permissions, logins.token)
        return measured(given.token, logins.token, anyone, known)
    return None


def _by_certificate(
    logins: Logins,
    given: Credentials,
    certificate: PeerCertificate | None,
    known: ClientIdentity | None,
) -> ClientIdentity | Check | None:
    """Whom a certificate names; with a password, if that user has one. What CONNECT says of a user
    does not count."""
    if certificate is None or logins.holders is None:
        return None
    name = logins.holders.named_by(certificate)
    if name is None:
        return None
    user = logins.users[name]
    return measured(given.password, user.password, _identity(user, CONNECTION_TYPE), known)


def uninvited(logins: Logins) -> ClientIdentity | None:
    """Who a client is before it has said anything; None if it has to log in."""
    if logins.by_claims:
        return None
    if logins.anonymous:
        return ClientIdentity(logins.default, "", None)
    user = None if logins.by_certificate else logins.no_auth_user
    return None if user is None else _identity(user, CONNECTION_TYPE)
