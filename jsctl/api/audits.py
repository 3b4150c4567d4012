"""Answers of `STREAM.AUDIT`: whether the replicas of a stream have the same messages."""

from jsctl.api.fields import Int64, Json, Uint64, embed, omit, unknown
from jsctl.api.responses import ApiResponse
from jsctl.api.stream import SequenceRange
from jsctl.dataclass import dataclass


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
    last_seq: Uint64 = 0
    replicas: tuple[ReplicaAudit, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether all replicas were compared, and have the same messages."""
        return self.done and all(one.state in ("same", "leader") for one in self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAuditResponse:
    """`STREAM.AUDIT`. Without an `audit` there was none yet."""

    head: ApiResponse = embed(ApiResponse)
    audit: StreamAudit | None = omit(None)
    extra: dict[str, Json] = unknown()
