"""Tables of operators, accounts, users and signing keys."""

from jsctl.auth.claims import NO_LIMIT, UserPermissionLimits, UserScope
from jsctl.auth.entities import AccountEntity, OperatorEntity, UserEntity
from jsctl.dataclass import dataclass
from jsctl.render.column import Column
from jsctl.render.humanize import boolean


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account, and whether it is the system account."""

    account: AccountEntity
    system: bool


@dataclass(frozen=True, slots=True)
class UserRow:
    """A user; `rules` are its own or those of its scope, None when these are not known."""

    user: UserEntity
    scoped: bool
    rules: UserPermissionLimits | None


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A signing key, with its scope if it has one."""

    key: str
    scope: UserScope | None


OPERATOR_COLUMNS: tuple[Column[OperatorEntity], ...] = (
    Column("name", "Name", lambda row: row.name),
    Column("subject", "Subject", lambda row: row.subject),
    Column("accounts", "Accounts", lambda row: len(row.accounts)),
    Column("account_server", "Account Server", lambda row: row.claims.nats.account_server_url),
    Column("signing_keys", "Signing Keys", lambda row: len(row.claims.nats.signing_keys)),
)

ACCOUNT_COLUMNS: tuple[Column[AccountRow], ...] = (
    Column("name", "Name", lambda row: row.account.name),
    Column("subject", "Subject", lambda row: row.account.subject),
    Column("users", "Users", lambda row: len(row.account.users)),
    Column(
        "jetstream",
        "JetStream",
        lambda row: row.account.claims.nats.limits.jetstream_enabled,
        text=lambda row: "true" if row.account.claims.nats.limits.jetstream_enabled else "",
    ),
    Column(
        "system", "System", lambda row: row.system, text=lambda row: "true" if row.system else ""
    ),
)


def _marked(row: UserRow, side: str) -> bool:
    rule = getattr(row.rules.permissions, side) if row.rules else None
    return bool(rule and (rule.allow or rule.deny))


def _subscriptions(row: UserRow) -> str:
    if row.rules is None:
        return ""
    most = row.user.claims.nats.rules.nats.subs
    return "Unlimited" if most == NO_LIMIT else str(most)


USER_COLUMNS: tuple[Column[UserRow], ...] = (
    Column("name", "Name", lambda row: row.user.name),
    Column("subject", "Subject", lambda row: row.user.subject),
    Column("scoped", "Scoped", lambda row: row.scoped, text=lambda row: boolean(row.scoped)),
    Column(
        "sub_permissions",
        "Sub Perms",
        lambda row: _marked(row, "sub"),
        text=lambda row: "✓" if _marked(row, "sub") else "",
    ),
    Column(
        "pub_permissions",
        "Pub Perms",
        lambda row: _marked(row, "pub"),
        text=lambda row: "✓" if _marked(row, "pub") else "",
    ),
    Column(
        "max_subscriptions",
        "Max Subscriptions",
        lambda row: row.rules.nats.subs if row.rules else None,
        text=_subscriptions,
    ),
)


def _rules_count(row: KeyRow, side: str) -> int | str:
    if row.scope is None:
        return ""
    rule = getattr(row.scope.template.permissions, side)
    return len(rule.allow) + len(rule.deny)


KEY_COLUMNS: tuple[Column[KeyRow], ...] = (
    Column("key", "Key", lambda row: row.key),
    Column("role", "Role", lambda row: row.scope.role if row.scope else ""),
    Column("description", "Description", lambda row: row.scope.description if row.scope else ""),
    Column(
        "max_subscriptions",
        "Max Subscriptions",
        lambda row: row.scope.template.nats.subs if row.scope else "",
    ),
    Column("pub_permissions", "Pub Perms", lambda row: _rules_count(row, "pub")),
    Column("sub_permissions", "Sub Perms", lambda row: _rules_count(row, "sub")),
)
