"""`auth user add`, `edit` and `rm`: what is given changes, all else stays."""

from dataclasses import replace
from pathlib import Path

from jsctl.auth.claims import NO_LIMIT, Permission, User, UserPermissionLimits
from jsctl.auth.entities import with_tags
from jsctl.auth.store import check_name
from jsctl.commands.auth.asking import ask_number
from jsctl.commands.auth.selecting import Auth, now_s, signing_key_of
from jsctl.commands.auth.user.credential import check_free, credential_beside
from jsctl.commands.auth.user.show import show_user
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict

PAYLOAD_DEFAULT = 1_048_576


def add(call: Call) -> None:
    """A new user, signed by the account or one of its signing keys."""
    auth = Auth(call)
    operator, account = auth.account()
    wanted = call.text("key")
    signer = signing_key_of(call, account, wanted)[0] if wanted else account.subject
    name = check_name(call.text("name"), "user")
    if account.user(name):
        raise Conflict(f"user {name} already exist")
    path = _credential_path(call)
    if path is not None:
        check_free(path, force=call.flag("force"))
    answers = {"payload": PAYLOAD_DEFAULT} if call.flag("defaults") else _asked(call)
    user = auth.issuer.new_user(operator, account, name, signer)
    nats = _tagged(call, user.claims.nats)
    if not account.is_scoped(user):
        limits = replace(nats.rules.nats, **answers)
        nats = _edited(call, replace(nats, rules=replace(nats.rules, nats=limits)))
    auth.issuer.change_user(account, user, nats)
    with credential_beside(path, user):
        auth.store.save(operator)
    show_user(call, user, account)


def _credential_path(call: Call) -> Path | None:
    return Path(call.text("credential")) if call.text("credential") else None


def _asked(call: Call) -> dict[str, int]:
    answers: dict[str, int] = {}
    for option, field, question, of in (
        ("payload", "payload", "Maximum Payload", "message size the user can send"),
        (
            "subscriptions",
            "subs",
            "Maximum Subscriptions",
            "number of subscriptions the user can make",
        ),
    ):
        if not call.given(option):
            answers[field] = ask_number(call, question, "-1", f"The maximum {of}")
    return answers


def _tagged(call: Call, nats: User) -> User:
    tags = with_tags(nats.generic.tags, call.texts("tags"), call.texts("no-tags"))
    return replace(nats, generic=replace(nats.generic, tags=tags))


def _edited(call: Call, nats: User) -> User:
    """The claims with what was given; an empty subject takes all of a list away."""
    rules: UserPermissionLimits = nats.rules
    if call.given("locale"):
        rules = replace(rules, limits=replace(rules.limits, times_location=call.text("locale")))
    if call.switch("bearer") is not None:
        rules = replace(rules, bearer_token=call.flag("bearer"))
    numbers = {
        field: call.integer(option, NO_LIMIT)
        for option, field in (("payload", "payload"), ("data", "data"), ("subscriptions", "subs"))
        if call.given(option)
    }
    rules = replace(rules, nats=replace(rules.nats, **numbers))
    permissions = replace(
        rules.permissions,
        pub=_permission(call, "pub", rules.permissions.pub),
        sub=_permission(call, "sub", rules.permissions.sub),
    )
    return replace(nats, rules=replace(rules, permissions=permissions))


def _permission(call: Call, side: str, rule: Permission) -> Permission:
    allow, deny = call.texts(f"{side}-allow"), call.texts(f"{side}-deny")
    return Permission(
        allow=tuple(one for one in allow if one) if allow else rule.allow,
        deny=tuple(one for one in deny if one) if deny else rule.deny,
    )


def edit(call: Call) -> None:
    """Changes what is given; rules of a user with a scope are those of the scope."""
    auth = Auth(call)
    operator, account = auth.account()
    user = auth.user(account, "user not found")
    nats = _tagged(call, user.claims.nats)
    if not account.is_scoped(user):
        nats = _edited(call, nats)
    changed = nats != user.claims.nats
    if changed:
        auth.issuer.change_user(account, user, nats)
    with credential_beside(_credential_path(call), user):
        if changed:
            auth.store.save(operator)
    show_user(call, user, account)


def remove(call: Call) -> None:
    """Deletes a user with its key; revoked first, servers refuse it once they know."""
    auth = Auth(call)
    operator, account = auth.account()
    user = auth.user(account, "user does not exist")
    if not call.confirm(f"Really remove the User {user.name}", prefix=""):
        return
    if call.flag("revoke"):
        nats = account.claims.nats
        revocations = {**nats.revocations, user.subject: now_s()}
        auth.issuer.change_account(operator, account, replace(nats, revocations=revocations))
    account.users.remove(user)
    account.removed.append(user)
    operator.deleted_keys.append(user.subject)
    auth.store.save(operator)
    call.output.print(f"Removed user {user.name}")
