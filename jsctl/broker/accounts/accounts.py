"""The registry of accounts, and the users who may log in to them.

An account is a name space of subjects with its own sublist. `$G` is there always; the system
account too, unless it was switched off. Users are looked up by name over all accounts.

Accounts come, change and go while the server runs: `put` and `remove` say what that was, and who
calls them has it take effect (see `node.reload`). An account that changes stays the object that
it is, with its subscriptions and counters; one that was removed and comes again is another. The
users are one value that is replaced as a whole (`Logins`).
"""

from collections.abc import Callable, Iterator
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

from jsctl.broker import lazy, nkey
from jsctl.broker.errors import ConfigError
from jsctl.broker.interest.targets import AccountSublist, StreamImport, SublistResult
from jsctl.broker.login_options.operators import OperatorOptions
from jsctl.broker.login_options.permissions import PermissionRules
from jsctl.broker.options import (
    AccountJetStream,
    AccountLimits,
    AccountOptions,
    MappingOptions,
    Options,
    UserOptions,
)
from jsctl.broker.subject.transforms import Transform, compile_transform
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.broker.accounts import certificates
else:
    certificates = lazy.module("jsctl.broker.accounts.certificates", optional=True)

GLOBAL = "$G"
SYSTEM = "$SYS"
CONNECTION_TYPE = "STANDARD"
"""What clients are that come without more around them."""

Jitter = Callable[[int], int]


class Mapping:
    """One subject mapping of an account with its weighted destinations."""

    __slots__ = ("_targets", "_total")

    def __init__(self, options: MappingOptions, cluster: str) -> None:
        source = options.source.encode()
        chosen = [one for one in options.targets if one.cluster in ("", cluster)]
        if any(one.cluster for one in chosen):
            chosen = [one for one in chosen if one.cluster]
        targets: list[tuple[int, Transform | None]] = []
        total = 0
        itself = False
        for one in chosen:
            total += one.weight
            itself = itself or one.destination == options.source
            targets.append((total, compile_transform(source, one.destination.encode())))
        self._total = total
        if total < 100:
            rest = None if itself else compile_transform(source, _identity(source))
            targets.append((100, rest))
        self._targets = targets

    def apply(self, subject: bytes, jitter: Jitter) -> bytes | None:
        """The mapped subject; None when the source does not match; empty: to be dropped."""
        drawn = jitter(100) if len(self._targets) > 1 else 0
        probe = self._targets[0][1]
        if probe is None or probe.apply(subject) is None:
            return None
        for limit, transform in self._targets:
            if drawn < limit:
                return transform.apply(subject) if transform is not None else b""
        return b""


def _identity(source: bytes) -> bytes:
    pieces = source.split(b".")
    ordinal = 0
    for position, piece in enumerate(pieces):
        if piece == b"*":
            ordinal += 1
            pieces[position] = b"$%d" % ordinal
    return b".".join(pieces)


class Account:
    """A name space of subjects. `interest` counts what routes are told of local subscriptions."""

    def __init__(self, options: AccountOptions, cluster: str, *, is_system: bool) -> None:
        self.name = options.name
        self.wire_name = options.name.encode()
        self.tag = _tag(options)
        """What people call it."""
        self.is_system = is_system
        self.cluster = cluster
        """The cluster that mappings may name."""
        self.options = options
        self.limits: AccountLimits = options.limits
        self.jetstream: AccountJetStream | None = options.jetstream
        self.sublist = AccountSublist(SublistResult)
        self.traced = bool(options.trace_subject)
        """Whether a `traceparent` header of others has messages traced."""
        self.mappings = [Mapping(one, cluster) for one in options.mappings]
        self.streams: list[StreamImport] = []
        """What is imported here: who listens to it listens in the exporting accounts, too."""
        self.interest: dict[tuple[bytes, bytes], int] = {}
        self.connections = 0
        self.leafs = 0
        """Leaf nodes and hubs."""
        self.far_connections = 0
        self.far_leafs = 0
        """What other servers have of both."""
        self.in_messages = 0
        self.in_bytes = 0
        self.out_messages = 0
        self.out_bytes = 0
        self.slow_consumers = 0

    def change(self, options: AccountOptions, cluster: str) -> None:
        """Take other options. Raises ConfigError for mappings of no use, and is as before."""
        mappings = [Mapping(one, cluster) for one in options.mappings]
        self.options, self.cluster, self.mappings = options, cluster, mappings
        self.limits, self.jetstream = options.limits, options.jetstream
        self.tag = _tag(options)
        self.traced = bool(options.trace_subject)

    def connections_over(self, more: int = 0) -> int:
        """How many clients are too many, on all servers and with so many more connections. The leaf
        nodes of a server leave room for less of them there, as in nats-server."""
        return _beyond(self.connections + self.far_connections + more, self.limits.connections_max)

    def leafs_over(self, more: int = 0) -> int:
        """How many leaf nodes and hubs are."""
        return _beyond(self.leafs + self.far_leafs + more, self.limits.leafnodes_max)

    def map_subject(self, subject: bytes, jitter: Jitter) -> bytes:
        """Where a client's publish really goes; empty when it is to be dropped."""
        for mapping in self.mappings:
            mapped = mapping.apply(subject, jitter)
            if mapped is not None:
                return mapped
        return subject

    def __repr__(self) -> str:
        return f"Account({self.name!r})"


