"""Screens of operators, accounts and users; of those of a store, and of those of a bare JWT.

Of a bare JWT less is known: neither the accounts of an operator nor the users of an account.
"""

import os
import sys
from collections.abc import Mapping, Sequence

from jsctl.auth.claims import (
    NO_LIMIT,
    Account,
    JetStreamLimits,
    Operator,
    Permission,
    User,
    UserPermissionLimits,
    UserScope,
)
from jsctl.auth.entities import AccountEntity, OperatorEntity, UserEntity
from jsctl.render.details import Details
from jsctl.render.humanize import limit, moment_s, number, size

TIER_INDENT = 4
SECOND_NS = 1_000_000_000
NO_PERMISSIONS = "No permissions defined"
CUT_FROM = 20
LABEL_COLUMNS = 30
"""What stands before a value on a line of a terminal."""


def operator_screen(operator: OperatorEntity) -> Details:
    """An operator of the store."""
    screen = Details(f"Operator {operator.name} ({operator.subject})")
    system = operator.system_account
    shown = f"{system.name} ({system.subject})" if system else "not set"
    rows = {"Accounts": number(len(operator.accounts)), "System Account": shown}
    add_operator(screen, operator.name, operator.subject, operator.claims.nats, rows)
    return screen


def add_operator(
    screen: Details, name: str, subject: str, nats: Operator, rows: Mapping[str, str]
) -> None:
    """The rows of an operator; `rows` are those that depend on what is known of it."""
    screen.section("Configuration")
    screen.row("Name", name)
    screen.row("Subject", subject)
    add_texts(screen, "Tags", nats.generic.tags)
    screen.row_if("Service URL(s)", ", ".join(nats.operator_service_urls))
    screen.row_if("Account Server", nats.account_server_url)
    for label, value in rows.items():
        screen.row(label, value)
    add_texts(screen, "Signing Keys", nats.signing_keys)


def account_screen(account: AccountEntity, operator: OperatorEntity | None) -> Details:
    """An account, of the store or as a server has it."""
    screen = Details(f"Account {account.name} ({account.subject})")
    rows: dict[str, object] = {}
    if operator is not None:
        system = operator.system_account
        is_system = system is not None and system.subject == account.subject
        rows = {"Operator": operator.name, "System Account": is_system}
    add_account(screen, account, rows, users=len(account.users))
    return screen


def add_account(
    screen: Details, account: AccountEntity, rows: Mapping[str, object], *, users: int | None
) -> None:
    """The rows of an account; without `users` they are not known."""
    nats, head = account.claims.nats, account.claims.head
    screen.section("Configuration")
    screen.row("Name", account.name)
    screen.row("Issuer", head.iss)
    for label, value in rows.items():
        screen.row(label, value)
    add_texts(screen, "Tags", nats.generic.tags)
    screen.row("JetStream", nats.limits.jetstream_enabled)
    if head.exp > 0:
        screen.row("Expiry", moment_s(head.exp))
    if users is not None:
        screen.row("Users", number(users))
    screen.row("Revocations", number(len(nats.revocations)))
    for word, trades in (("Exports", nats.exports), ("Imports", nats.imports)):
        for kind in ("service", "stream"):
            count = sum(one.type_ == kind for one in trades)
            screen.row(f"{kind.title()} {word}", number(count))
    _add_account_limits(screen, nats)


def _add_account_limits(screen: Details, nats: Account) -> None:
    limits, plain = nats.limits.account, nats.limits.nats
    screen.section("Limits")
    screen.row("Bearer Tokens Allowed", not limits.disallow_bearer)
    screen.row("Subscriptions", _limited(plain.subs))
    screen.row("Connections", _limited(limits.conn))
    screen.row("Maximum Payload", size(plain.payload) if plain.payload > 0 else "unlimited")
    if plain.data > 0:
        screen.row("Data", number(plain.data))
    screen.row("Leafnodes", _limited(limits.leaf))
    screen.row("Imports", _limited(limits.imports))
    screen.row("Exports", _limited(limits.exports))
    if not nats.limits.jetstream_enabled:
        return
    screen.section("JetStream Settings", indent=2)
    screen.row("Cluster Traffic", nats.cluster_traffic or "system")
    tiers = {
        f"Tier {name[1:]}": tier
        for name, tier in sorted(nats.limits.tiered_limits.items())
        if name[:1] == "R" and name[1:].isdigit()
    }
    for title, tier in (tiers or {"Account Default Limits": nats.limits.jetstream}).items():
        _add_tier(screen, title, tier)


