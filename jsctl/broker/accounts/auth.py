"""Who a client is: what its CONNECT says against the configured users.

Plain passwords and tokens are compared in constant time here, and signatures of nkeys verified.
bcrypt takes far longer than a turn may, so the answer can also be "check this first".
"""

import base64
import hmac
from dataclasses import dataclass

from jsctl.broker import nkey
from jsctl.broker.accounts.accounts import Account, Accounts, Jitter, User
from jsctl.broker.options import PermissionRules
from jsctl.broker.passwords import looks_hashed

CONNECTION_TYPE = "STANDARD"
CHALLENGE_BYTES = 11
"""Of chance in a challenge; its text has 15 letters."""


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """An accepted client; `user` is a name or a public nkey, empty for clients without either."""

    account: Account
    user: str
    permissions: PermissionRules | None


@dataclass(frozen=True, slots=True)
class Check:
    """Accepted as `identity` if the password belongs to the hash."""

    identity: ClientIdentity
    password: bytes
    hashed: bytes


@dataclass(frozen=True, slots=True)
class Credentials:
    """What CONNECT says of the client's identity."""

    user: str = ""
    password: str = ""
    token: str = ""
    nkey: str = ""
    signature: str = ""
    """The server's challenge, signed with the nkey's seed."""

    @property
    def empty(self) -> bool:
        """Whether the client says nothing of itself that needs no nkey users."""
        return not (self.user or self.password or self.token)

    @property
    def shown(self) -> str:
        """Who the client says it is, for monitoring: nobody has checked it."""
        return self.nkey or self.user or ("[REDACTED]" if self.token else "")


def _same(given: bytes, expected: bytes) -> bool:
    return hmac.compare_digest(given, expected)


def _identity(user: User) -> ClientIdentity | None:
    if user.connection_types and CONNECTION_TYPE not in user.connection_types:
        return None
    return ClientIdentity(user.account, user.name, user.permissions)


def _secret(
    given: str, expected: bytes, identity: ClientIdentity | None
) -> ClientIdentity | Check | None:
    if identity is None:
        return None
    secret = given.encode()
    if looks_hashed(expected.decode()):
        return Check(identity, secret, expected)
    return identity if _same(secret, expected) else None


def new_challenge(jitter: Jitter) -> bytes:
    """What a client has to sign to show that it holds the seed of its nkey."""
    raw = jitter(1 << 8 * CHALLENGE_BYTES).to_bytes(CHALLENGE_BYTES, "big")
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


def _signed(user: User, signature: str, challenge: bytes) -> ClientIdentity | None:
    signed = nkey.decode_signature(signature)
    if signed is None or not challenge or not nkey.verify(user.public_key, challenge, signed):
        return None
    return _identity(user)


def authenticate(
    accounts: Accounts, given: Credentials, challenge: bytes
) -> ClientIdentity | Check | None:
    """Find out who a client is; None means that it has to go.

    `challenge` is the nonce that this connection, and no other, was given in INFO. Without nkey
    users there is none, and what a client says of nkeys means nothing.
    """
    key = given.nkey if accounts.nkeys else ""
    default = accounts.no_auth_user
    if not accounts.required or (given.empty and not key and accounts.anonymous):
        return ClientIdentity(accounts.default, "", None)
    if key:
        holder = accounts.nkeys.get(key)
        if holder is not None and holder is default:
            return _identity(holder)
        return None if holder is None else _signed(holder, given.signature, challenge)
    if given.empty and default is not None:
        return _identity(default)
    user = accounts.users.get(given.user) if given.user else None
    if user is not None:
        return _secret(given.password, user.password, _identity(user))
    if accounts.token and given.token:
        anyone = ClientIdentity(accounts.default, "", accounts.token_permissions)
        return _secret(given.token, accounts.token, anyone)
    return None


def uninvited(accounts: Accounts) -> ClientIdentity | None:
    """Who a client is before it has said anything; None if it has to log in."""
    if accounts.anonymous:
        return ClientIdentity(accounts.default, "", None)
    return None if accounts.no_auth_user is None else _identity(accounts.no_auth_user)
