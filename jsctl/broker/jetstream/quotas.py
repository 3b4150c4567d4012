"""What an account may have of JetStream: one set of limits for all, or one for each tier.

A tier is everything with the same number of replicas (`R3`). Of an account without tiers each byte
counts once for each replica; what a tier is limited to are bytes of one replica.
"""

from collections.abc import Mapping
from dataclasses import field

from jsctl.api.errors import api_error
from jsctl.dataclass import dataclass

ALL = ""
"""The tier of everything, in an account without tiers."""
UNLIMITED = -1


def tier_name(replicas: int) -> str:
    """The tier of what has so many replicas; 0: of what says nothing, which has one."""
    return f"R{replicas or 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TierLimits:
    """JetStream limits in bytes and counts; below 0: unlimited, as are counts and bytes of a stream
    that are 0."""

    tier: str = ALL
    memory_max: int = UNLIMITED
    store_max: int = UNLIMITED
    streams_max: int = UNLIMITED
    consumers_max: int = UNLIMITED
    ack_pending_max: int = UNLIMITED
    memory_stream_bytes_max: int = UNLIMITED
    store_stream_bytes_max: int = UNLIMITED
    bytes_required: bool = False

    def covers(self, replicas: int) -> bool:
        """Whether these limits are those of what has so many replicas."""
        return self.tier in (ALL, tier_name(replicas))

    def bytes_max(self, *, memory: bool) -> int:
        """What may be reserved of one kind of storage."""
        return self.memory_max if memory else self.store_max

    def stream_bytes_max(self, *, memory: bool) -> int:
        """What one stream may reserve of it."""
        return self.memory_stream_bytes_max if memory else self.store_stream_bytes_max

    def reserved(self, size: int, replicas: int) -> int:
        """How much of `bytes_max` a stream takes that names a maximum of `size` bytes."""
        return max(size, 0) * (1 if self.tier else replicas or 1)

    def stored_max(self, replicas: int, *, memory: bool) -> int:
        """How much all replicas of the tier may store together."""
        most = self.bytes_max(memory=memory)
        return most * (replicas or 1) if self.tier and most > 0 else most


@dataclass(frozen=True, slots=True)
class AccountQuota:
    """The limits of an account by tier."""

    name: str
    enabled: bool = True
    tiers: Mapping[str, TierLimits] = field(default_factory=lambda: {ALL: TierLimits()})

    @property
    def tiered(self) -> bool:
        """Whether limits depend on replicas."""
        return ALL not in self.tiers

    def tier(self, replicas: int) -> str:
        """Against whose limits so many replicas count, which there may be none of."""
        return tier_name(replicas) if self.tiered else ALL

    def maybe_limits(self, replicas: int) -> TierLimits | None:
        """Limits of what has so many replicas; None: the account may not have it."""
        return self.tiers.get(self.tier(replicas))

    def limits(self, replicas: int) -> TierLimits:
        """The same. Raises ApiError if there are none."""
        found = self.maybe_limits(replicas)
        if found is None:
            raise api_error("JSNoLimitsErr")
        return found
