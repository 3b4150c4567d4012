"""The accounts of JWTs, as those of a configuration are given.

What an account may import depends on others: on whether they export it, and for exports that need
a token on who has signed that. All are looked at together, so that an account which comes later
completes those that import from it.
"""

from collections.abc import Iterable, Iterator, Mapping

from jsctl.auth.claims import Account, JetStreamLimits
from jsctl.auth.token import Claims
from jsctl.broker.claims.rules import permission_rules, user_rules
from jsctl.broker.claims.trade import Trade
from jsctl.broker.claims.verifying import NotBelieved, account
from jsctl.broker.errors import ConfigError
from jsctl.broker.login_options.operators import AccountClaims, OperatorOptions, SigningKey
from jsctl.broker.options import (
    UNLIMITED,
    AccountJetStream,
    AccountLimits,
    AccountOptions,
    MappingOptions,
    MappingTarget,
)
from jsctl.broker.subject.transforms import compile_transform
from jsctl.dataclass import dataclass, replace


@dataclass(frozen=True, slots=True)
class ResolvedAccounts:
    """Accounts, and what an operator should know of those that are not among them, or not whole."""

    accounts: tuple[AccountOptions, ...]
    notes: tuple[str, ...] = ()


def resolve(
    options: OperatorOptions,
    tokens: Iterable[tuple[str, str]],
    now_s: int,
    before: Mapping[str, AccountOptions] | None = None,
) -> ResolvedAccounts:
    """The accounts of (account, JWT). One that does not count is left out: nobody logs in to it.

    `before` is what the same operator's accounts were: one whose JWT says nothing of others is
    taken from there as it is.
    """
    known: dict[str, Claims[Account]] = {}
    texts: dict[str, str] = {}
    notes: list[str] = []
    for name, token in tokens:
        try:
            claims = account(token, options, now_s)
        except NotBelieved as error:
            notes.append(f"account {name}: {error}")
            continue
        if claims.head.sub != name:
            notes.append(f"account {name}: its JWT is that of {claims.head.sub}")
            continue
        known[name], texts[name] = claims, token.strip()
    kept = {
        name: old
        for name, claims in known.items()
        if before is not None and (old := before.get(name)) and _stays(old, claims, texts[name])
    }
    plain = [
        kept.get(name) or _account(claims, texts[name], options, notes)
        for name, claims in known.items()
    ]
    trade = Trade(known, {one.name: _signers(one) for one in plain}, now_s)
    imports = {name: tuple(trade.imports(name, notes)) for name in known if name not in kept}
    found = [
        one
        if one.name in kept
        else replace(one, exports=tuple(trade.exports(one.name)), imports=imports[one.name])
        for one in plain
    ]
    return ResolvedAccounts(tuple(found), tuple(notes))


def _stays(old: AccountOptions, claims: Claims[Account], token: str) -> bool:
    """Whether an account is what it was, whatever others say, and there is nothing to note."""
    if old.claims is None or old.claims.token != token:
        return False
    said = claims.nats
    return not (said.imports or said.mappings or any(one.token_req for one in said.exports))


def _account(
    claims: Claims[Account], token: str, options: OperatorOptions, notes: list[str]
) -> AccountOptions:
    said, limits = claims.nats, claims.nats.limits
    trace = said.trace
    return AccountOptions(
        name=claims.head.sub,
        jetstream=_jetstream(said),
        default_permissions=permission_rules(said.default_permissions),
        mappings=tuple(_mappings(claims, notes)),
        limits=AccountLimits(
            connections_max=_limit(limits.account.conn),
            subscriptions_max=_limit(limits.nats.subs),
            leafnodes_max=_limit(limits.account.leaf),
        ),
        trace_subject=trace.dest if trace is not None else "",
        trace_sampling=trace.sampling or 100 if trace is not None else 100,
        claims=AccountClaims(
            token=token,
            issuer=claims.head.iss,
            name=claims.head.name,
            tags=said.generic.tags,
            expires_s=claims.head.exp,
            signing_keys=tuple(_signing_keys(claims, options)),
            revoked=tuple(said.revocations.items()),
            no_bearer=limits.account.disallow_bearer,
            payload_bytes_max=limits.nats.payload,
            callout_users=said.authorization.auth_users,
            imports=len(said.imports),
        ),
    )


def _signers(account: AccountOptions) -> frozenset[str]:
    """The keys that may sign for an account."""
    assert account.claims is not None
    return frozenset(one.key for one in account.claims.signing_keys)


def _mappings(claims: Claims[Account], notes: list[str]) -> Iterator[MappingOptions]:
    """Those that make sense: one that does not leaves its subject as it is."""
    for source, targets in claims.nats.mappings.items():
        try:
            for one in targets:
                compile_transform(source.encode(), one.subject.encode())
        except ConfigError as error:
            notes.append(f"account {claims.head.sub}: mapping of {source!r}: {error}")
            continue
        yield MappingOptions(
            source, tuple(MappingTarget(one.subject, one.percent, one.cluster) for one in targets)
        )


def _signing_keys(claims: Claims[Account], options: OperatorOptions) -> Iterator[SigningKey]:
    for key, scope in claims.nats.scopes.items():
        yield SigningKey(key, None if scope is None else user_rules(scope.template))
    if claims.head.iss not in options.strict:
        yield SigningKey(claims.head.sub)


def _jetstream(said: Account) -> AccountJetStream | None:
    limits = said.limits
    if not limits.jetstream_enabled:
        return None
    traffic = said.cluster_traffic or "system"
    tiers = tuple((name, _storage(one)) for name, one in limits.tiered_limits.items())
    if tiers:
        return AccountJetStream(cluster_traffic=traffic, tiers=tiers)
    return replace(_storage(limits.jetstream), cluster_traffic=traffic)


def _storage(limits: JetStreamLimits) -> AccountJetStream:
    return AccountJetStream(
        memory_bytes_max=limits.mem_storage,
        store_bytes_max=limits.disk_storage,
        streams_max=limits.streams,
        consumers_max=limits.consumer,
        ack_pending_max=_optional(limits.max_ack_pending),
        memory_stream_bytes_max=_optional(limits.mem_max_stream_bytes),
        store_stream_bytes_max=_optional(limits.disk_max_stream_bytes),
        stream_bytes_required=limits.max_bytes_required,
    )


def _limit(given: int) -> int:
    """A limit that is negative, and not the mark of none, allows nothing."""
    return given if given == UNLIMITED else max(given, 0)


def _optional(limit: int) -> int:
    return limit if limit > 0 else UNLIMITED
