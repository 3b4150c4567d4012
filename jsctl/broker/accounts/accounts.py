"""Accounts and their users, as the options name them.

An account is a name space of subjects with its own sublist. `$G` is there always; the system
account too, unless it was switched off. Users are looked up by name over all accounts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jsctl.broker import nkey
from jsctl.broker.errors import ConfigError
from jsctl.broker.interest.targets import AccountSublist, StreamImport, SublistResult
from jsctl.broker.options import (
    AccountJetStream,
    AccountLimits,
    AccountOptions,
    MappingOptions,
    Options,
    PermissionRules,
    UserOptions,
)
from jsctl.broker.subject.transforms import Transform, compile_transform

GLOBAL = "$G"
SYSTEM = "$SYS"

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
        self.is_system = is_system
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
        self.in_messages = 0
        self.in_bytes = 0
        self.out_messages = 0
        self.out_bytes = 0
        self.slow_consumers = 0

    def map_subject(self, subject: bytes, jitter: Jitter) -> bytes:
        """Where a client's publish really goes; empty when it is to be dropped."""
        for mapping in self.mappings:
            mapped = mapping.apply(subject, jitter)
            if mapped is not None:
                return mapped
        return subject

    def __repr__(self) -> str:
        return f"Account({self.name!r})"


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


class Accounts:
    """All accounts and users of a server."""

    def __init__(self, options: Options) -> None:
        cluster = options.cluster.name
        self._accounts: dict[str, Account] = {}
        self.users: dict[str, User] = {}
        self.nkeys: dict[str, User] = {}
        system = options.system_account or SYSTEM
        configured = {one.name: one for one in options.accounts}
        configured.setdefault(GLOBAL, AccountOptions(name=GLOBAL, mappings=options.mappings))
        if not options.no_system_account:
            configured.setdefault(system, AccountOptions(name=system))
        for one in configured.values():
            is_system = one.name == system and not options.no_system_account
            self._accounts[one.name] = Account(one, cluster, is_system=is_system)
            for user in one.users:
                self._add(user, self._accounts[one.name], one.default_permissions)
        self.default = self._accounts[GLOBAL]
        self.system = None if options.no_system_account else self._accounts[system]
        auth = options.auth
        for user in auth.users:
            self._add(user, self.default, auth.default_permissions)
        if auth.user:
            single = UserOptions(name=auth.user, password=auth.password)
            self._add(single, self.default, auth.default_permissions)
        self.token = auth.token.encode()
        self.token_permissions = auth.default_permissions
        self.required = bool(self.users or self.nkeys or self.token)
        """Clients are asked for credentials; those that give wrong ones have to go."""
        self.anonymous = not options.auth_required
        """Clients that give none belong to the global account: only the system has users."""
        name = options.no_auth_user
        self.no_auth_user = self.nkeys.get(name) or self.users.get(name)

    def _add(self, user: UserOptions, account: Account, default: PermissionRules | None) -> None:
        public = nkey.decode(user.nkey, nkey.KeyKind.USER) if user.nkey else b""
        if public is None or not (user.name or user.nkey):
            # Nobody could log in as this one, and without other users nobody would have to.
            raise ConfigError(
                f"{user.nkey or user.name!r} is no user", remedy="give a name or a public nkey"
            )
        made = User(
            user.nkey or user.name,
            user.password.encode(),
            account,
            user.permissions or default,
            user.connection_types,
            public,
        )
        (self.nkeys if user.nkey else self.users)[made.name] = made

    def get(self, name: str) -> Account | None:
        """The account of that name."""
        return self._accounts.get(name)

    def __iter__(self) -> Iterator[Account]:
        return iter(self._accounts.values())

    def __len__(self) -> int:
        return len(self._accounts)
