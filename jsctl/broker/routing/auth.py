"""Who a client is: what its CONNECT says against the configured users.

Plain passwords and tokens are compared in constant time here. bcrypt takes far longer than a
turn may, so the answer can also be "check this first".
"""

import hmac
import re
from dataclasses import dataclass

from jsctl.broker.options import Permissions
from jsctl.broker.routing.accounts import Account, Accounts, User

CONNECTION_TYPE = "STANDARD"
_BCRYPT = re.compile(rb"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}\Z")


@dataclass(frozen=True, slots=True)
class Identity:
    """An accepted client; `user` is empty for clients without a name."""

    account: Account
    user: str
    permissions: Permissions | None


@dataclass(frozen=True, slots=True)
class Check:
    """Accepted as `identity` if the password belongs to the hash."""

    identity: Identity
    password: bytes
    hashed: bytes


@dataclass(frozen=True, slots=True)
class Credentials:
    """What CONNECT says of the client's identity."""

    user: str = ""
    password: str = ""
    token: str = ""
    nkey: str = ""
    jwt: str = ""

    @property
    def empty(self) -> bool:
        """Whether the client says nothing of itself."""
        return not (self.user or self.password or self.token or self.nkey)


def _same(given: bytes, expected: bytes) -> bool:
    return hmac.compare_digest(given, expected)


def _identity(user: User) -> Identity | None:
    if user.connection_types and CONNECTION_TYPE not in user.connection_types:
        return None
    return Identity(user.account, user.name, user.permissions)


def _secret(given: str, expected: bytes, identity: Identity | None) -> Identity | Check | None:
    if identity is None:
        return None
    secret = given.encode()
    if _BCRYPT.match(expected):
        return Check(identity, secret, expected)
    return identity if _same(secret, expected) else None


def authenticate(accounts: Accounts, given: Credentials) -> Identity | Check | None:
    """Find out who a client is; None means that it has to go."""
    if not accounts.required or (given.empty and accounts.anonymous):
        return Identity(accounts.default, "", None)
    if given.nkey:
        return None
    if given.empty and accounts.no_auth_user is not None:
        return _identity(accounts.no_auth_user)
    user = accounts.users.get(given.user) if given.user else None
    if user is not None:
        return _secret(given.password, user.password, _identity(user))
    if accounts.token and given.token:
        anyone = Identity(accounts.default, "", accounts.token_permissions)
        return _secret(given.token, accounts.token, anyone)
    return None
