"""Who a client is in operator mode: a JWT that its account has signed, and a seed it belongs to.

Loaded with the first login there; see `lazy`.
"""

import ipaddress

from jsctl.auth.claims import User
from jsctl.auth.token import Claims
from jsctl.broker import nkey
from jsctl.broker.accounts.accounts import Account, Logins
from jsctl.broker.accounts.identity import (
    ClientIdentity,
    Credentials,
    Surroundings,
    Vouched,
    is_signed,
)
from jsctl.broker.claims.hours import HoursUnknown, open_for_ns
from jsctl.broker.claims.rules import BadTemplate, Subject, filled_in, user_rules
from jsctl.broker.claims.verifying import NotBelieved as NotBelieved
from jsctl.broker.claims.verifying import is_of_user
from jsctl.broker.claims.verifying import user as read_user
from jsctl.broker.login_options.operators import NO_LIMIT, AccountClaims, SigningKey, UserRules

SECOND_NS = 1_000_000_000
EVERYBODY = "*"
MAPPED_BITS = 96
"""In front of an IPv4 address that is written as one of IPv6."""


class Revoked(NotBelieved):
    """The JWT was issued before it was revoked."""


class NotPinned(NotBelieved):
    """The account is not one of those that alone may be logged in to."""


class BearerRefused(NotBelieved):
    """The account does not allow that the JWT alone is enough."""


def identify(
    logins: Logins, given: Credentials, challenge: bytes, seen: Surroundings, connection_type: str
) -> ClientIdentity:
    """The user of a JWT. Raises NotBelieved."""
    operator = logins.operator
    assert operator is not None
    token = given.jwt
    if operator.sentinel and not is_of_user(token):
        token = operator.sentinel
    if not token:
        raise NotBelieved("authentication requires a user JWT")
    user = read_user(token, seen.now_ns // SECOND_NS)
    account, claims = _account_of(logins, user)
    key = _key(user, claims)
    rules = _rules(user, account, claims, key)
    if claims.expires_s and claims.expires_s * SECOND_NS <= seen.now_ns:
        raise NotBelieved("account JWT has expired")
    if claims.callout_users and user.head.sub not in claims.callout_users:
        raise NotBelieved("its account has others asked, and callouts are not supported")
    if rules.bearer and claims.no_bearer:
        raise BearerRefused("account does not allow bearer tokens")
    if rules.proxy_required:
        raise NotBelieved("proxy connection required")
    if rules.connection_types and connection_type not in rules.connection_types:
        raise NotBelieved("connection type not allowed")
    if not rules.bearer:
        _check_signature(user, given, challenge)
    if is_revoked(claims, user.head.sub, user.head.iat):
        raise Revoked("user authentication revoked")
    left_ns = _admitted(rules, seen)
    default = account.options.default_permissions
    return ClientIdentity(
        account,
        user.head.sub,
        rules.permissions or default,
        proof=token.encode(),
        vouched=Vouched(
            token=token,
            issuer=user.head.iss,
            role=key.role,
            name=user.head.name,
            tags=user.nats.generic.tags,
            subscriptions_max=_least(rules.subscriptions_max, account.limits.subscriptions_max),
            payload_bytes_max=_least(rules.payload_bytes_max, claims.payload_bytes_max),
            expires_ns=_soonest(user.head.exp * SECOND_NS, seen.now_ns + left_ns if left_ns else 0),
            account_expires_ns=claims.expires_s * SECOND_NS,
            bearer=rules.bearer,
        ),
    )


def _account_of(logins: Logins, user: Claims[User]) -> tuple[Account, AccountClaims]:
    assert logins.operator is not None
    name = user.nats.issuer_account or user.head.iss
    pinned = logins.operator.resolver.pinned
    if pinned and name not in pinned:
        raise NotPinned(f"account {name} is not one of resolver_pinned_accounts")
    account = logins.by_key.get(name)
    claims = account.options.claims if account is not None else None
    if account is None or claims is None:
        raise NotBelieved(f"account {name} is not known")
    return account, claims


def _key(user: Claims[User], claims: AccountClaims) -> SigningKey:
    """The key of its account that has signed a user."""
    key = next((one for one in claims.signing_keys if one.key == user.head.iss), None)
    if key is None:
        raise NotBelieved("user JWT issuer is not known")
    return key


def _rules(
    user: Claims[User], account: Account, claims: AccountClaims, key: SigningKey
) -> UserRules:
    """What counts for a user: what it says, or what the key that has signed it says of all."""
    if key.role is None:
        return user_rules(user.nats.rules)
    if not user.nats.empty:
        raise NotBelieved("scoped users require no permissions or limits set")
    tags = user.nats.generic.tags
    subject = Subject(user.head.name, user.head.sub, tags, account.name, claims.name, claims.tags)
    try:
        return filled_in(key.role, subject)
    except BadTemplate as error:
        raise NotBelieved(f"user JWT generated invalid permissions: {error}") from None


def _check_signature(user: Claims[User], given: Credentials, challenge: bytes) -> None:
    public = nkey.decode(user.head.sub, nkey.KeyKind.USER)
    if public is None or not is_signed(public, given.signature, challenge):
        raise NotBelieved("signature not verified")


def is_revoked(claims: AccountClaims, user: str, issued_s: int) -> bool:
    """Whether an account has taken back a JWT of one of its users."""
    return any(issued_s <= until for key, until in claims.revoked if key in (user, EVERYBODY))


def _admitted(rules: UserRules, seen: Surroundings) -> int:
    """How long it may stay, 0: as long as it likes. Raises NotBelieved where, or when, it may not
    come from."""
    if rules.sources and not _comes_from(rules.sources, seen.host):
        raise NotBelieved(f"bad src ip {seen.host}")
    if not rules.hours:
        return 0
    try:
        left_ns = open_for_ns(rules.hours, rules.zone, seen.now_ns)
    except HoursUnknown as error:
        raise NotBelieved(str(error)) from None
    if left_ns <= 0:
        raise NotBelieved("outside connect times")
    return left_ns


def _comes_from(networks: tuple[str, ...], host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in _network(one) for one in networks)


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """A network as CIDR; one of IPv4 that is written as IPv6 is that of IPv4."""
    network = ipaddress.ip_network(text, strict=False)
    if isinstance(network, ipaddress.IPv6Network) and network.prefixlen >= MAPPED_BITS:
        plain = network.network_address.ipv4_mapped
        if plain is not None:
            return ipaddress.IPv4Network((plain, network.prefixlen - MAPPED_BITS))
    return network


def _least(*limits: int) -> int:
    """The lowest of limits of which some are none; a negative one is 0, not none."""
    return min((max(one, 0) for one in limits if one != NO_LIMIT), default=NO_LIMIT)


def _soonest(*times_ns: int) -> int:
    return min((one for one in times_ns if one), default=0)
