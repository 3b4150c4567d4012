"""Whether words of the API got lost between two servers. Pure.

Frames are messages: what is on its way when a connection ends is gone, and between clusters, where
other servers pass frames on, nobody at either end may see one end. So each server counts the frames
with requests and answers that it sends to another, and tells the count with each of them and with
each heartbeat. Who is told of more than came has missed some, and says so in turn.
"""

from dataclasses import field

from jsctl.broker.peers.items import ApiCount, PeerFrame
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class _Counted:
    """`heard`, `unheard`: what the process on the other side told last."""

    boot: int = 0
    sent: int = 0
    missed: int = 0
    heard: int = 0
    unheard: int | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """What became known by a count."""

    theirs: bool
    """Words of the other server for this one."""
    mine: bool
    """Words of this server for the other one."""


@dataclass(slots=True)
class ApiCounts:
    """Those of one server. Peers are peer ids."""

    _pairs: dict[str, _Counted] = field(default_factory=dict)

    def leaving(self, peer: str, frame: PeerFrame) -> None:
        """A frame leaves for a peer: the count goes with it where it matters."""
        if frame.heartbeat is None and not frame.has_words:
            return
        pair = self._pairs.setdefault(peer, _Counted())
        pair.sent += frame.has_words
        frame.counts[:] = [ApiCount(pair.sent, pair.missed, frame.has_words)]

    def came(self, peer: str, boot: int, count: ApiCount) -> Lost:
        """A peer tells its count. What it sent to this server before it was heard at all is missed,
        too: it may know of a request that it was not given by this one."""
        pair = self._pairs.setdefault(peer, _Counted())
        if pair.boot != boot:
            pair.boot, pair.heard, pair.unheard = boot, 0, None
        unheard = count.missed if pair.unheard is None else pair.unheard
        gap = count.sent - count.words - pair.heard
        # One that was overtaken by another on its way is not lost: it was missed for a moment.
        pair.missed += max(gap, 0)
        pair.heard = max(pair.heard, count.sent)
        pair.unheard = max(unheard, count.missed)
        return Lost(theirs=gap > 0, mine=count.missed > unheard)
