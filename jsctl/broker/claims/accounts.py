"""The accounts of JWTs, as those of a configuration are given.

What an account may import depends on others: on whether they export it, and for exports that need
a token on who has signed that. All are looked at together, so that an account which comes later
completes those that import from it.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from jsctl.auth.check_trade import import_issues
from jsctl.auth.claims import Account, Export, Import, JetStreamLimits
from jsctl.auth.token import Claims
from jsctl.broker.claims.rules import permission_rules, user_rules
from jsctl.broker.claims.verifying import NotBelieved, account, activation
from jsctl.broker.errors import ConfigError
from jsctl.broker.login_options.operators import AccountClaims, OperatorOptions, SigningKey
from jsctl.broker.options import (
    UNLIMITED,
    AccountJetStream,
    AccountLimits,
    AccountOptions,
    ExportOptions,
    ImportOptions,
    MappingOptions,
    MappingTarget,
)
from jsctl.broker.subject.transforms import compile_transform
from jsctl.dataclass import dataclass, replace

SERVICE = "service"
RESPONSES = {"stream": "stream", "chunked": "chunked"}
EVERYBODY = "*"
Asking = tuple[str, Import]
"""An account, and what it imports."""


@dataclass(frozen=True, slots=True)
class ResolvedAccounts:
    """Accounts, and what an operator should know of those that are not among them, or not whole."""

    accounts: tuple[AccountOptions, ...]
    notes: tuple[str, ...] = ()


def resolve(
    options: OperatorOptions, tokens: Iterable[tuple[str, str]], now_s: int
) -> ResolvedAccounts:
    """The accounts of (account, JWT). One that does not count is left out: nobody logs in to it."""
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
        known[name], texts[name] = claims, token
    asking = _asking(known)
    found: list[AccountOptions] = []
    for name, claims in known.items():
        exports = tuple(_exports(claims, asking.get(name, []), now_s))
        imports = tuple(_imports(claims, known, notes))
        plain = _account(claims, texts[name], options, notes)
        found.append(replace(plain, exports=exports, imports=imports))
    return ResolvedAccounts(tuple(found), tuple(notes))


def _asking(known: Mapping[str, Claims[Account]]) -> dict[str, list[Asking]]:
    """Account -> imports from it that come with a token."""
    found: dict[str, list[Asking]] = {}
    for name, claims in known.items():
        for one in claims.nats.imports:
            if one.token:
                found.setdefault(one.account, []).append((name, one))
    return found


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
        ),
    )


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


def _exports(
    claims: Claims[Account], asking: Sequence[Asking], now_s: int
) -> Iterator[ExportOptions]:
    for one in claims.nats.exports:
        latency = one.service_latency
        sampling = latency.sampling if latency is not None else None
        made = ExportOptions(
            subject=one.subject,
            service=one.type_ == SERVICE,
            accounts=tuple(_approved(claims, one, asking, now_s)) if one.token_req else (),
            response_type=RESPONSES.get(one.response_type.lower(), "singleton"),
            account_token_position=one.account_token_position,
            allow_trace=one.allow_trace,
            latency_subject=latency.results if latency is not None else "",
            latency_sampling=sampling if isinstance(sampling, int) else 0,
        )
        threshold_ns = one.response_threshold
        yield replace(made, response_threshold_ns=threshold_ns) if threshold_ns > 0 else made


def _approved(
    claims: Claims[Account], export: Export, asking: Sequence[Asking], now_s: int
) -> Iterator[str]:
    """Accounts with an import whose token this one has signed. This one is always among them: an
    export for nobody would be one for everybody."""
    found = [
        name
        for name, one in asking
        if one.type_ == export.type_ and _activated(claims, export, one, name, now_s)
    ]
    yield from dict.fromkeys([claims.head.sub, *found])


def _activated(
    claims: Claims[Account], export: Export, wanted: Import, importer: str, now_s: int
) -> bool:
    """Whether the token of an import counts."""
    if not wanted.token or any(one.blocking for one in import_issues(wanted, importer)):
        return False
    try:
        token = activation(wanted.token, now_s)
    except NotBelieved:
        return False
    if 0 < token.head.exp <= now_s:
        return False
    account_of = token.nats.issuer_account
    if account_of and account_of != claims.head.sub:
        return False
    if token.head.iss not in (claims.head.sub, *claims.nats.scopes):
        return False
    until = export.revocations
    return not any(token.head.iat <= until[key] for key in (importer, EVERYBODY) if key in until)


def _imports(
    claims: Claims[Account], known: Container[str], notes: list[str]
) -> Iterator[ImportOptions]:
    """Those that another account offers, as far as it is known."""
    for one in claims.nats.imports:
        if one.account not in known:
            notes.append(
                f"account {claims.head.sub} imports {one.subject!r} from {one.account}, which is"
                " not known"
            )
            continue
        yield _import(one)


def _import(one: Import) -> ImportOptions:
    """Of services the local subject is the one that requests go to, of streams the one that
    messages come on; `to` is what older JWTs have for either, the other way round for services."""
    service = one.type_ == SERVICE
    if one.local_subject:
        return ImportOptions(
            account=one.account,
            subject=one.subject,
            service=service,
            to=one.local_subject,
            share=one.share,
            allow_trace=one.allow_trace,
        )
    if service:
        return ImportOptions(
            account=one.account,
            subject=one.to or one.subject,
            service=True,
            to=one.subject,
            share=one.share,
        )
    return ImportOptions(
        account=one.account, subject=one.subject, prefix=one.to, allow_trace=one.allow_trace
    )
