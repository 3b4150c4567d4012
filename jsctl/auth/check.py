"""Whether claims make sense: the rules and the words of the reference implementation.

What servers would refuse is `blocking`; the rest is for people to know.
"""

from collections.abc import Iterator

from jsctl.auth.check_subjects import (
    Issue,
    has_wildcards,
    info_issues,
    permissions_issues,
    rules_issues,
    subject_issues,
)
from jsctl.auth.check_trade import (
    activation_issues,
    exports_issues,
    imports_issues,
    mapping_issues,
)
from jsctl.auth.claims import (
    NO_LIMIT,
    Account,
    AccountLimits,
    Activation,
    Authorization,
    AuthorizationRequest,
    AuthorizationResponse,
    Body,
    Head,
    JetStreamLimits,
    Operator,
    OperatorLimits,
    User,
)
from jsctl.auth.keys import KeyKind, kind_of
from jsctl.auth.token import Claims
from jsctl.auth.urls import UrlProblem, parse_url


def issues_of(claims: Claims[Body], now_s: int) -> list[Issue]:
    """Everything that is wrong with claims, in the order of the reference implementation."""
    body = claims.nats
    if isinstance(body, AuthorizationRequest):
        return [*_authorization_request(body), *_times(claims.head, now_s)]
    found = list(_times(claims.head, now_s))
    if isinstance(body, Operator):
        found += _operator(body)
    elif isinstance(body, Account):
        found += _account(body, claims.head)
        if kind_of(claims.head.iss) is KeyKind.ACCOUNT and body.limits != OperatorLimits():
            text = "self-signed account JWTs shouldn't contain operator limits"
            found.append(Issue(text, blocking=False))
    elif isinstance(body, User):
        found += _user(body)
    elif isinstance(body, Activation):
        found += activation_issues(body)
    else:
        assert isinstance(body, AuthorizationResponse), body
        found += _authorization_response(body, claims.head)
    return found


def _times(head: Head, now_s: int) -> Iterator[Issue]:
    if 0 < head.exp < now_s:
        yield Issue("claim is expired", blocking=False, of_time=True)
    if head.nbf > max(0, now_s):
        yield Issue("claim is not yet valid", blocking=False, of_time=True)


def _operator(operator: Operator) -> Iterator[Issue]:
    url = operator.account_server_url
    if url:
        try:
            if not parse_url(url).scheme:
                yield Issue(f'account server url "{url}" requires a protocol')
        except UrlProblem as error:
            yield Issue(f'error parsing account server url: parse "{url}": {error}')
    for url in operator.operator_service_urls:
        problem = service_url_problem(url)
        if problem:
            yield Issue(problem)
    for key in operator.signing_keys:
        if kind_of(key) is not KeyKind.OPERATOR:
            yield Issue(f"{key} is not an operator public key")
    if operator.system_account and kind_of(operator.system_account) is not KeyKind.ACCOUNT:
        yield Issue(f"{operator.system_account} is not an account public key")
    problem = _version_problem(operator.assert_server_version)
    if problem:
        yield Issue(f"assert server version error: {problem}")


def service_url_problem(url: str) -> str:
    """Why an operator cannot name this URL; empty if it can."""
    if not url:
        return ""
    named = f'operator service url "{url}"'
    try:
        parsed = parse_url(url)
    except UrlProblem as error:
        return f'error parsing {named}: parse "{url}": {error}'
    if parsed.user is not None:
        return f"{named} - credentials are not supported"
    if parsed.path:
        return f"{named} - paths are not supported"
    if parsed.scheme not in ("nats", "tls", "ws", "wss"):
        return f"{named} - protocol not supported (only 'nats', 'tls', 'ws', 'wss' only)"
    return ""


def _version_problem(version: str) -> str:
    parts = version.split(".")
    if not version:
        return ""
    if len(parts) != 3:
        return "asserted server version must be of the form <major>.<minor>.<update>"
    for part in parts:
        if not (part.isascii() and part.lstrip("-").isdigit()):
            return f"asserted server version cant parse {part} to int"
    if any(part.startswith("-") for part in parts):
        return f"asserted server version can'b contain negative values: {version}"
    return ""


