"""Servers: the header of `$SYS` answers and their running totals."""

from jsctl.api.errors import ApiErrorBody
from jsctl.api.fields import (
    ZERO_TIME,
    Int64,
    Json,
    Nanos,
    Time,
    Uint64,
    mapping,
    omit,
    struct,
    unknown,
)
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerID:
    """What `IDZ` answers."""

    name: str = ""
    host: str = ""
    id: str = ""
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """The server that answers or reports; `flags` bits: 1 JetStream, 2 snapshots, 4 NRG."""

    name: str = ""
    host: str = ""
    id: str = ""
    cluster: str = omit("")
    domain: str = omit("")
    ver: str = ""
    tags: tuple[str, ...] = omit(())
    metadata: dict[str, str] = mapping()
    feature_flags: dict[str, bool] = mapping()
    jetstream: bool = False
    flags: int = 0
    seq: Uint64 = 0
    time: Time = ZERO_TIME
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientInfo:
    """A client as events and assignments name it."""

    start: Time = omit("")
    host: str = omit("")
    id: Uint64 = omit(0)
    acc: str = omit("")
    svc: str = omit("")
    user: str = omit("")
    name: str = omit("")
    lang: str = omit("")
    ver: str = omit("")
    rtt: Nanos = omit(0)
    server: str = omit("")
    cluster: str = omit("")
    alts: tuple[str, ...] = omit(())
    stop: Time = omit("")
    jwt: str = omit("")
    issuer_key: str = omit("")
    name_tag: str = omit("")
    tags: tuple[str, ...] = omit(())
    kind: str = omit("")
    client_type: str = omit("")
    client_id: str = omit("")
    nonce: str = omit("")
    reply: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class MsgBytes:
    """A count and its bytes."""

    msgs: Int64 = 0
    bytes: Int64 = 0
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class DataStats:
    """Traffic, and how much of it was not to clients."""

    msgs: Int64 = 0
    bytes: Int64 = 0
    gateways: MsgBytes | None = omit(None)
    routes: MsgBytes | None = omit(None)
    leafs: MsgBytes | None = omit(None)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowConsumersStats:
    """Connections closed for not reading."""

    clients: Uint64 = 0
    routes: Uint64 = 0
    gateways: Uint64 = 0
    leafs: Uint64 = 0
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleConnectionStats:
    """Connections closed for not answering pings."""

    clients: Uint64 = 0
    routes: Uint64 = 0
    gateways: Uint64 = 0
    leafs: Uint64 = 0
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteStat:
    """Traffic of one route."""

    rid: Uint64 = 0
    name: str = omit("")
    sent: DataStats = struct(DataStats)
    received: DataStats = struct(DataStats)
    pending: int = 0
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayStat:
    """Traffic of one gateway."""

    gwid: Uint64 = 0
    name: str = ""
    sent: DataStats = struct(DataStats)
    received: DataStats = struct(DataStats)
    inbound_connections: int = 0
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilterOptions:
    """Which servers should answer; joined into every request."""

    server_name: str = omit("")
    cluster: str = omit("")
    host: str = omit("")
    exact_match: bool = omit(False)
    tags: tuple[str, ...] = omit(())
    domain: str = omit("")


@dataclass(frozen=True, slots=True, kw_only=True)
class KickClientReq:
    """`KICK`."""

    cid: Uint64 = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReply:
    """The envelope of every `$SYS.REQ.SERVER` answer; `data` as the request's kind says.

    `STATSZ` and the plain `PING` put their content into `statsz` instead.
    """

    server: ServerInfo = struct(ServerInfo)
    data: Json = omit(None)
    statsz: Json = omit(None)
    error: ApiErrorBody | None = omit(None)
    extra: dict[str, Json] = unknown()