def _tag(options: AccountOptions) -> str:
    """The name in its JWT, where it has one."""
    return options.claims.name or options.name if options.claims is not None else options.name


def _beyond(count: int, maximum: int) -> int:
    return max(count - maximum, 0) if maximum >= 0 else 0


@dataclass(frozen=True, slots=True)
class User:
    """One configured user: by name and password, or, with `public_key`, by nkey."""

    name: str
    password: bytes
    account: Account
    permissions: PermissionRules | None
    connection_types: tuple[str, ...] = ()
    public_key: bytes = b""
    """32 bytes, whose text is the name."""


class AccountChangeKind(Enum):
    """What became of an account."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class AccountChange:
    """An event of the registry."""

    kind: AccountChangeKind
    account: Account
    before: AccountOptions | None = None
    """What an account that changed was."""


@dataclass(slots=True)
class Unpinned:
    """How many logins were refused as their accounts are not among those that are pinned."""

    count: int = 0


@dataclass(frozen=True, slots=True)
class Logins:
    """Who may log in, and who has to. `default` is `$G`."""

    default: Account
    users: dict[str, User] = field(default_factory=dict)
    nkeys: dict[str, User] = field(default_factory=dict)
    token: bytes = b""
    token_permissions: PermissionRules | None = None
    anonymous: bool = True
    """Clients that give no credentials belong to the global account: only the system has users."""
    no_auth_user: User | None = None
    holders: "certificates.Holders | None" = None
    """Clients are those of them whom their certificates name."""
    operator: OperatorOptions | None = None
    """Clients are those whom JWTs name that its accounts have signed."""
    by_key: dict[str, Account] = field(default_factory=dict)
    """Their accounts."""
    unpinned: Unpinned = field(default_factory=Unpinned)

    @property
    def by_claims(self) -> bool:
        """Whether JWTs say who clients are, and what accounts there are."""
        return self.operator is not None

    @property
    def by_certificate(self) -> bool:
        """Whether certificates say who clients are."""
        return self.holders is not None

    @property
    def required(self) -> bool:
        """Clients are asked for credentials; those that give wrong ones have to go."""
        return self.by_claims or bool(self.users or self.nkeys or self.token)

    @property
    def challenges(self) -> bool:
        """Whether clients are given something to sign."""
        return self.by_claims or bool(self.nkeys)

    @property
    def asks(self) -> bool:
        """Whether a client that says nothing of itself is nobody."""
        return self.required and (self.no_auth_user is None or self.by_certificate)


class Accounts:
    """All accounts of a server, and who may log in."""

    def __init__(self, options: Options) -> None:
        self._accounts: dict[str, Account] = {}
        name = options.system_account or SYSTEM
        self._system_name = name if options.has_system_account else ""
        for one in configured(options).values():
            self.put(one, options.cluster.name)
        self.default = self._accounts[GLOBAL]
        self.system = self._accounts[self._system_name] if self._system_name else None
        self.unpinned = Unpinned()
        self.logins = logins(options, self)

    def configure(self, options: Options) -> list[AccountChange]:
        """Have exactly the accounts and users of a configuration, which was tried before.

        Which one is the system account does not change.
        """
        wanted = configured(options)
        changes = [self.remove(name) for name in self._accounts if name not in wanted]
        changes += [self.put(one, options.cluster.name) for one in wanted.values()]
        self.logins = logins(options, self)
        return [one for one in changes if one is not None]

    def put(self, options: AccountOptions, cluster: str) -> AccountChange | None:
        """Add an account, or give it other options; None when it has them.

        Raises ConfigError for mappings of no use.
        """
        known = self._accounts.get(options.name)
        if known is None:
            is_system = options.name == self._system_name
            made = self._accounts[options.name] = Account(options, cluster, is_system=is_system)
            return AccountChange(AccountChangeKind.ADDED, made)
        before = known.options
        if (before, known.cluster) == (options, cluster):
            return None
        known.change(options, cluster)
        return AccountChange(AccountChangeKind.CHANGED, known, before)

    def remove(self, name: str) -> AccountChange | None:
        """Take an account out; None when there is none. The global one and the system's stay."""
        assert name not in (GLOBAL, self._system_name)
        gone = self._accounts.get(name)
        # Not in place: who looks through the accounts may be the one who removes some.
        self._accounts = {key: one for key, one in self._accounts.items() if key != name}
        return None if gone is None else AccountChange(AccountChangeKind.REMOVED, gone)

    def get(self, name: str) -> Account | None:
        """The account of that name."""
        return self._accounts.get(name)

    def __iter__(self) -> Iterator[Account]:
        return iter(self._accounts.values())

    def __len__(self) -> int:
        return len(self._accounts)


