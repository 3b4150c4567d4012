"""Answers of `$JS.API`: the type, then an error or the content."""

from jsctl.api.account import AccountInfo
from jsctl.api.consumer import ConsumerInfo
from jsctl.api.errors import ApiErrorBody
from jsctl.api.fields import (
    ZERO_TIME,
    Int64,
    Json,
    Nanos,
    Time,
    Uint64,
    embed,
    embed_maybe,
    mapping,
    omit,
    unknown,
)
from jsctl.api.stream import (
    PubAck,
    RawStreamMsg,
    SequenceRange,
    StreamCheck,
    StreamConfig,
    StreamInfo,
    StreamState,
)
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiResponse:
    """What every answer starts with."""

    type: str = ""
    error: ApiErrorBody | None = omit(None)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPaged:
    """Which page of how many items this is."""

    total: int = 0
    offset: int = 0
    limit: int = 0
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCreateResponse:
    """`STREAM.CREATE` and `UPDATE`."""

    head: ApiResponse = embed(ApiResponse)
    info: StreamInfo | None = embed_maybe(StreamInfo)
    did_create: bool = omit(False)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamInfoResponse:
    """`STREAM.INFO`; the page counts subjects."""

    head: ApiResponse = embed(ApiResponse)
    page: ApiPaged = embed(ApiPaged)
    info: StreamInfo | None = embed_maybe(StreamInfo)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessResponse:
    """Answers that say only whether it worked."""

    head: ApiResponse = embed(ApiResponse)
    success: bool = omit(False)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamNamesResponse:
    """`STREAM.NAMES`."""

    head: ApiResponse = embed(ApiResponse)
    page: ApiPaged = embed(ApiPaged)
    streams: tuple[str, ...] | None = None
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamListResponse:
    """`STREAM.LIST`; `missing` did not answer in time, `offline` cannot."""

    head: ApiResponse = embed(ApiResponse)
    page: ApiPaged = embed(ApiPaged)
    streams: tuple[StreamInfo, ...] | None = None
    missing: tuple[str, ...] = omit(())
    offline: dict[str, str] = mapping()
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPurgeResponse:
    """`STREAM.PURGE`."""

    head: ApiResponse = embed(ApiResponse)
    success: bool = omit(False)
    purged: Uint64 = 0
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCheckResponse:
    """`STREAM.CHECK`. Without a `check` there was none yet."""

    head: ApiResponse = embed(ApiResponse)
    check: StreamCheck | None = omit(None)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleInfo:
    """A message that is a schedule, and when it is due next."""

    seq: Uint64 = 0
    subject: str = ""
    due: Time = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingMessage:
    """A message that was delivered and is not acknowledged."""

    seq: Uint64 = 0
    deliveries: int = 0
    due: Time = omit("")
    """When it is delivered again: its ack wait is over then, or the delay of a negative
    acknowledgement. Left out where it waits for ever, or is `queued`."""
    nak: bool = omit(False)
    """`due` is the end of a delay that a negative acknowledgement asked for."""
    queued: bool = omit(False)
    """It is delivered again as soon as somebody takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSchedulesResponse:
    """`STREAM.SCHEDULES`; `total`: how many the stream has."""

    head: ApiResponse = embed(ApiResponse)
    total: int = 0
    limit: int = 0
    schedules: tuple[ScheduleInfo, ...] = ()
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerWaitingResponse:
    """`CONSUMER.WAITING`; `total`: how many wait."""

    head: ApiResponse = embed(ApiResponse)
    total: int = 0
    limit: int = 0
    messages: tuple[WaitingMessage, ...] = ()
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class MsgGetResponse:
    """`STREAM.MSG.GET`."""

    head: ApiResponse = embed(ApiResponse)
    message: RawStreamMsg | None = omit(None)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSnapshotResponse:
    """`STREAM.SNAPSHOT`."""

    head: ApiResponse = embed(ApiResponse)
    config: StreamConfig | None = omit(None)
    state: StreamState | None = omit(None)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRestoreResponse:
    """`STREAM.RESTORE`."""

    head: ApiResponse = embed(ApiResponse)
    deliver_subject: str = ""
    jsctl_whole: bool = omit(False)
    """A stream is made of a whole archive alone: nothing is left of one that breaks off."""
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaRescueResponse:
    """`META.RESCUE`."""

    head: ApiResponse = embed(ApiResponse)
    server: str = ""
    server_id: str = ""
    prev_quorum: int = omit(0)
    new_quorum: int = omit(0)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRescueResponse:
    """`STREAM.RESCUE`; each server with a replica answers for itself."""

    head: ApiResponse = embed(ApiResponse)
    server: str = ""
    prev_quorum: int = omit(0)
    new_quorum: int = omit(0)
    leader: str = omit("")
    whole: bool = omit(False)
    log_index: int = omit(0)
    messages: int = omit(0)
    last_seq: int = omit(0)
    lost: int = omit(0)
    peers: tuple[str, ...] = omit(())
    offline: tuple[str, ...] = omit(())
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPurgeResponse:
    """`ACCOUNT.PURGE`."""

    head: ApiResponse = embed(ApiResponse)
    initiated: bool = omit(False)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPauseResponse:
    """`CONSUMER.PAUSE`."""

    head: ApiResponse = embed(ApiResponse)
    paused: bool = False
    pause_until: Time = ZERO_TIME
    pause_remaining: Nanos = omit(0)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerNamesResponse:
    """`CONSUMER.NAMES`."""

    head: ApiResponse = embed(ApiResponse)
    page: ApiPaged = embed(ApiPaged)
    consumers: tuple[str, ...] | None = None
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerInfoResponse:
    """`CONSUMER.CREATE` and `INFO`."""

    head: ApiResponse = embed(ApiResponse)
    info: ConsumerInfo | None = embed_maybe(ConsumerInfo)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerListResponse:
    """`CONSUMER.LIST`."""

    head: ApiResponse = embed(ApiResponse)
    page: ApiPaged = embed(ApiPaged)
    consumers: tuple[ConsumerInfo, ...] | None = None
    missing: tuple[str, ...] = omit(())
    offline: dict[str, str] = mapping()
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerResetResponse:
    """`CONSUMER.RESET`."""

    head: ApiResponse = embed(ApiResponse)
    info: ConsumerInfo | None = embed_maybe(ConsumerInfo)
    reset_seq: Uint64 = 0
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class PubAckResponse:
    """The answer to a publish."""

    error: ApiErrorBody | None = omit(None)
    ack: PubAck | None = embed_maybe(PubAck)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountInfoResponse:
    """`INFO`."""

    head: ApiResponse = embed(ApiResponse)
    info: AccountInfo | None = embed_maybe(AccountInfo)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainBreak:
    """A message that does not fit into the chain."""

    seq: Uint64 = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainHead:
    """What a server says, and signs, of a stream's chain."""

    account: str = ""
    stream: str = ""
    since: Uint64 = 0
    """Messages up to here were stored before there was a chain."""
    seq: Uint64 = 0
    hash: str = ""
    """The link behind the message `seq`, in hex."""
    time: str = ""
    """When the server said so."""
    key: str = omit("")
    """Public nkey."""
    signature: str = omit("")
    """Of `text`, in base64 for URLs; left out by a server without a seed."""

    @property
    def text(self) -> bytes:
        """What is signed."""
        parts = "jsctl chain 1", self.account, self.stream, self.since, self.seq, self.hash
        return "\n".join(map(str, (*parts, self.time))).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamHeadResponse:
    """`STREAM.HEAD`."""

    head: ApiResponse = embed(ApiResponse)
    chain: ChainHead | None = omit(None)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaAudit:
    """The audit of one replica."""

    name: str = ""
    """The server."""
    state: str = ""
    messages: Int64 = 0
    """That were compared."""
    up_to: Uint64 = 0
    """The last sequence that was compared."""
    first: Uint64 = omit(0)
    """The first messages that are not the leader's."""
    last: Uint64 = omit(0)
    breaks: tuple[ChainBreak, ...] = omit(())
    """The first messages that do not fit into the chain."""
    damaged: tuple[SequenceRange, ...] = omit(())
    """Could not be compared: they cannot be read there, or at the leader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAudit:
    """What the leader found out about all of them."""

    id: Uint64 = 0
    started: str = ""
    done: bool = False
    entry: Uint64 = 0
    """The entry of the stream's log that all of them had to have applied."""
    first_seq: Uint64 = 0
    """What lies before it was not compared: chains let go of hashes of very many messages."""
    last_seq: Uint64 = 0
    replicas: tuple[ReplicaAudit, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether all replicas were compared, and have the same messages."""
        return self.done and all(one.state in ("same", "leader") for one in self.replicas)

    @property
    def is_proved(self) -> bool:
        """Whether the messages of all replicas fit into the chain."""
        return self.done and all(one.state == "proved" for one in self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAuditResponse:
    """`STREAM.AUDIT` and `STREAM.VERIFY`. Without an `audit` there was none yet."""

    head: ApiResponse = embed(ApiResponse)
    audit: StreamAudit | None = omit(None)
    extra: dict[str, Json] = unknown()
