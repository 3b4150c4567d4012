"""Operator mode: who vouches for accounts and users by JWTs, and where accounts' JWTs come from.

Here it is plain data that was verified; what reads JWTs is `claims`.
"""

from dataclasses import field
from enum import Enum

from jsctl.broker.login_options.permissions import PermissionRules
from jsctl.dataclass import dataclass

NO_LIMIT = -1
SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS


class ResolverKind(Enum):
    """Where a server has the JWTs of accounts from."""

    MEMORY = "MEMORY"
    """The configuration alone."""
    FULL = "full"
    """A directory with all of them, which servers of a system keep the same."""


@dataclass(frozen=True, slots=True)
class UserRules:
    """What a JWT lets its user do, or what a signing key lets all of its users do."""

    permissions: PermissionRules | None = None
    subscriptions_max: int = NO_LIMIT
    payload_bytes_max: int = NO_LIMIT
    sources: tuple[str, ...] = ()
    """Networks, as CIDR, that it may come from; empty: from everywhere."""
    hours: tuple[tuple[str, str], ...] = ()
    """Times of day from and to, `15:04:05`; empty: always."""
    zone: str = ""
    """The time zone of these; empty: the server's."""
    bearer: bool = False
    """Who has the JWT may be the user, without the seed."""
    proxy_required: bool = False
    connection_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key that may sign users of an account. With a `role` their rules are those of the key."""

    key: str
    role: UserRules | None = None


@dataclass(frozen=True, slots=True)
class AccountClaims:
    """What the JWT of an account says of those who log in to it."""

    token: str = ""
    issuer: str = ""
    name: str = ""
    """For people; the account's name is its public key."""
    tags: tuple[str, ...] = ()
    expires_s: int = 0
    """Unix time; 0: never."""
    signing_keys: tuple[SigningKey, ...] = ()
    """All that may sign its users, its own key too unless the operator forbids that."""
    revoked: tuple[tuple[str, int], ...] = ()
    """User, or `*` for all, -> JWTs issued until then are void."""
    no_bearer: bool = False
    payload_bytes_max: int = NO_LIMIT
    callout_users: tuple[str, ...] = ()
    """If there are any, others may log in only if a service lets them, which nobody asks here."""
    imports: int = 0
    """How many it wants, also of accounts that are not known."""


@dataclass(frozen=True, slots=True)
class ResolverOptions:
    """The `resolver` and what goes with it."""

    kind: ResolverKind = ResolverKind.MEMORY
    directory: str = ""
    """Of `FULL`."""
    preload: tuple[tuple[str, str], ...] = ()
    """Account -> its JWT, as the configuration has them."""
    known: tuple[tuple[str, str], ...] = ()
    """Account -> its JWT, of all that the server has, be they of use or not; they change while it
    runs."""
    may_delete: bool = False
    keeps_deleted: bool = True
    """What is deleted is renamed, not removed."""
    accounts_max: int = 0
    """0: as many as there are."""
    interval_ns: int = MINUTE_NS
    """How often servers compare what they have."""
    timeout_ns: int = 2 * SECOND_NS
    pinned: tuple[str, ...] = ()
    """Accounts that alone may be logged in to; empty: all."""

    @property
    def place(self) -> str:
        """Where JWTs are."""
        return f"{self.kind.value} {self.directory}".rstrip()


@dataclass(frozen=True, slots=True)
class OperatorOptions:
    """Who signs accounts. Without any key there is no operator mode."""

    tokens: tuple[str, ...] = ()
    """JWTs of operators."""
    keys: tuple[str, ...] = ()
    """Public keys that may sign accounts."""
    strict: tuple[str, ...] = ()
    """Those of them whose accounts' own keys may not sign users."""
    system_account: str = ""
    """As the first operator names it."""
    sentinel: str = ""
    """The JWT of clients that give none."""
    resolver: ResolverOptions = field(default_factory=ResolverOptions)

    @property
    def enabled(self) -> bool:
        """Whether accounts and users are those of JWTs."""
        return bool(self.keys)
