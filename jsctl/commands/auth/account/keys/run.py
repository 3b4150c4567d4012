"""`auth account keys`: signing keys of an account, with the rules of their users."""

from collections.abc import Mapping

from jsctl.auth.claims import (
    NO_LIMIT,
    NatsLimits,
    Permission,
    Permissions,
    UserLimits,
    UserPermissionLimits,
    UserScope,
)
from jsctl.commands.auth.selecting import Auth, signing_key_of
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError
from jsctl.render.reports.auth.screens import scope_screen
from jsctl.render.reports.auth.tables import KEY_COLUMNS, KeyRow

_CONNECTIONS: Mapping[str, str] = {
    "nats": "STANDARD",
    "ws": "WEBSOCKET",
    "wsleaf": "LEAFNODE_WS",
    "leaf": "LEAFNODE",
    "mqtt": "MQTT",
}
SCOPE_NUMBER_MAX = 2**53
"""Servers read these numbers as floating point, and refuse the account if that says another one."""


def add(call: Call) -> None:
    """A signing key, with rules unless it has no role."""
    auth = Auth(call)
    operator, account = auth.account()
    role = call.text("role")
    if not role and not call.flag("unscoped"):
        help_text = "The role to associate with this key, empty for a unscoped key"
        role = call.prompts.ask("Role Name", check=str, help_text=help_text, prefix="")
    if not role or call.flag("unscoped"):
        key = auth.issuer.new_account_key(operator, account)
        auth.store.save(operator)
        call.output.print(f"Added signing key: {key.public}")
        return
    scope = UserScope(role=role, template=_rules(call), description=call.text("description"))
    key = auth.issuer.new_account_key(operator, account, scope)
    auth.store.save(operator)
    kept = account.claims.nats.scopes[key.public]
    assert kept is not None
    _show(call, kept)


def _rules(call: Call) -> UserPermissionLimits:
    limits = NatsLimits(
        subs=call.integer("subscriptions", NO_LIMIT), data=NO_LIMIT, payload=call.size("payload")
    )
    if max(limits.subs, limits.payload) > SCOPE_NUMBER_MAX:
        raise UsageError(f"limits of a signing key end at {SCOPE_NUMBER_MAX:,}")
    pub = Permission(call.texts("pub-allow"), call.texts("pub-deny"))
    sub = Permission(call.texts("sub-allow"), call.texts("sub-deny"))
    return UserPermissionLimits(
        permissions=Permissions(pub=pub, sub=sub),
        limits=UserLimits(times_location=call.text("locale")),
        nats=limits,
        bearer_token=call.flag("bearer"),
        allowed_connection_types=tuple(_CONNECTIONS[one] for one in call.texts("connection")),
    )


def _show(call: Call, scope: UserScope) -> None:
    if call.as_json:
        call.output.json(scope)
        return
    call.output.details(scope_screen(scope))
    call.output.print()


def info(call: Call) -> None:
    """One signing key that has a role."""
    _, account = Auth(call).account()
    _, scope = signing_key_of(call, account, call.text("key"), scoped_only=True)
    assert scope is not None
    _show(call, scope)


def ls(call: Call) -> None:
    """All signing keys, those with a role first."""
    _, account = Auth(call).account()
    scopes = account.claims.nats.scopes
    if not scopes and not call.output.machine:
        call.output.print("No Signing Keys or Roles defined")
        return
    rows = [KeyRow(key, scope) for key, scope in scopes.items()]
    rows.sort(key=lambda row: row.scope is None)
    call.output.table(rows, KEY_COLUMNS, f'Signing Keys for Account "{account.name}"')
    if not call.output.machine:
        call.output.print("\n")


def remove(call: Call) -> None:
    """Takes one away; users that it issued are not valid any more."""
    auth = Auth(call)
    operator, account = auth.account()
    key, scope = signing_key_of(call, account, call.text("key"))
    question = f"Really remove the Signing Key {key}"
    if scope is not None:
        question = f"Really remove the Scoped Signing Key {key} with role {scope.role}"
    if not call.confirm(question, prefix=""):
        return
    left = {one: of for one, of in account.claims.nats.scopes.items() if one != key}
    auth.issuer.set_scopes(operator, account, left)
    operator.deleted_keys.append(key)
    auth.store.save(operator)
    call.output.print(f'key "{key}" removed')
