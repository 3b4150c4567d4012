"""Accounts of a server, and who a user is."""

from jsctl.api.fields import (
    ZERO_TIME,
    Int64,
    Json,
    Nanos,
    Time,
    Uint32,
    mapping,
    omit,
    struct,
    unknown,
)
from jsctl.api.monitoring.connz import SubjectPermission, SublistStats
from jsctl.api.server import DataStats
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountDetailz:
    """One account in detail."""

    account_name: str = ""
    update_time: Time = ZERO_TIME
    is_system: bool = omit(False)
    expired: bool = False
    complete: bool = False
    jetstream_enabled: bool = False
    leafnode_connections: int = 0
    client_connections: int = 0
    subscriptions: Uint32 = 0
    mappings: Json = omit(None)
    exports: tuple[Json, ...] = omit(())
    imports: tuple[Json, ...] = omit(())
    jwt: str = omit("")
    issuer_key: str = omit("")
    name_tag: str = omit("")
    tags: tuple[str, ...] = omit(())
    decoded_jwt: Json = omit(None)
    validation_result_jwt: tuple[Json, ...] = omit(())
    revoked_user: dict[str, Time] = mapping()
    sublist_stats: SublistStats | None = omit(None)
    responses: dict[str, Json] = mapping()
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Accountz:
    """What `ACCOUNTZ` answers."""

    server_id: str = ""
    now: Time = ZERO_TIME
    system_account: str = omit("")
    accounts: tuple[str, ...] = omit(())
    account_detail: AccountDetailz | None = omit(None)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountzOptions:
    """What an `ACCOUNTZ` request asks for."""

    account: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStat:
    """Traffic of an account on one server."""

    acc: str = ""
    name: str = ""
    conns: int = 0
    leafnodes: int = 0
    total_conns: int = 0
    num_subscriptions: Uint32 = 0
    sent: DataStats = struct(DataStats)
    received: DataStats = struct(DataStats)
    slow_consumers: Int64 = 0
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStatz:
    """What `ACCSTATZ` answers."""

    server_id: str = ""
    now: Time = ZERO_TIME
    account_statz: tuple[AccountStat, ...] = ()
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStatzOptions:
    """What an `ACCSTATZ` request asks for."""

    accounts: tuple[str, ...] = ()
    include_unused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsePermission:
    """How often and how long a replier may answer."""

    max: int = 0
    ttl: Nanos = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """What a user may publish and subscribe."""

    publish: SubjectPermission | None = None
    subscribe: SubjectPermission | None = None
    responses: ResponsePermission | None = omit(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserInfo:
    """What `$SYS.REQ.USER.INFO` answers."""

    user: str = ""
    account: str = ""
    account_name: str = omit("")
    user_name: str = omit("")
    permissions: Permissions | None = omit(None)
    expires: Nanos = omit(0)
    extra: dict[str, Json] = unknown()