def configured(options: Options) -> dict[str, AccountOptions]:
    """The accounts of a configuration by name, with those that are always there."""
    found = {one.name: one for one in options.accounts}
    found.setdefault(GLOBAL, AccountOptions(name=GLOBAL, mappings=options.mappings))
    if options.has_system_account:
        system = options.system_account or SYSTEM
        found.setdefault(system, AccountOptions(name=system))
    return found


def logins(options: Options, accounts: Accounts) -> Logins:
    """The users of a configuration. Raises ConfigError for one that nobody could be."""
    users: dict[str, User] = {}
    nkeys: dict[str, User] = {}
    auth, default = options.auth, accounts.default
    given = [
        (one, account, account.options.default_permissions)
        for account in accounts
        for one in account.options.users
    ]
    given += [(one, default, auth.default_permissions) for one in auth.users]
    single = int(bool(auth.user))
    if auth.user:
        only = UserOptions(name=auth.user, password=auth.password)
        given.append((only, default, auth.default_permissions))
    for user in [_user(*one) for one in given]:
        (nkeys if user.public_key else users)[user.name] = user
    name = options.no_auth_user
    holders = None
    if options.tls is not None and options.tls.map_users and len(given) > single:
        allowed = [
            one.name
            for one in users.values()
            if not one.connection_types or CONNECTION_TYPE in one.connection_types
        ]
        holders = certificates.Holders(allowed)
    return Logins(
        default,
        users,
        nkeys,
        token=auth.token.encode(),
        token_permissions=auth.default_permissions,
        anonymous=not options.auth_required,
        no_auth_user=nkeys.get(name) or users.get(name),
        holders=holders,
        operator=options.operator if options.operator.enabled else None,
        by_key={one.name: one for one in accounts if one.options.claims is not None},
        unpinned=accounts.unpinned,
    )


def _user(user: UserOptions, account: Account, default: PermissionRules | None) -> User:
    public = nkey.decode(user.nkey, nkey.KeyKind.USER) if user.nkey else b""
    if public is None or not (user.name or user.nkey):
        # Nobody could log in as this one, and without other users nobody would have to.
        raise ConfigError(
            f"{user.nkey or user.name!r} is no user", remedy="give a name or a public nkey"
        )
    return User(
        user.nkey or user.name,
        user.password.encode(),
        account,
        user.permissions or default,
        user.connection_types,
        public,
    )
