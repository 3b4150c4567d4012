"""What claims let a user do, as rules of ours; templates of signing keys filled in for one user."""

import itertools
import re

from jsctl.auth.claims import Permission, Permissions, UserPermissionLimits
from jsctl.broker.login_options.operators import UserRules
from jsctl.broker.login_options.permissions import (
    PermissionRules,
    ResponsePermission,
    SubjectPermission,
)
from jsctl.broker.subject.validity import is_valid_subject
from jsctl.dataclass import dataclass, replace

EXPANSIONS_MAX = 4096
"""Subjects that the entries of one list may become by tags with several values."""
KINDS = frozenset(
    {"STANDARD", "WEBSOCKET", "LEAFNODE", "LEAFNODE_WS", "MQTT", "MQTT_WS", "IN_PROCESS"}
)
NO_KIND = ("",)
"""All kinds of connections that were named are unknown: none is allowed."""
_TEMPLATE = re.compile(r"\{\{[^}]+\}\}")
_TAG = re.compile(r"(account-tag|tag)\((.*)\)", re.IGNORECASE | re.DOTALL)


class BadTemplate(Exception):
    """A template of a signing key that gives this user no sensible rules."""


def permission_rules(claimed: Permissions) -> PermissionRules | None:
    """None where nothing is said, so that the account's own rules count."""
    publish, subscribe = _subjects(claimed.pub), _subjects(claimed.sub)
    responses = None
    if claimed.resp is not None:
        plain = ResponsePermission()
        responses = ResponsePermission(
            claimed.resp.max or plain.messages_max, claimed.resp.ttl or plain.expires_ns
        )
    if publish is None and subscribe is None and responses is None:
        return None
    return PermissionRules(publish, subscribe, responses)


def _subjects(claimed: Permission) -> SubjectPermission | None:
    if not (claimed.allow or claimed.deny):
        return None
    return SubjectPermission(claimed.allow or None, claimed.deny)


def user_rules(claimed: UserPermissionLimits) -> UserRules:
    """All that a user's JWT, or the template of a signing key, says."""
    kinds = tuple(one.upper() for one in claimed.allowed_connection_types)
    known = tuple(one for one in kinds if one in KINDS)
    return UserRules(
        permissions=permission_rules(claimed.permissions),
        subscriptions_max=claimed.nats.subs,
        payload_bytes_max=claimed.nats.payload,
        sources=claimed.limits.src,
        hours=tuple((one.start, one.end) for one in claimed.limits.times),
        zone=claimed.limits.times_location,
        bearer=claimed.bearer_token,
        proxy_required=claimed.proxy_required,
        connection_types=known or (NO_KIND if kinds else ()),
    )


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a template is filled in for."""

    name: str
    key: str
    tags: tuple[str, ...]
    account: str
    account_name: str
    account_tags: tuple[str, ...]


def filled_in(rules: UserRules, user: Subject) -> UserRules:
    """The rules of a signing key for one of its users. Raises BadTemplate."""
    given = rules.permissions
    if given is None:
        return rules
    publish, subscribe = _filled(given.publish, user), _filled(given.subscribe, user)
    return replace(rules, permissions=replace(given, publish=publish, subscribe=subscribe))


def _filled(given: SubjectPermission | None, user: Subject) -> SubjectPermission | None:
    if given is None:
        return None
    deny = tuple(_each(given.deny, user, strict=True))
    allow = given.allow
    if allow is not None:
        allow = tuple(_each(allow, user, strict=False))
        if not allow:
            # All that was allowed has become no subject: nothing is, instead of everything.
            return SubjectPermission((), (*deny, ">"))
    return SubjectPermission(allow, deny)


def _each(entries: tuple[str, ...], user: Subject, *, strict: bool) -> list[str]:
    if not any(map(_TEMPLATE.search, entries)):
        return list(entries)
    found: list[str] = []
    for entry in entries:
        found += _expanded(entry, user, strict=strict)
        if len(found) > EXPANSIONS_MAX:
            raise BadTemplate(f"it stands for more than {EXPANSIONS_MAX} subjects")
    return found


def _expanded(entry: str, user: Subject, *, strict: bool) -> list[str]:
    """All that an entry stands for; what is no subject is left out, or refused if `strict`."""
    words = list(dict.fromkeys(_TEMPLATE.findall(entry)))
    values = [_values(word, entry, user, strict=strict) for word in words]
    total = 1
    for one in values:
        total *= len(one)
        if total > EXPANSIONS_MAX:
            raise BadTemplate(f"{entry!r} stands for more than {EXPANSIONS_MAX} subjects")
    found: list[str] = []
    for chosen in itertools.product(*values):
        subject = entry
        for word, value in zip(words, chosen, strict=True):
            subject = subject.replace(word, value)
        if _is_subject(subject):
            found.append(subject)
        elif strict:
            raise BadTemplate(f"{entry!r} becomes {subject!r}, which is no subject")
    return found


def _is_subject(entry: str) -> bool:
    return " " not in entry and is_valid_subject(entry.encode())


def _values(word: str, entry: str, user: Subject, *, strict: bool) -> tuple[str, ...]:
    """What one `{{...}}` stands for."""
    operation = word[2:-2].strip()
    simple = {
        "name()": user.name,
        "subject()": user.key,
        "account-name()": user.account_name,
        "account-subject()": user.account,
    }
    if (value := simple.get(operation.lower())) is not None:
        return (value,)
    tag = _TAG.fullmatch(operation)
    if tag is None:
        raise BadTemplate(f"{entry!r}: {operation!r} is not defined")
    tags = user.tags if tag[1].lower() == "tag" else user.account_tags
    prefix = f"{tag[2].lower()}:"
    found = tuple(one.removeprefix(prefix) for one in tags if one.startswith(prefix))
    if not found and strict:
        raise BadTemplate(f"{entry!r}: no tag {tag[2]!r}")
    return found or (" ",)
