"""Operator mode in the file: the operators' JWTs, and where those of accounts come from."""

import re
import time
from pathlib import Path

from jsctl.auth.claims import Account
from jsctl.auth.token import TokenProblem, read_as, undecorated
from jsctl.broker.claims import verifying
from jsctl.broker.claims.accounts import resolve
from jsctl.broker.claims.ages import is_newer
from jsctl.broker.claims.verifying import NotBelieved
from jsctl.broker.conf.fields import (
    Field,
    Found,
    Reading,
    Section,
    array,
    boolean,
    count,
    duration,
    make,
    mapping,
    one_of,
    path,
    text,
    texts,
)
from jsctl.broker.conf.tree import ConfigNode
from jsctl.broker.errors import ConfigError
from jsctl.broker.login_options.operators import OperatorOptions, ResolverKind, ResolverOptions
from jsctl.broker.nkey import KeyKind, decode
from jsctl.broker.options import COMPATIBLE_VERSION
from jsctl.dataclass import dataclass, replace

JWT_BEGINS = "eyJ"
TOKEN_BYTES_MAX = 1024 * 1024
MEMORY = ("mem", "memory")
VERSION = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Named:
    """One trusted operator: its JWT, and what that says."""

    token: str
    keys: tuple[str, ...]
    strict: bool
    system_account: str


def operators(node: ConfigNode, reading: Reading) -> tuple[Named, ...]:
    """JWTs, or files that have them."""
    entries = array(node) if isinstance(node.content, list) else [node]
    found = tuple(_operator(one, text(one, reading)) for one in entries)
    if not found:
        raise node.error("it is empty: nobody could sign an account", "name an operator's JWT")
    return found


def _operator(node: ConfigNode, given: str) -> Named:
    token = given if given.startswith(JWT_BEGINS) else _content(node, given)
    token = undecorated(token).strip()
    try:
        claims = verifying.operator(token)
    except NotBelieved as error:
        raise node.error(
            f"error parsing operator JWT: {error}", "give the JWT of an operator"
        ) from None
    said = claims.nats
    _check_version(node, said.assert_server_version)
    own = () if said.strict_signing_key_usage else (claims.head.sub,)
    keys = (*own, *said.signing_keys)
    if any(decode(key, KeyKind.OPERATOR) is None for key in keys):
        raise node.error("a signing key of the operator is no public operator key", "replace it")
    if not keys:
        raise node.error(
            "the operator demands signing keys, and has none: nobody could sign an account",
            "add one to its JWT",
        )
    return Named(token, keys, said.strict_signing_key_usage, said.system_account)


