"""Raft groups as clients see them: placement, peers, leaders."""

from jsctl.api.fields import Json, Nanos, Time, Uint64, omit, unknown
from jsctl.api.words import Retention
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where an asset should live."""

    cluster: str = omit("")
    tags: tuple[str, ...] = omit(())
    preferred: str = omit("")


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerInfo:
    """One replica as the answering server sees it; `active` is the time since it was heard."""

    name: str = ""
    current: bool = False
    offline: bool = omit(False)
    active: Nanos = 0
    lag: Uint64 = omit(0)
    peer: str = ""
    pending: bool = omit(False)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredOrigin:
    """What a moving group is coming from."""

    replicas: int = 0
    placement: Placement | None = omit(None)
    retention: Retention | None = omit(None)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredStatus:
    """How far a move is."""

    description: str = ""
    type: str = ""
    err: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredClusterInfo:
    """Where a moving group is going, and since when."""

    created: Time = omit("")
    name: str = omit("")
    replicas: tuple[PeerInfo, ...] = omit(())
    origin: DesiredOrigin | None = omit(None)
    status: DesiredStatus | None = omit(None)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInfo:
    """The group of a stream or consumer; `replicas` leaves out the leader."""

    name: str = omit("")
    raft_group: str = omit("")
    leader: str = omit("")
    leader_since: Time = omit("")
    system_account: bool = omit(False)
    traffic_account: str = omit("")
    replicas: tuple[PeerInfo, ...] = omit(())
    desired: DesiredClusterInfo | None = omit(None)
    extra: dict[str, Json] = unknown()
