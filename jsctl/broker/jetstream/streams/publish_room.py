"""What publishers may do on one server, and what they have begun there.

A batch that somebody began is kept until it is complete or nothing came for a while; what is kept
for all of them together has to be bounded. Shared by all streams that this server leads.
"""

from dataclasses import field

from jsctl.api.times import SECOND_NS
from jsctl.dataclass import dataclass

ATOMIC_PER_STREAM_MAX = 50
ATOMIC_TOTAL_MAX = 1_000
ATOMIC_MESSAGES_MAX = 1_000
FAST_PER_STREAM_MAX = 1_000
FAST_TOTAL_MAX = 50_000
TIMEOUT_NS = 10 * SECOND_NS
BATCH_BYTES_MAX = 32 << 20
"""One atomic batch: it becomes one entry of a log."""
STAGED_BYTES_MAX = 256 << 20
"""All atomic batches that are not complete, on one server."""


@dataclass(frozen=True, slots=True)
class PublishLimits:
    """As configured; 0 stands for the default."""

    payload_bytes_max: int = 1 << 20
    """A message with its headers, as clients are told; what is made of one may not be longer."""
    per_stream_max: int = 0
    total_max: int = 0
    atomic_messages_max: int = 0
    """Of one atomic batch."""
    wait_ns: int = 0
    """How long a batch is kept behind its last message."""

    @property
    def messages_max(self) -> int:
        """Of one atomic batch."""
        return self.atomic_messages_max or ATOMIC_MESSAGES_MAX

    @property
    def timeout_ns(self) -> int:
        """How long a batch is kept behind its last message."""
        return self.wait_ns or TIMEOUT_NS


@dataclass(slots=True)
class PublishRoom:
    """What is taken of what the limits allow."""

    limits: PublishLimits = field(default_factory=PublishLimits)
    atomic: int = 0
    staged_bytes: int = 0
    fast: int = 0

    def has_atomic(self, of_stream: int) -> bool:
        """Whether a stream that has so many atomic batches may begin another one."""
        limits = self.limits
        return of_stream < (limits.per_stream_max or ATOMIC_PER_STREAM_MAX) and self.atomic < (
            limits.total_max or ATOMIC_TOTAL_MAX
        )

    def has_fast(self, of_stream: int) -> bool:
        """The same for fast batches."""
        limits = self.limits
        return of_stream < (limits.per_stream_max or FAST_PER_STREAM_MAX) and self.fast < (
            limits.total_max or FAST_TOTAL_MAX
        )
