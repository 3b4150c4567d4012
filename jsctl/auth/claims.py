"""What JWTs say, as plain data: the claims of the second version, in the order they are written.

Fields are in the order and with the omissions of the reference implementation, because a
signature is over bytes. Keys of newer versions are kept.
"""

from enum import Enum
from typing import TypeAlias

from jsctl.api.codec import decode
from jsctl.api.fields import Json, Nanos, always, embed, mapping, omit, struct, unknown
from jsctl.dataclass import dataclass

NO_LIMIT = -1
WEIGHT_MAX = 100
JWT_VERSION = 2


class ClaimType(Enum):
    """What kind of claims a JWT has."""

    OPERATOR = "operator"
    ACCOUNT = "account"
    USER = "user"
    ACTIVATION = "activation"
    AUTHORIZATION_REQUEST = "authorization_request"
    AUTHORIZATION_RESPONSE = "authorization_response"


@dataclass(frozen=True, slots=True)
class Permission:
    """Subjects that are allowed and denied."""

    allow: tuple[str, ...] = omit(())
    deny: tuple[str, ...] = omit(())


@dataclass(frozen=True, slots=True)
class ResponsePermission:
    """How many answers may go to a reply subject, and for how long."""

    max: int = 0
    ttl: Nanos = 0


@dataclass(frozen=True, slots=True)
class Permissions:
    """What may be published and subscribed."""

    pub: Permission = struct(Permission)
    sub: Permission = struct(Permission)
    resp: ResponsePermission | None = omit(None)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Hours of the day, `15:04:05`."""

    start: str = omit("")
    end: str = omit("")


@dataclass(frozen=True, slots=True)
class UserLimits:
    """Where a user may connect from, and when."""

    src: tuple[str, ...] = omit(())
    times: tuple[TimeRange, ...] = omit(())
    times_location: str = omit("")


@dataclass(frozen=True, slots=True)
class NatsLimits:
    """Limits of a connection or account; -1 is no limit."""

    subs: int = omit(0)
    data: int = omit(0)
    payload: int = omit(0)


UNLIMITED = NatsLimits(NO_LIMIT, NO_LIMIT, NO_LIMIT)


@dataclass(frozen=True, slots=True)
class UserPermissionLimits:
    """What a user may do; also the template of a scoped signing key."""

    permissions: Permissions = embed(Permissions)
    limits: UserLimits = embed(UserLimits)
    nats: NatsLimits = embed(NatsLimits)
    bearer_token: bool = omit(False)
    proxy_required: bool = omit(False)
    allowed_connection_types: tuple[str, ...] = omit(())


@dataclass(frozen=True, slots=True)
class Generic:
    """What every kind of claims has."""

    tags: tuple[str, ...] = omit(())
    type_: str = omit("", key="type")
    version: int = omit(0)


@dataclass(frozen=True, slots=True)
class User:
    """The claims of a user; `issuer_account` is set when a signing key issued it."""

    rules: UserPermissionLimits = embed(UserPermissionLimits)
    issuer_account: str = omit("")
    generic: Generic = embed(Generic)
    rest: dict[str, Json] = unknown()

    @property
    def empty(self) -> bool:
        """Whether it says nothing of its own, as users of scoped signing keys must."""
        return self.rules == UserPermissionLimits()


@dataclass(frozen=True, slots=True)
class Operator:
    """The claims of an operator."""

    signing_keys: tuple[str, ...] = omit(())
    account_server_url: str = omit("")
    operator_service_urls: tuple[str, ...] = omit(())
    system_account: str = omit("")
    assert_server_version: str = omit("")
    strict_signing_key_usage: bool = omit(False)
    generic: Generic = embed(Generic)
    rest: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True)
class Info:
    """Words for people."""

    description: str = omit("")
    info_url: str = omit("")


@dataclass(frozen=True, slots=True)
class ServiceLatency:
    """Where measurements of a service go; `sampling` is a percentage or `headers`."""

    sampling: Json = always(None)
    results: str = always("")


@dataclass(frozen=True, slots=True)
class Export:
    """What other accounts may take."""

    name: str = omit("")
    subject: str = omit("")
    type_: str = omit("", key="type")
    token_req: bool = omit(False)
    revocations: dict[str, int] = mapping()
    response_type: str = omit("")
    response_threshold: Nanos = omit(0)
    service_latency: ServiceLatency | None = omit(None)
    account_token_position: int = omit(0)
    advertise: bool = omit(False)
    allow_trace: bool = omit(False)
    info: Info = embed(Info)
    rest: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True)
class Import:
    """What is taken from another account."""

    name: str = omit("")
    subject: str = omit("")
    account: str = omit("")
    token: str = omit("")
    to: str = omit("")
    local_subject: str = omit("")
    type_: str = omit("", key="type")
    share: bool = omit(False)
    allow_trace: bool = omit(False)
    rest: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True)
class AccountLimits:
    """Limits that only an account has."""

    imports: int = omit(0)
    exports: int = omit(0)
    wildcards: bool = omit(False)
    disallow_bearer: bool = omit(False)
    conn: int = omit(0)
    leaf: int = omit(0)


@dataclass(frozen=True, slots=True)
class JetStreamLimits:
    """Of an account or one of its tiers; storage of 0 is none, -1 no limit."""

    mem_storage: int = omit(0)
    disk_storage: int = omit(0)
    streams: int = omit(0)
    consumer: int = omit(0)
    max_ack_pending: int = omit(0)
    mem_max_stream_bytes: int = omit(0)
    disk_max_stream_bytes: int = omit(0)
    max_bytes_required: bool = omit(False)

    @property
    def unlimited(self) -> bool:
        """Whether nothing is limited."""
        optional = (self.max_ack_pending, self.mem_max_stream_bytes, self.disk_max_stream_bytes)
        fixed = (self.mem_storage, self.disk_storage, self.streams, self.consumer)
        return (
            all(limit == NO_LIMIT for limit in fixed)
            and all(limit <= 0 for limit in optional)
            and not self.max_bytes_required
        )


@dataclass(frozen=True, slots=True)
class OperatorLimits:
    """Everything an operator limits an account to."""

    nats: NatsLimits = embed(NatsLimits)
    account: AccountLimits = embed(AccountLimits)
    jetstream: JetStreamLimits = embed(JetStreamLimits)
    tiered_limits: dict[str, JetStreamLimits] = mapping()

    @property
    def jetstream_enabled(self) -> bool:
        """Whether the account may store anything."""
        parts = list(self.tiered_limits.values()) or [self.jetstream]
        return any(part.mem_storage or part.disk_storage for part in parts)


@dataclass(frozen=True, slots=True)
class WeightedMapping:
    """Where a part of a subject's messages goes; a weight of 0 is all of them."""

    subject: str = always("")
    weight: int = omit(0)
    cluster: str = omit("")

    @property
    def percent(self) -> int:
        """The weight that is meant."""
        return self.weight or WEIGHT_MAX


