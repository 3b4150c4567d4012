"""What API handlers may see of the broker: one read-only view a request."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from jsctl.api.stream import ReplicaDamage, SourceInfo
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.meta.assignments import GroupAssignment
from jsctl.broker.jetstream.meta.placement import ServerFacts
from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.jetstream.quotas import ALL, AccountQuota
from jsctl.broker.jetstream.streams.admission import StreamLeader
from jsctl.broker.jetstream.streams.config import ConfigLimits
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PeerView:
    """One replica as the answering server sees it. `active_ns`: since it was last heard."""

    peer: str
    name: str
    current: bool
    offline: bool
    active_ns: int
    lag: int
    pending: bool = False
    """Named in the assignment, not yet a member."""
    observer: bool = False


@dataclass(frozen=True, slots=True)
class GroupView:
    """A raft group as the answering server sees it; `leader` is a server name or empty."""

    name: str
    cluster: str
    leader: str
    leader_since_ns: int
    replicas: list[PeerView]
    """All peers but the answering server; sorted by name. With its own if there is no leader."""
    is_leader: bool
    traffic_account: str = "$SYS"
    is_whole: bool = True
    """Whether the answering server's log has all that it promised."""
    log_index: int = 0
    """The end of its log."""


@dataclass(frozen=True, slots=True)
class HeldBytes:
    """Bytes of all replicas."""

    memory: int = 0
    store: int = 0

    def __add__(self, other: "HeldBytes") -> "HeldBytes":
        return HeldBytes(self.memory + other.memory, self.store + other.store)

    def bytes(self, *, memory: bool) -> int:
        """Those of one kind of storage."""
        return self.memory if memory else self.store


NOTHING_HELD = HeldBytes()


@dataclass(frozen=True, slots=True)
class AccountUsage:
    """What an account uses of JetStream on all servers. All of its streams are asked for it."""

    held: HeldBytes = NOTHING_HELD
    api_total: int = 0
    api_errors: int = 0
    tiers: Mapping[str, HeldBytes] = field(default_factory=dict)
    """The part of each of its tiers, if it has some."""

    def of_tier(self, tier: str) -> HeldBytes:
        """What counts against the limits of a tier."""
        return self.held if tier == ALL else self.tiers.get(tier, NOTHING_HELD)


class View(Protocol):
    """The broker at the moment of a request."""

    @property
    def now_ns(self) -> int:
        """The time of the request."""

    @property
    def me(self) -> str:
        """This server's peer id."""

    @property
    def server_name(self) -> str:
        """This server's name."""

    @property
    def cluster(self) -> str:
        """The cluster's name; empty for a single server."""

    @property
    def domain(self) -> str:
        """The JetStream domain; mostly empty."""

    @property
    def clustered(self) -> bool:
        """Whether this server is a member of a cluster."""

    @property
    def unique_tag(self) -> str:
        """Server option: replicas go to servers with distinct tags of this prefix."""

    @property
    def config_limits(self) -> ConfigLimits:
        """What the server adds to the rules of configs."""

    def jitter(self, count: int, /) -> int:
        """A number in [0, count): the only chance."""

    @property
    def meta(self) -> Meta:
        """Applied meta state, with what this leader has in flight laid over it."""

    def servers(self) -> list[ServerFacts]:
        """All JetStream servers known, for placement."""

    def account(self, name: str) -> AccountQuota | None:
        """Its limits; None for an unknown account."""

    def account_usage(self, name: str) -> AccountUsage:
        """What an account uses."""

    def stream(self, account: str, name: str) -> Stream | None:
        """The replica on this server."""

    def consumer(self, account: str, stream: str, name: str) -> Consumer | None:
        """The replica on this server."""

    def group(self, name: str) -> GroupView | None:
        """The group as seen here; None when this server is not a member."""

    def damage(self, assigned: GroupAssignment) -> tuple[ReplicaDamage, ...]:
        """Replicas with messages that cannot be read, as far as their servers are heard."""

    def stream_leader(self, account: str, name: str) -> StreamLeader | None:
        """The admission of a stream that this server leads."""

    def upstreams(self, account: str, name: str) -> Sequence[SourceInfo]:
        """How far a stream that this server leads has its mirror's origin, or its sources."""

    def leader_of(self, group: str) -> str:
        """Peer id of a group's leader as announced; empty if none is known."""

    def has_interest(self, account: str, subject: bytes) -> bool:
        """Whether anybody listens."""

    def new_name(self, length: int) -> str:
        """A fresh random name (NUID alphabet) for groups and ephemerals."""
