"""Health, raft groups and queues of a server."""

from jsctl.api.fields import Json, Time, Uint64, mapping, omit, struct, unknown
from jsctl.api.stream import StreamState
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthzOptions:
    """What a `HEALTHZ` request asks for."""

    js_enabled: bool = omit(False, key="js-enabled")
    js_enabled_only: bool = omit(False, key="js-enabled-only")
    js_server_only: bool = omit(False, key="js-server-only")
    js_meta_only: bool = omit(False, key="js-meta-only")
    account: str = omit("")
    stream: str = omit("")
    consumer: str = omit("")
    details: bool = omit(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthzError:
    """One thing that is wrong."""

    type: str = ""
    account: str = omit("")
    stream: str = omit("")
    consumer: str = omit("")
    error: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Healthz:
    """What `HEALTHZ` answers."""

    status: str = ""
    status_code: int = omit(0)
    error: str = omit("")
    errors: tuple[HealthzError, ...] = omit(())
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftzOptions:
    """What a `RAFTZ` request asks for."""

    account: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftzGroupPeer:
    """A member of a raft group."""

    name: str = ""
    known: bool = False
    last_replicated_index: Uint64 = omit(0)
    last_seen: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftzGroup:
    """A raft group as this server sees it."""

    id: str = ""
    state: str = ""
    size: int = 0
    quorum_needed: int = 0
    observer: bool = omit(False)
    paused: bool = omit(False)
    overrun: bool = omit(False)
    overrun_count: Uint64 = omit(0)
    committed: Uint64 = 0
    applied: Uint64 = 0
    catching_up: bool = omit(False)
    leader: str = omit("")
    leader_since: Time = omit("")
    ever_had_leader: bool = False
    term: Uint64 = 0
    voted_for: str = omit("")
    pterm: Uint64 = 0
    pindex: Uint64 = 0
    system_account: bool = False
    traffic_account: str = ""
    ipq_proposal_len: int = 0
    ipq_entry_len: int = 0
    ipq_resp_len: int = 0
    ipq_apply_len: int = 0
    wal: StreamState = struct(StreamState)
    wal_error: str = omit("")
    peers: dict[str, RaftzGroupPeer] = mapping(always=True)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class IpqueueszOptions:
    """What an `IPQUEUESZ` request asks for."""

    all: bool = False
    filter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilezOptions:
    """What a `PROFILEZ` request asks for."""

    name: str = ""
    debug: int = 0
    duration: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IpqueueszStatusIPQ:
    """One internal queue."""

    pending: int = 0
    in_progress: int = omit(0)
    extra: dict[str, Json] = unknown()