@dataclass(frozen=True, slots=True)
class Authorization:
    """Who is asked about users that connect."""

    auth_users: tuple[str, ...] = omit(())
    allowed_accounts: tuple[str, ...] = omit(())
    xkey: str = omit("")


@dataclass(frozen=True, slots=True)
class MsgTrace:
    """Where traces go, and of how many messages in a hundred."""

    dest: str = omit("")
    sampling: int = omit(0)


@dataclass(frozen=True, slots=True)
class UserScope:
    """A signing key whose users all have the same rules."""

    kind: str = always("user_scope")
    key: str = always("")
    role: str = always("")
    template: UserPermissionLimits = struct(UserPermissionLimits)
    description: str = always("")


SigningKey: TypeAlias = str | dict[str, object]
"""A bare key, or a scope as a document: both stand in one list."""


@dataclass(frozen=True, slots=True)
class Account:
    """The claims of an account."""

    imports: tuple[Import, ...] = omit(())
    exports: tuple[Export, ...] = omit(())
    limits: OperatorLimits = struct(OperatorLimits)
    signing_keys: tuple[Json, ...] = omit(())
    revocations: dict[str, int] = mapping()
    default_permissions: Permissions = struct(Permissions)
    mappings: dict[str, tuple[WeightedMapping, ...]] = mapping()
    authorization: Authorization = struct(Authorization)
    trace: MsgTrace | None = omit(None)
    cluster_traffic: str = omit("")
    info: Info = embed(Info)
    generic: Generic = embed(Generic)
    rest: dict[str, Json] = unknown()

    @property
    def scopes(self) -> dict[str, UserScope | None]:
        """Signing keys, sorted; without a scope the key may sign anything."""
        found: dict[str, UserScope | None] = {}
        for one in self.signing_keys:
            if isinstance(one, dict):
                scope = scope_of(one)
                found[scope.key] = scope
            else:
                found[str(one)] = None
        return dict(sorted(found.items()))


