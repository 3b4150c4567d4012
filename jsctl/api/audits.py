"""Answers of `STREAM.AUDIT`, whether the replicas of a stream have the same messages, and of
`STREAM.VERIFY` and `STREAM.HEAD`, whether these are what they were."""

from jsctl.api.fields import Int64, Json, Uint64, embed, omit, unknown
from jsctl.api.responses import ApiResponse
from jsctl.api.stream import SequenceRange
from jsctl.dataclass import dataclass


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
