"""Screens of bare JWTs of every kind, with what is odd about them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jsctl.api.times import format_duration
from jsctl.auth.check_subjects import Issue
from jsctl.auth.claims import (
    WEIGHT_MAX,
    Account,
    Activation,
    AuthorizationRequest,
    AuthorizationResponse,
    Body,
    Head,
    Operator,
    ResponsePermission,
    User,
)
from jsctl.auth.entities import AccountEntity
from jsctl.auth.keys import KeyPair
from jsctl.auth.token import Claims
from jsctl.render.details import Details
from jsctl.render.humanize import moment_s, number
from jsctl.render.reports.auth.screens import (
    SECOND_NS,
    add_account,
    add_operator,
    add_permission,
    add_rules,
    add_texts,
    add_user,
)

RESPONSES_DEFAULT = 1
RESPONSE_TTL_DEFAULT_NS = 120 * SECOND_NS
"""What servers take for zero."""


def claims_screen(claims: Claims[Body], issues: Sequence[Issue]) -> Details:
    """Everything a JWT says."""
    head, nats = claims.head, claims.nats
    kind, add = _KINDS[type(nats)]
    screen = Details(f"{kind} {head.name} ({head.sub})")
    screen.section("Token")
    screen.row("Id", head.jti)
    screen.row_if("Audience", head.aud)
    screen.row("Issued At", moment_s(head.iat))
    screen.row("Expires", moment_s(head.exp) if head.exp > 0 else "never")
    if head.nbf > 0:
        screen.row("Not Before", moment_s(head.nbf))
    add(screen, head, nats)
    if issues:
        screen.section("Validation Issues")
        for issue in issues:
            screen.text(issue.text)
    return screen


def _operator(screen: Details, head: Head, nats: Operator) -> None:
    rows = {"System Account": nats.system_account or "not set"}
    add_operator(screen, head.name, head.sub, nats, rows)
    screen.section("Additional Settings")
    if head.iss != head.sub:
        screen.row("Issuer", head.iss)
    screen.row_if("Assert Server Version", nats.assert_server_version)
    screen.row_if("Strict Signing Key Usage", nats.strict_signing_key_usage)


def _account(screen: Details, head: Head, nats: Account) -> None:
    entity = AccountEntity(head.name, KeyPair(head.sub), "", Claims(head, nats))
    add_account(screen, entity, {}, users=None)
    screen.section("Additional Settings")
    screen.row_if("Description", nats.info.description)
    screen.row_if("Info URL", nats.info.info_url)
    if not nats.limits.account.wildcards:
        screen.row("Wildcard Exports", False)
    add_texts(screen, "Signing Keys", _keys(nats))
    add_texts(screen, "Mappings", _mappings(nats))
    rules = nats.default_permissions
    if any((rules.pub.allow, rules.pub.deny, rules.sub.allow, rules.sub.deny)):
        screen.section("Default Permissions", parent=True)
        add_permission(screen, "Publish", rules.pub)
        add_permission(screen, "Subscribe", rules.sub)
    screen.section("Exports and Imports")
    needed = {True: ", token required", False: ""}
    exports = [f"{one.subject} ({one.type_}{needed[one.token_req]})" for one in nats.exports]
    add_texts(screen, "Exported Subjects", exports)
    imports = [f"{one.subject} from {one.account} ({one.type_})" for one in nats.imports]
    add_texts(screen, "Imported Subjects", imports)
    if nats.authorization.auth_users:
        screen.section("External Authorization")
        add_texts(screen, "Auth Users", nats.authorization.auth_users)
        add_texts(screen, "Allowed Accounts", nats.authorization.allowed_accounts)
        screen.row_if("XKey", nats.authorization.xkey)


def _keys(nats: Account) -> list[str]:
    found: list[str] = []
    for key, scope in nats.scopes.items():
        if scope is None:
            found.append(key)
        else:
            found.append(f"{key} (scoped: {scope.role})" if scope.role else f"{key} (scoped)")
    return found


def _mappings(nats: Account) -> list[str]:
    found: list[str] = []
    for source, targets in nats.mappings.items():
        for target in targets:
            part = f" ({target.percent}%)" if target.percent != WEIGHT_MAX else ""
            where = f" in cluster {target.cluster}" if target.cluster else ""
            found.append(f"{source} -> {target.subject}{part}{where}")
    return found


def _user(screen: Details, head: Head, nats: User) -> None:
    owner = nats.issuer_account or head.iss
    scoped = head.iss != owner and nats.empty
    add_user(screen, nats, owner, head.iss, scoped)
    if scoped:
        screen.section("Limits")
        screen.text("Set by the signing key scope in the account JWT")
    else:
        add_rules(screen, nats.rules)
    screen.section("Additional Settings")
    screen.row_if("Proxy Required", nats.rules.proxy_required)
    if nats.rules.permissions.resp is not None:
        screen.row("Allow Responses", _responses(nats.rules.permissions.resp))


def _responses(rule: ResponsePermission) -> str:
    most, ttl = rule.max or RESPONSES_DEFAULT, rule.ttl or RESPONSE_TTL_DEFAULT_NS
    messages = "unlimited" if most < 0 else str(most)
    return f"{messages} messages, expires {'never' if ttl < 0 else format_duration(ttl)}"


def _activation(screen: Details, head: Head, nats: Activation) -> None:
    screen.section("Configuration")
    screen.row("Issuer", head.iss)
    screen.row_if("Issuer Account", nats.issuer_account)
    screen.row("Subject", head.sub)
    screen.row("Import Subject", nats.subject)
    screen.row("Import Type", nats.kind)
    add_texts(screen, "Tags", nats.generic.tags)


def _request(screen: Details, head: Head, nats: AuthorizationRequest) -> None:
    screen.section("Configuration")
    screen.row("Issuer", head.iss)
    screen.row("Subject", head.sub)
    screen.row("User NKey", nats.user_nkey)
    screen.row_if("Request Nonce", nats.request_nonce)
    server, client, options = nats.server_id, nats.client_info, nats.connect_opts
    named = {"Name": server.name, "Id": server.id, "Host": server.host}
    _add(screen, "Server", {**named, "Cluster": server.cluster, "Version": server.version})
    screen.section("Client")
    screen.row("Id", number(client.id))
    for label in ("name", "host", "user", "kind", "type_"):
        screen.row_if(label.strip("_").title(), getattr(client, label))
    named = {"Username": options.user, "Language": options.lang, "Client Version": options.version}
    _add(screen, "Connect Options", named)
    screen.row("Protocol", options.protocol)
    if nats.client_tls is not None:
        tls = nats.client_tls
        _add(screen, "TLS", {"Version": tls.version, "Cipher": tls.cipher})


def _add(screen: Details, title: str, rows: Mapping[str, str]) -> None:
    screen.section(title, parent=True)
    for label, value in rows.items():
        screen.row_if(label, value)


def _response(screen: Details, head: Head, nats: AuthorizationResponse) -> None:
    screen.section("Configuration")
    screen.row("Issuer", head.iss)
    screen.row_if("Issuer Account", nats.issuer_account)
    screen.row("Subject", head.sub)
    screen.row_if("Error", nats.error)
    screen.row("User JWT Issued", bool(nats.jwt))


_KINDS: Mapping[type, tuple[str, Callable[[Details, Head, Any], None]]] = {
    Operator: ("Operator", _operator),
    Account: ("Account", _account),
    User: ("User", _user),
    Activation: ("Activation", _activation),
    AuthorizationRequest: ("Authorization Request", _request),
    AuthorizationResponse: ("Authorization Response", _response),
}
