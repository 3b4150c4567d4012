"""What goes to each peer at the end of the turn, collected during it.

Everything for a peer leaves as one frame (or a few, when a transfer fills more than one), so
that ten thousand groups cost one write per peer and turn.
"""

from collections.abc import Sequence
from dataclasses import field

from jsctl.broker.checksums import Checksums
from jsctl.broker.peers.api_counts import ApiCounts
from jsctl.broker.peers.frames import encode_frames, encode_items
from jsctl.broker.peers.items import PeerFrame, RaftBatch
from jsctl.broker.pieces import Piece
from jsctl.broker.raft import codec
from jsctl.broker.raft.types import Message, PeerId
from jsctl.dataclass import dataclass

FRAMES = ("_JSB", "F")
"""What stands around a peer id."""


def frame_subject(peer: str) -> bytes:
    """Where a broker hears its peers."""
    return f"{FRAMES[0]}.{peer}.{FRAMES[1]}".encode()


@dataclass(slots=True)
class PeerOutbox:
    """Implements `groups.Outbox`. `me` is the sender's peer id."""

    me: PeerId
    counts: ApiCounts = field(default_factory=ApiCounts)
    _parcels: dict[PeerId, PeerFrame | None] = field(default_factory=dict)
    """None for a peer for which there is nothing but messages of groups."""
    _raft: dict[PeerId, dict[bytes, list[Message]]] = field(default_factory=dict)

    def parcel(self, peer: PeerId) -> PeerFrame:
        """The frame for a peer in this turn; items may be added to it."""
        found = self._parcels.get(peer)
        if found is None:
            found = self._parcels[peer] = PeerFrame(self.me)
        return found

    def raft(self, peer: PeerId, key: bytes, messages: Sequence[Message]) -> None:
        """Queue messages of one group for a peer."""
        self._parcels.setdefault(peer, None)
        self._raft.setdefault(peer, {}).setdefault(key, []).extend(messages)

    def take(self) -> list[tuple[PeerId, list[list[Piece]]]]:
        """(peer, frames in pieces) of everything collected; the outbox is empty afterwards."""
        if not self._parcels:
            return []
        parcels, self._parcels = self._parcels, {}
        raft, self._raft = self._raft, {}
        sender, out = self.me.encode(), []
        checksums = Checksums()
        for peer, frame in parcels.items():
            batches = [
                RaftBatch(key, codec.encode_messages(messages))
                for key, messages in raft.get(peer, {}).items()
            ]
            if frame is None:
                out.append((peer, encode_items(sender, batches, checksums)))
                continue
            self.counts.leaving(peer, frame)
            frame.raft.extend(batches)
            out.append((peer, encode_frames(frame, checksums)))
        return out
