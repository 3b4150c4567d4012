"""Subjects, permissions and words in claims: whether each makes sense by itself."""

from collections.abc import Callable, Iterator
from datetime import datetime
from ipaddress import ip_network
from zoneinfo import ZoneInfo

from jsctl.auth.claims import Permission, Permissions, UserPermissionLimits
from jsctl.auth.urls import UrlProblem, parse_url
from jsctl.dataclass import dataclass

INFO_LENGTH_MAX = 8 * 1024


@dataclass(frozen=True, slots=True)
class Issue:
    """Something that is wrong, or at least odd."""

    text: str
    blocking: bool = True
    of_time: bool = False


def subject_issues(subject: str) -> Iterator[Issue]:
    """What is wrong with a subject."""
    if not subject:
        yield Issue("subject cannot be empty")
        return
    if " " in subject:
        yield Issue(f'subject "{subject}" cannot have spaces')
    if subject.startswith(".") or subject.endswith("."):
        yield Issue(f'subject "{subject}" cannot start or end with a `.`')
    if ".." in subject:
        yield Issue(f'subject "{subject}" cannot contain consecutive `.`')


def has_wildcards(subject: str) -> bool:
    """Whether a subject has a `*` or ends in a `>`."""
    tokens = subject.split(".")
    return "*" in tokens or tokens[-1] == ">"


def contained(inner: str, outer: str) -> bool:
    """Whether all that one subject matches is matched by the other one."""
    mine, others = inner.split("."), outer.split(".")
    if len(mine) > len(others) and others[-1] != ">":
        return False
    if len(mine) < len(others):
        return False
    for at, other in enumerate(others):
        if other == ">" and at == len(others) - 1:
            return True
        if other not in ("*", mine[at]):
            return False
    return True


def permissions_issues(rules: Permissions) -> Iterator[Issue]:
    """What is wrong with permissions; queues may stand behind subscriptions."""
    yield from _permission(rules.sub, queues=True)
    yield from _permission(rules.pub, queues=False)


def _permission(rule: Permission, *, queues: bool) -> Iterator[Issue]:
    for subject in (*rule.allow, *rule.deny):
        parts = subject.split(" ")
        if len(parts) > 2:
            yield Issue(f'Permission Subject "{subject}" contains too many spaces')
            continue
        for part in parts:
            yield from subject_issues(part)
        if len(parts) == 2 and not queues:
            yield Issue(f'Permission Subject "{subject}" is not allowed to contain queue')


def rules_issues(rules: UserPermissionLimits) -> Iterator[Issue]:
    """What is wrong with the rules of a user."""
    yield from permissions_issues(rules.permissions)
    for network in rules.limits.src:
        if "/" not in network or not _parses(lambda text: ip_network(text, strict=False), network):
            yield Issue(f'invalid cidr "{network}" in user src limits')
    for hours in rules.limits.times:
        for name, text in (("start", hours.start), ("end", hours.end)):
            if not text:
                yield Issue(
                    f"time ranges {name} must contain {'a' if name == 'start' else 'an'} {name}"
                )
            elif not _parses(lambda text: datetime.strptime(text, "%H:%M:%S"), text):
                yield Issue(f'{name} in time range is invalid "{text}"')
    zone = rules.limits.times_location
    if zone not in ("", "Local") and not _parses(ZoneInfo, zone):
        yield Issue(f"could not parse iana time zone by name: unknown time zone {zone}")


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except (ValueError, OSError, LookupError):
        return False
    return True


def info_issues(description: str, url: str) -> Iterator[Issue]:
    """What is wrong with words for people."""
    if len(description) > INFO_LENGTH_MAX:
        yield Issue("Description is too long")
    if not url:
        return
    if len(url) > INFO_LENGTH_MAX:
        yield Issue("Info URL is too long")
    try:
        parsed = parse_url(url)
    except UrlProblem as problem:
        yield Issue(f'error parsing info url: parse "{url}": {problem}')
        return
    if not parsed.hostname or not parsed.scheme:
        yield Issue("error parsing info url: no hostname or scheme")