def _add_tier(screen: Details, title: str, tier: JetStreamLimits) -> None:
    screen.section(title, indent=TIER_INDENT)
    if tier.unlimited:
        screen.text("  Unlimited")
        return
    pending = tier.max_ack_pending
    screen.row("Max Ack Pending", number(pending) if pending > 0 else "unlimited")
    screen.row("Maximum Streams", _limited(tier.streams))
    screen.row("Max Consumers Per Stream", _limited(tier.consumer))
    screen.row("Max Stream Size Required", tier.max_bytes_required)
    for kind, most, of_stream in (
        ("File", tier.disk_storage, tier.disk_max_stream_bytes),
        ("Memory", tier.mem_storage, tier.mem_max_stream_bytes),
    ):
        screen.row(f"Max {kind} Storage", size(most) if most >= 0 else "unlimited")
        if of_stream > 0:
            screen.row(f"Max {kind} Storage Stream Size", size(of_stream))


def user_screen(user: UserEntity, account: AccountEntity) -> Details:
    """A user of the store, with the rules of its scope if it has one."""
    screen = Details(f"User {user.name} ({user.subject})")
    issuer = user.claims.head.iss
    owner = user.claims.nats.issuer_account or issuer
    scope = account.scope_of(user)
    add_user(screen, user.claims.nats, f"{account.name} ({owner})", issuer, account.is_scoped(user))
    add_rules(screen, scope.template if scope else user.claims.nats.rules)
    return screen


def add_user(screen: Details, nats: User, owner: str, issuer: str, scoped: bool) -> None:
    """The first rows of a user."""
    screen.section("Configuration")
    screen.row("Account", owner)
    screen.row("Issuer", issuer)
    screen.row("Scoped", scoped)
    add_texts(screen, "Tags", nats.generic.tags)


def scope_screen(scope: UserScope) -> Details:
    """A signing key and the rules of its users."""
    screen = Details(f"Scoped Signing Key {scope.key}")
    screen.section("Config")
    screen.row_if("Description", scope.description)
    screen.row("Key", scope.key)
    screen.row("Role", scope.role)
    add_rules(screen, scope.template)
    return screen


def add_rules(screen: Details, rules: UserPermissionLimits) -> None:
    """What a user may do."""
    screen.row_if("Locale", rules.limits.times_location)
    screen.row("Bearer Token", rules.bearer_token)
    screen.section("Limits")
    screen.row("Max Payload", _limited(rules.nats.payload))
    screen.row("Max Data", _limited(rules.nats.data))
    screen.row("Max Subscriptions", _limited(rules.nats.subs))
    screen.row_if("Connection Types", ", ".join(rules.allowed_connection_types))
    screen.row_if("Connection Sources", ", ".join(rules.limits.src))
    hours = [f"{one.start} to {one.end}" for one in rules.limits.times]
    add_texts(screen, "Connection Times", hours)
    screen.section("Permissions", parent=True)
    add_permission(screen, "Publish", rules.permissions.pub)
    add_permission(screen, "Subscribe", rules.permissions.sub)


def add_permission(screen: Details, title: str, rule: Permission) -> None:
    """Subjects that may be published or subscribed."""
    screen.section(title, indent=2)
    if not rule.allow and not rule.deny:
        screen.text(NO_PERMISSIONS)
    add_texts(screen, "Allow", rule.allow)
    add_texts(screen, "Deny", rule.deny)


def add_texts(screen: Details, label: str, texts: Sequence[str]) -> None:
    """Sorted texts below each other; on a terminal very long ones lose their middle."""
    columns = _terminal_columns() - LABEL_COLUMNS
    screen.rows(label, (_shortened(text, columns) for text in sorted(texts)))


def _terminal_columns() -> int:
    """0 where there is none: nothing is cut in a pipe, whatever the environment says."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return 0


def _shortened(text: str, columns: int) -> str:
    if len(text) <= columns or columns <= CUT_FROM:
        return text
    half = columns // 2 - 10
    return f"{text[:half]} ... {text[-half:]}"


def _limited(value: int) -> str:
    return limit(value) if value == NO_LIMIT else number(value)
