"""Who a client says it is, and who it turned out to be."""

import base64

from jsctl.broker import nkey
from jsctl.broker.accounts.accounts import Account, Jitter
from jsctl.broker.login_options.operators import UserRules
from jsctl.broker.login_options.permissions import PermissionRules
from jsctl.broker.turn import PeerCertificate
from jsctl.dataclass import dataclass

CHALLENGE_BYTES = 11
"""Of chance in a challenge; its text has 15 letters."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the server sees of a client, whatever that says of itself."""

    now_ns: int = 0
    host: str = ""
    certificate: PeerCertificate | None = None


NOTHING_SEEN = Surroundings()


@dataclass(frozen=True, slots=True)
class Vouched:
    """What a JWT says of its user, and the limits that are its own."""

    token: str
    issuer: str
    """The key that has signed it."""
    role: UserRules | None
    """What that key says of all users that it signs, before templates are filled in."""
    name: str
    tags: tuple[str, ...]
    subscriptions_max: int
    payload_bytes_max: int
    expires_ns: int
    """When it has to go; 0: never."""
    account_expires_ns: int
    bearer: bool = False
    """Who has the token is the user."""

    @property
    def leaves_ns(self) -> int:
        """The sooner of both; 0: neither."""
        return min(filter(None, (self.expires_ns, self.account_expires_ns)), default=0)


NOT_VOUCHED = Vouched("", "", None, "", (), -1, -1, 0, 0)
"""What is shown of clients without a JWT."""


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """An accepted client; `user` is a name or a public nkey, empty for clients without either."""

    account: Account
    user: str
    permissions: PermissionRules | None
    proof: bytes = b""
    """The configured password, hash or token that the client was measured against, the public
    key that it has signed for, or its JWT."""
    vouched: Vouched | None = None
    """In operator mode."""

    @property
    def leaves_ns(self) -> int:
        """When it has to go; 0: never."""
        return 0 if self.vouched is None else self.vouched.leaves_ns

    @property
    def role(self) -> UserRules | None:
        """What the key that has signed the user says of all its users, if it does."""
        return None if self.vouched is None else self.vouched.role


@dataclass(frozen=True, slots=True)
class Check:
    """Accepted as `identity` if the password belongs to the hash."""

    identity: ClientIdentity
    password: bytes
    hashed: bytes
    needed: bool = True
    """False: the verdict is awaited, but is nothing to a client that was accepted meanwhile."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What CONNECT says of the client's identity."""

    user: str = ""
    password: str = ""
    token: str = ""
    nkey: str = ""
    signature: str = ""
    """The server's challenge, signed with the nkey's seed."""
    jwt: str = ""
    """Means something in operator mode."""

    @property
    def empty(self) -> bool:
        """Whether the client says nothing of itself that needs no nkey users."""
        return not (self.user or self.password or self.token)

    @property
    def shown(self) -> str:
        """Who the client says it is, for monitoring: nobody has checked it."""
        hidden = "[REDACTED]" if self.token and not self.jwt else ""
        return self.nkey or self.user or hidden


def new_challenge(jitter: Jitter) -> bytes:
    """What a client has to sign to show that it holds the seed of its nkey."""
    raw = jitter(1 << 8 * CHALLENGE_BYTES).to_bytes(CHALLENGE_BYTES, "big")
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


def is_signed(public_key: bytes, signature: str, challenge: bytes) -> bool:
    """Whether whoever has the seed of a key has signed a challenge."""
    signed = nkey.decode_signature(signature)
    return signed is not None and bool(challenge) and nkey.verify(public_key, challenge, signed)
