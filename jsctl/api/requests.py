"""Bodies of `$JS.API` requests; see `responses` for the answers, `pull` for pulls."""

from typing import ClassVar

from jsctl.api.cluster import Placement
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.fields import ZERO_TIME, Time, Uint64, embed, omit, struct
from jsctl.api.stream import StreamConfig, StreamState
from jsctl.api.words import ConsumerAction
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamConfigRequest:
    """`STREAM.CREATE` and `STREAM.UPDATE`."""

    GO_NAME: ClassVar[str] = "StreamConfigRequest"

    config: StreamConfig = embed(StreamConfig)
    pedantic: bool = omit(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPagedRequest:
    """A request for a page."""

    GO_NAME: ClassVar[str] = "ApiPagedRequest"

    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamInfoRequest:
    """`STREAM.INFO`; subjects come in pages."""

    GO_NAME: ClassVar[str] = "JSApiStreamInfoRequest"

    page: ApiPagedRequest = embed(ApiPagedRequest)
    deleted_details: bool = omit(False)
    subjects_filter: str = omit("")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamNamesRequest:
    """`STREAM.NAMES`."""

    GO_NAME: ClassVar[str] = "JSApiStreamNamesRequest"

    page: ApiPagedRequest = embed(ApiPagedRequest)
    subject: str = omit("")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamListRequest:
    """`STREAM.LIST`."""

    GO_NAME: ClassVar[str] = "JSApiStreamListRequest"

    page: ApiPagedRequest = embed(ApiPagedRequest)
    subject: str = omit("")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumersRequest:
    """`CONSUMER.NAMES` and `CONSUMER.LIST`."""

    GO_NAME: ClassVar[str] = "JSApiConsumersRequest"

    page: ApiPagedRequest = embed(ApiPagedRequest)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPurgeRequest:
    """`STREAM.PURGE`; `seq` and `keep` exclude each other."""

    GO_NAME: ClassVar[str] = "JSApiStreamPurgeRequest"

    seq: Uint64 = omit(0)
    filter: str = omit("")
    keep: Uint64 = omit(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCheckRequest:
    """Asks how far a check is; `start` begins one, unless one is going on."""

    GO_NAME: ClassVar[str] = "StreamCheckRequest"

    start: bool = omit(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamHeadRequest:
    """Asks for the chain's hash behind a message; 0: the last one."""

    GO_NAME: ClassVar[str] = "StreamHeadRequest"

    seq: Uint64 = omit(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRequest:
    """`STREAM.SCHEDULES` and `CONSUMER.WAITING`: what has sequences behind `after`, at most `limit`
    of them (0: as many as an answer may have)."""

    GO_NAME: ClassVar[str] = "WaitingRequest"

    after: Uint64 = omit(0)
    limit: int = omit(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MsgGetRequest:
    """`STREAM.MSG.GET` and `DIRECT.GET`."""

    GO_NAME: ClassVar[str] = "JSApiMsgGetRequest"

    seq: Uint64 = omit(0)
    last_by_subj: str = omit("")
    next_by_subj: str = omit("")
    batch: int = omit(0)
    max_bytes: int = omit(0)
    start_time: Time = omit("")
    multi_last: tuple[str, ...] = omit(())
    up_to_seq: Uint64 = omit(0)
    up_to_time: Time = omit("")
    no_hdr: bool = omit(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MsgDeleteRequest:
    """`STREAM.MSG.DELETE`."""

    GO_NAME: ClassVar[str] = "JSApiMsgDeleteRequest"

    seq: Uint64 = 0
    no_erase: bool = omit(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSnapshotRequest:
    """`STREAM.SNAPSHOT`."""

    GO_NAME: ClassVar[str] = "JSApiStreamSnapshotRequest"

    deliver_subject: str = ""
    no_consumers: bool = omit(False)
    chunk_size: int = omit(0)
    window_size: int = omit(0)
    jsck: bool = omit(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRestoreRequest:
    """`STREAM.RESTORE`."""

    GO_NAME: ClassVar[str] = "JSApiStreamRestoreRequest"

    config: StreamConfig = struct(StreamConfig)
    state: StreamState = struct(StreamState)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRemovePeerRequest:
    """`STREAM.PEER.REMOVE`; a server name or peer id."""

    GO_NAME: ClassVar[str] = "JSApiStreamRemovePeerRequest"

    peer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvacuatePeerRequest:
    """`STREAM.PEER.EVACUATE`; the same."""

    GO_NAME: ClassVar[str] = "JSApiStreamEvacuatePeerRequest"

    peer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRemovePeerRequest:
    """`CONSUMER.PEER.REMOVE` and `EVACUATE`; a server name or peer id."""

    GO_NAME: ClassVar[str] = "JSApiConsumerRemovePeerRequest"

    peer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerEvacuatePeerRequest:
    """`CONSUMER.PEER.EVACUATE`; the same."""

    GO_NAME: ClassVar[str] = "JSApiConsumerEvacuatePeerRequest"

    peer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderStepdownRequest:
    """The step-down requests of streams, consumers and the meta group."""

    GO_NAME: ClassVar[str] = "JSApiLeaderStepdownRequest"

    placement: Placement | None = omit(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRescueRequest:
    """`STREAM.RESCUE`, of our own: to a server, or to all of them; 0 only asks what they have."""

    quorum_needed: int = 0
    server: str = omit("")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaServerRemoveRequest:
    """`SERVER.REMOVE`."""

    GO_NAME: ClassVar[str] = "JSApiMetaServerRemoveRequest"

    peer: str = ""
    peer_id: str = omit("")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaServerEvacuateRequest:
    """`SERVER.EVACUATE`."""

    GO_NAME: ClassVar[str] = "JSApiMetaServerEvacuateRequest"

    peer: str = omit("")
    peer_id: str = omit("")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaServerStreamMoveRequest:
    """`ACCOUNT.STREAM.MOVE`."""

    GO_NAME: ClassVar[str] = "JSApiMetaServerStreamMoveRequest"

    server: str = omit("")
    cluster: str = omit("")
    domain: str = omit("")
    tags: tuple[str, ...] = omit(())


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaRescueRequest:
    """`META.RESCUE`."""

    GO_NAME: ClassVar[str] = "JSApiMetaRescueRequest"

    quorum_needed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerCreateRequest:
    """`CONSUMER.CREATE` in its three forms."""

    GO_NAME: ClassVar[str] = "CreateConsumerRequest"

    stream_name: str = ""
    config: ConsumerConfig = struct(ConsumerConfig)
    action: ConsumerAction = ConsumerAction.CREATE_OR_UPDATE
    pedantic: bool = omit(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPauseRequest:
    """`CONSUMER.PAUSE`; no time resumes."""

    GO_NAME: ClassVar[str] = "JSApiConsumerPauseRequest"

    pause_until: Time = ZERO_TIME


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerUnpinRequest:
    """`CONSUMER.UNPIN`."""

    GO_NAME: ClassVar[str] = "JSApiConsumerUnpinRequest"

    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerResetRequest:
    """`CONSUMER.RESET`; 0 is the acknowledgement floor."""

    GO_NAME: ClassVar[str] = "JSApiConsumerResetRequest"

    seq: Uint64 = omit(0)
