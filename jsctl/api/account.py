"""JetStream limits and use of an account."""

from jsctl.api.fields import Int64, Json, Uint64, mapping, omit, struct, unknown
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountLimits:
    """Limits; -1 means unlimited."""

    max_memory: Int64 = 0
    max_storage: Int64 = 0
    max_streams: int = 0
    max_consumers: int = 0
    max_ack_pending: int = 0
    memory_max_stream_bytes: Int64 = 0
    storage_max_stream_bytes: Int64 = 0
    max_bytes_required: bool = False
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountTier:
    """Use and limits of one replication tier."""

    memory: Uint64 = 0
    storage: Uint64 = 0
    reserved_memory: Uint64 = 0
    reserved_storage: Uint64 = 0
    streams: int = 0
    consumers: int = 0
    limits: AccountLimits = struct(AccountLimits)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiStats:
    """Requests served."""

    level: int = 0
    total: Uint64 = 0
    errors: Uint64 = 0
    inflight: Uint64 = omit(0)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountInfo:
    """What `$JS.API.INFO` answers."""

    memory: Uint64 = 0
    storage: Uint64 = 0
    reserved_memory: Uint64 = 0
    reserved_storage: Uint64 = 0
    streams: int = 0
    consumers: int = 0
    limits: AccountLimits = struct(AccountLimits)
    domain: str = omit("")
    api: ApiStats = struct(ApiStats)
    tiers: dict[str, AccountTier] = mapping()
    extra: dict[str, Json] = unknown()