def _account(account: Account, head: Head) -> Iterator[Issue]:
    yield from imports_issues(account.imports, head.sub)
    yield from exports_issues(account.exports)
    yield from _limits(account.limits)
    yield from permissions_issues(account.default_permissions)
    for source, targets in account.mappings.items():
        yield from mapping_issues(source, targets)
    yield from _authorization(account.authorization)
    yield from _trace(account)
    yield from _counts(account)
    for key in account.scopes:
        if kind_of(key) is not KeyKind.ACCOUNT:
            scoped = account.scopes[key] is not None
            text = f"{key} is not an account public key"
            yield Issue(text if scoped else f'"{key}" is not a valid account signing key')
    yield from info_issues(account.info.description, account.info.info_url)
    if account.cluster_traffic not in ("", "system", "owner"):
        yield Issue(f'unknown cluster traffic option: "{account.cluster_traffic}"')


def _trace(account: Account) -> Iterator[Issue]:
    trace = account.trace
    if trace is None:
        return
    problems = list(subject_issues(trace.dest))
    if problems:
        yield Issue(f"the account Trace.Destination {problems[0].text}")
    if has_wildcards(trace.dest):
        yield Issue(
            f'the account Trace.Destination subject "{trace.dest}" is not a valid publish subject'
        )
    if not 0 <= trace.sampling <= 100:
        yield Issue(
            f"the account Trace.Sampling value '{trace.sampling}' is not valid, "
            "should be in the range [1..100]"
        )


def _counts(account: Account) -> Iterator[Issue]:
    limits: AccountLimits = account.limits.account
    too_many = "the account contains more imports than allowed by the operator"
    limited = account.limits != OperatorLimits() and limits.imports >= 0
    if limited and len(account.imports) > limits.imports:
        yield Issue(too_many)
    if limits.imports != NO_LIMIT and len(account.imports) > limits.imports:
        yield Issue(too_many)
    if limits.exports == NO_LIMIT:
        return
    if len(account.exports) > limits.exports:
        yield Issue("the account contains more exports than allowed by the operator")
    if not limits.wildcards and any(has_wildcards(one.subject) for one in account.exports):
        yield Issue("the account contains wildcard exports that are not allowed by the operator")


def _limits(limits: OperatorLimits) -> Iterator[Issue]:
    if limits.tiered_limits:
        if limits.jetstream != JetStreamLimits():
            yield Issue("JetStream Limits and tiered JetStream Limits are mutually exclusive")
        if "" in limits.tiered_limits:
            yield Issue('Tiered JetStream Limits can not contain a blank "" tier name')


def _authorization(asked: Authorization) -> Iterator[Issue]:
    if asked.allowed_accounts and not asked.auth_users:
        yield Issue("External authorization cannot have accounts without users specified")
    for user in asked.auth_users:
        if kind_of(user) is not KeyKind.USER:
            yield Issue(f'AuthUser "{user}" is not a valid user public key')
    for account in asked.allowed_accounts:
        if account == "*" and len(asked.allowed_accounts) > 1:
            yield Issue('AllowedAccounts can only be a list of accounts or "*"')
        elif account != "*" and kind_of(account) is not KeyKind.ACCOUNT:
            yield Issue(f'Account "{account}" is not a valid account public key')
    if asked.xkey and kind_of(asked.xkey) is not KeyKind.CURVE:
        yield Issue(f'XKey "{asked.xkey}" is not a valid public xkey')


def _user(user: User) -> Iterator[Issue]:
    yield from rules_issues(user.rules)
    if user.issuer_account and kind_of(user.issuer_account) is not KeyKind.ACCOUNT:
        yield Issue("account_id is not an account public key")


def _authorization_request(request: AuthorizationRequest) -> Iterator[Issue]:
    if not request.user_nkey:
        yield Issue("User nkey is required")
    elif kind_of(request.user_nkey) is not KeyKind.USER:
        yield Issue(f'User nkey "{request.user_nkey}" is not a valid user public key')


def _authorization_response(answer: AuthorizationResponse, head: Head) -> Iterator[Issue]:
    if kind_of(head.sub) is not KeyKind.USER:
        yield Issue("Subject must be a user public key")
    if kind_of(head.aud) is not KeyKind.SERVER:
        yield Issue("Audience must be a server public key")
    if not answer.error and not answer.jwt:
        yield Issue("Error or Jwt is required")
    if answer.error and answer.jwt:
        yield Issue("Only Error or Jwt can be set")
    if answer.issuer_account and kind_of(answer.issuer_account) is not KeyKind.ACCOUNT:
        yield Issue("issuer_account is not an account public key")