def scope_of(document: dict[str, object]) -> UserScope:
    """A scope; limits that it does not name are none. Raises DecodeError."""
    given = document.get("template")
    template = given if isinstance(given, dict) else {}
    unlimited = {"subs": NO_LIMIT, "data": NO_LIMIT, "payload": NO_LIMIT}
    return decode(UserScope, {**document, "template": {**unlimited, **template}})


@dataclass(frozen=True, slots=True)
class Activation:
    """What lets an account import what needs a token."""

    subject: str = omit("")
    kind: str = omit("")
    issuer_account: str = omit("")
    generic: Generic = embed(Generic)
    rest: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True)
class ServerId:
    """The server that asks about a client."""

    name: str = always("")
    host: str = always("")
    id: str = always("")
    version: str = omit("")
    cluster: str = omit("")
    tags: tuple[str, ...] = omit(())
    xkey: str = omit("")


@dataclass(frozen=True, slots=True)
class ClientInformation:
    """The client that is asked about."""

    host: str = omit("")
    id: int = omit(0)
    user: str = omit("")
    name: str = omit("")
    tags: tuple[str, ...] = omit(())
    name_tag: str = omit("")
    kind: str = omit("")
    type_: str = omit("", key="type")
    mqtt_id: str = omit("")
    nonce: str = omit("")


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """What the client sent."""

    jwt: str = omit("")
    nkey: str = omit("")
    sig: str = omit("")
    auth_token: str = omit("")
    user: str = omit("")
    pass_: str = omit("", key="pass")
    name: str = omit("")
    lang: str = omit("")
    version: str = omit("")
    protocol: int = always(0)


@dataclass(frozen=True, slots=True)
class ClientTls:
    """How the client's connection is encrypted."""

    version: str = omit("")
    cipher: str = omit("")
    certs: tuple[str, ...] = omit(())
    verified_chains: tuple[tuple[str, ...], ...] = omit(())


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """A server's question about a client."""

    server_id: ServerId = struct(ServerId)
    user_nkey: str = always("")
    client_info: ClientInformation = struct(ClientInformation)
    connect_opts: ConnectOptions = struct(ConnectOptions)
    client_tls: ClientTls | None = omit(None)
    request_nonce: str = omit("")
    generic: Generic = embed(Generic)
    rest: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True)
class AuthorizationResponse:
    """The answer to it."""

    jwt: str = omit("")
    error: str = omit("")
    issuer_account: str = omit("")
    generic: Generic = embed(Generic)
    rest: dict[str, Json] = unknown()


Body = Operator | Account | User | Activation | AuthorizationRequest | AuthorizationResponse
BODIES: dict[str, type[Body]] = {
    ClaimType.OPERATOR.value: Operator,
    ClaimType.ACCOUNT.value: Account,
    ClaimType.USER.value: User,
    ClaimType.ACTIVATION.value: Activation,
    ClaimType.AUTHORIZATION_REQUEST.value: AuthorizationRequest,
    ClaimType.AUTHORIZATION_RESPONSE.value: AuthorizationResponse,
}


@dataclass(frozen=True, slots=True)
class Head:
    """Who says something of whom, and for how long. Times are seconds of the Unix epoch."""

    aud: str = omit("")
    exp: int = omit(0)
    jti: str = omit("")
    iat: int = omit(0)
    iss: str = omit("")
    name: str = omit("")
    nbf: int = omit(0)
    sub: str = omit("")