def _check_version(node: ConfigNode, wanted: str) -> None:
    """Raises ConfigError where an operator demands newer servers than this one is like."""
    if not wanted:
        return
    if VERSION.fullmatch(wanted) is None:
        raise node.error(
            f"the operator expects version {wanted}, which is none", "write it as 2.10.0"
        )
    if _numbers(wanted) > _numbers(COMPATIBLE_VERSION):
        raise node.error(
            f"the operator expects version {wanted} of nats-server, and this one is compatible"
            f" with {COMPATIBLE_VERSION}",
            "have the operator expect less, or take a newer server",
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _content(node: ConfigNode, name: str) -> str:
    """The text of a file with a JWT."""
    try:
        with Path(name).open("rb") as file:
            content = file.read(TOKEN_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise node.error(
            f"{name!r} cannot be read: {reason}", "give a JWT, or a file with one"
        ) from None
    if len(content) > TOKEN_BYTES_MAX:
        raise node.error(f"{name!r} has more than {TOKEN_BYTES_MAX} bytes", "give a JWT")
    return content.decode("utf-8", "replace")


def resolver(node: ConfigNode, reading: Reading) -> ResolverOptions:
    """`MEMORY`, or a map of `type: full` with a directory."""
    if isinstance(node.content, dict):
        return _directory(node, reading)
    given = text(node, reading)
    if given.strip().lower() in MEMORY:
        return ResolverOptions()
    raise node.error(
        f"the resolver {given!r} is not supported: no JWT is fetched by URL",
        'write MEMORY with resolver_preload, or { type: full, dir: "..." }',
    )


def _directory(node: ConfigNode, reading: Reading) -> ResolverOptions:
    found = RESOLVER.read(node, reading, "resolver")
    kind = found.pop("type", "")
    if kind in MEMORY:
        return ResolverOptions()
    if kind != "full":
        raise node.error(
            "only resolvers of type full are supported: no account is fetched when it is needed",
            "write type: full; servers of that type keep all accounts",
        )
    if not found.get("directory"):
        raise node.error(
            "dir has no value and needs to point to a directory", "name the directory of the JWTs"
        )
    if found.pop("lives_ns", 0):
        raise node.error(
            "a resolver of type full does not accept ttl: what it has stays", "remove ttl"
        )
    if "keeps_deleted" in found and not found.get("may_delete"):
        raise node.error(
            "hard_delete has no effect without allow_delete", "remove it, or allow deletes"
        )
    return make(ResolverOptions, {"kind": ResolverKind.FULL, **found})


def hard_delete(node: ConfigNode, reading: Reading) -> bool:
    """Whether what is deleted is kept: the other way round."""
    return not boolean(node, reading)


def preload(node: ConfigNode, reading: Reading) -> tuple[tuple[str, str], ...]:
    """Account -> JWT."""
    found: list[tuple[str, str]] = []
    for name, value in mapping(node).items():
        if value.variable:
            continue
        if decode(name, KeyKind.ACCOUNT) is None:
            raise value.error(f"{name!r} is no public account key", "it begins with A")
        token = undecorated(text(value, reading)).strip()
        try:
            read_as(Account, token)
        except TokenProblem as error:
            raise value.error(
                f"invalid account JWT: {error}", "give the JWT of that account"
            ) from None
        found.append((name, token))
    return tuple(found)


def pinned(node: ConfigNode, reading: Reading) -> tuple[str, ...]:
    """Accounts that alone may be logged in to."""
    found = texts(node, reading)
    if not found:
        raise node.error(
            "it is empty: every account could be logged in to", "name one, or remove it"
        )
    for name in found:
        if decode(name, KeyKind.ACCOUNT) is None:
            raise node.error(f"{name!r} is no public account key", "it begins with A")
    return found


RESOLVER = Section(
    Field(("type",), "type", one_of("full", "cache", *MEMORY)),
    Field(("dir",), "directory", path),
    Field(("allow_delete",), "may_delete", boolean),
    Field(("hard_delete",), "keeps_deleted", hard_delete),
    Field(("limit",), "accounts_max", count),
    Field(("interval",), "interval_ns", duration),
    Field(("timeout",), "timeout_ns", duration),
    Field(("ttl",), "lives_ns", duration),
    once=True,
)


def put_together(parts: Found, values: Found, warnings: list[str]) -> None:
    """Add operator mode to the attributes of `Options`. Raises ConfigError for parts without the
    whole: a file that means it would let everybody in."""
    named = parts.get("operators")
    if not isinstance(named, tuple):
        for name in parts:
            raise ConfigError(
                f'"{name}" means nothing without an operator',
                place=name,
                remedy="add operator: FILE, or remove it",
            )
        return
    _refuse_configured(values)
    source = parts.get("resolver")
    if not isinstance(source, ResolverOptions):
        raise ConfigError(
            "operators require an account resolver to be configured",
            place="operator",
            remedy="add resolver: MEMORY, or { type: full, dir: ... }",
        )
    options = _options(named, source, parts, values)
    known = known_accounts(options.resolver)
    options = replace(options, resolver=replace(options.resolver, known=known))
    found = resolve(options, known, time.time_ns() // 1_000_000_000)
    names = [one.name for one in found.accounts]
    if options.system_account and options.system_account not in names:
        raise ConfigError(
            f"the system account {options.system_account} has no valid JWT here",
            place="resolver_preload",
            remedy="add it to resolver_preload",
        )
    warnings += found.notes
    values["operator"], values["accounts"] = options, found.accounts
    values["system_account"] = options.system_account


def _refuse_configured(values: Found) -> None:
    """Users and accounts that somebody who signs nothing has written down."""
    for name, word in (("accounts", "accounts"), ("auth", "authorization")):
        block = values.get(name)
        if (name == "accounts" and block) or getattr(block, "required", False):
            what = "Accounts" if name == "accounts" else "users"
            raise ConfigError(
                f"operators do not allow {what} to be configured directly",
                place=word,
                remedy="remove them, and put them into JWTs",
            )
    if values.get("no_auth_user"):
        raise ConfigError(
            "no_auth_user not compatible with Trusted Operator",
            place="no_auth_user",
            remedy="remove it",
        )


def _options(
    named: tuple[Named, ...], source: ResolverOptions, parts: Found, values: Found
) -> OperatorOptions:
    system = _system_account(named, str(values.get("system_account", "")))
    if source.kind is ResolverKind.FULL and not system:
        raise ConfigError(
            "using nats based account resolver - the system account needs to be specified in"
            " configuration or the operator jwt",
            place="resolver",
            remedy="add system_account: A...",
        )
    given, pins = parts.get("resolver_preload", ()), parts.get("resolver_pinned_accounts", ())
    assert isinstance(given, tuple)
    assert isinstance(pins, tuple)
    if pins and system:
        pins = tuple(dict.fromkeys([*pins, system]))
    return OperatorOptions(
        tokens=tuple(one.token for one in named),
        keys=tuple(dict.fromkeys(key for one in named for key in one.keys)),
        strict=tuple(key for one in named if one.strict for key in one.keys),
        system_account=system,
        sentinel=_sentinel(str(parts.get("default_sentinel", ""))),
        resolver=replace(source, preload=given, pinned=pins),
    )


def _system_account(named: tuple[Named, ...], configured: str) -> str:
    """Whose servers' own traffic is. Raises ConfigError where file and JWT differ."""
    said = [one.system_account for one in named if one.system_account]
    if configured and said and configured not in said:
        raise ConfigError(
            "system_account in config and operator JWT must be identical",
            place="system_account",
            remedy="remove it here",
        )
    return configured or (named[0].system_account if len(named) == 1 else "")


def _sentinel(token: str) -> str:
    """What clients without a JWT are given. Raises ConfigError for one that is nobody's."""
    if not token:
        return ""
    try:
        claims = verifying.user(token, time.time_ns() // 1_000_000_000)
    except NotBelieved as error:
        raise ConfigError(
            f"default sentinel JWT not valid: {error}", place="default_sentinel", remedy="remove it"
        ) from None
    scoped = claims.nats.issuer_account and claims.nats.empty
    if not (claims.nats.rules.bearer_token or scoped):
        raise ConfigError(
            "default sentinel must be a bearer token", place="default_sentinel", remedy="remove it"
        )
    return token


def known_accounts(options: ResolverOptions) -> tuple[tuple[str, str], ...]:
    """The accounts that a server begins with, and their JWTs: of one in the file and one in its
    directory the newer."""
    found = dict(options.preload)
    if options.kind is ResolverKind.FULL:
        from jsctl.broker.conf.jwt_directory import read_all  # loaded with the first of them

        for name, token in read_all(Path(options.directory)):
            if not is_newer(found.get(name, ""), token):
                found[name] = token
    return tuple(sorted(found.items()))
