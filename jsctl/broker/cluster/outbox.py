"""What goes to each peer at the end of the turn, collected during it.

Everything for a peer leaves as one frame (or a few, when a transfer fills more than one), so
that ten thousand groups cost one write per peer and turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from jsctl.broker.cluster.catchup import StateAck, StateChunk
from jsctl.broker.raft.types import Message, PeerId


@dataclass(slots=True)
class Announcement:
    """`leader` leads `group` since `term`; sent by the leader itself."""

    group: str
    term: int
    leader: PeerId


@dataclass(slots=True)
class Parcel:
    """Everything for one peer."""

    raft: dict[bytes, list[Message]] = field(default_factory=dict)
    chunks: list[StateChunk] = field(default_factory=list)
    acks: list[StateAck] = field(default_factory=list)


@dataclass(slots=True)
class PeerOutbox:
    """Implements `groups.Outbox`."""

    parcels: dict[PeerId, Parcel] = field(default_factory=dict)

    def parcel(self, peer: PeerId) -> Parcel:
        """The collection for a peer in this turn."""
        found = self.parcels.get(peer)
        if found is None:
            found = self.parcels[peer] = Parcel()
        return found

    def raft(self, peer: PeerId, key: bytes, messages: Sequence[Message]) -> None:
        """Queue messages of one group for a peer."""
        self.parcel(peer).raft.setdefault(key, []).extend(messages)

    def take(self) -> dict[PeerId, Parcel]:
        """Everything collected; the outbox is empty afterwards."""
        parcels, self.parcels = self.parcels, {}
        return parcels
