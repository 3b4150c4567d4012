"""What a leader knows of one peer, and what it may send it.

                 +-- match found by an ack ---------+
    PROBE -------+                                  v
      ^  ^-- rejection (something was lost) ---- REPLICATE
      |
      +-- state arrived or failed -- SNAPSHOT <-- the peer needs compacted entries (from both)

PROBE sends one append and waits for its answer or a heartbeat's; REPLICATE sends ahead, bounded
by bytes; SNAPSHOT sends nothing. Knows nothing of the log's content.
"""

from collections import deque
from enum import Enum

from jsctl.broker.raft.types import Index, PeerId, StandingKind
from jsctl.dataclass import dataclass

NEVER = -(1 << 40)
"""A tick before all others."""


class Flow(Enum):
    """How a peer is being fed."""

    PROBE = "probe"
    REPLICATE = "replicate"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class PeerProgress:
    """A `FollowerProgress` as reported to the caller."""

    peer: PeerId
    match: Index
    next: Index
    active: bool
    """Heard within an election timeout, and its server is not known to be down."""
    paused: bool
    snapshot: bool
    learner: bool
    heard_ticks: int
    """Ticks since its last message."""
    standing: StandingKind


class FollowerProgress:
    """Leader's view of one peer. Invariant: match < next."""

    __slots__ = (
        "acked_round", "acked_tick", "asked", "commit_sent", "counted_tick", "down", "flow",
        "heard_tick", "inflight", "inflight_bytes", "learner", "match", "next", "paused", "quiet",
        "resend", "shown", "standing",
    )  # fmt: skip

    def __init__(self, next_index: Index, now: int, *, learner: bool, down: bool = False) -> None:
        self.match: Index = 0
        self.next: Index = next_index
        self.flow = Flow.PROBE
        self.paused = False
        """PROBE: an append is on its way."""
        self.resend = False
        """Send an append even if there is nothing new, to learn where the peer stands."""
        self.inflight: deque[tuple[Index, int]] = deque()
        """(last index, bytes) of unacknowledged appends, oldest first."""
        self.inflight_bytes = 0
        self.commit_sent: Index = 0
        self.asked: Index = 0
        """It waits to hear that what was sent up to here is committed."""
        self.heard_tick = now
        self.counted_tick = now
        """When it was heard as one that knows what it has promised."""
        self.acked_tick = NEVER
        """Own tick at which the newest acknowledged heartbeat was sent."""
        self.acked_round = 0
        self.learner = learner
        self.standing = StandingKind.WHOLE
        self.shown = False
        """UNKNOWN: an entry was made for it, after it had all others."""
        self.quiet = False
        self.down = down

    def sent(self, last: Index, size: int) -> None:
        """Note an append with entries up to `last`."""
        assert last >= self.next, "an append without news"
        assert not self.blocked(self.inflight_bytes + 1), "an append that may not be sent"
        if self.flow is Flow.REPLICATE:
            self.next = last + 1
            self.inflight.append((last, size))
            self.inflight_bytes += size
        else:
            self.paused = True

    def acked(self, index: Index) -> bool:
        """The peer has everything up to `index`; False when that is no news."""
        if index < self.match or (index == self.match and self.flow is Flow.REPLICATE):
            return False
        news = index > self.match
        self.match = index
        self.next = max(self.next, index + 1)
        inflight = self.inflight
        while inflight and inflight[0][0] <= index:
            self.inflight_bytes -= inflight.popleft()[1]
        if self.flow is Flow.PROBE:
            self.become_replicate()
        assert self.match < self.next and self.inflight_bytes >= 0
        return news

    def rejected(self, index: Index, conflict: Index) -> bool:
        """The peer has not the entry at `index`; `conflict` is the best guess what it has.

        False when the answer is old.
        """
        if self.flow is Flow.REPLICATE:
            if index <= self.match:
                return False
            self.become_probe(self.match + 1)
            return True
        if self.flow is Flow.SNAPSHOT or self.next - 1 != index:
            return False
        self.next = max(min(index, conflict + 1), self.match + 1)
        assert self.match < self.next <= index + 1, "a probe goes back, and not behind the match"
        self.paused = False
        return True

    def lost(self, index: Index) -> None:
        """A damaged or empty peer has only `index`, whatever it had acknowledged before."""
        self.match = min(self.match, index)
        self.shown = False
        if self.flow is not Flow.SNAPSHOT:
            self.become_probe(self.match + 1)

    def become_probe(self, next_index: Index) -> None:
        """Feel for the place where the logs agree."""
        self.flow = Flow.PROBE
        self.next = max(next_index, self.match + 1)
        self.paused = False
        self._clear_inflight()

    def become_replicate(self) -> None:
        """Stream from behind the known match."""
        self.flow = Flow.REPLICATE
        self.next = self.match + 1
        self.paused = False
        self._clear_inflight()

    def become_snapshot(self) -> None:
        """Send nothing until the caller has moved the state."""
        assert self.flow is not Flow.SNAPSHOT, "the state is under way"
        self.flow = Flow.SNAPSHOT
        self._clear_inflight()

    def blocked(self, inflight_bytes_max: int) -> bool:
        """Whether no append may be sent now."""
        if self.flow is Flow.REPLICATE:
            return self.inflight_bytes >= inflight_bytes_max
        return self.paused or self.flow is Flow.SNAPSHOT

    def report(self, peer: PeerId, now: int, since: int, inflight_bytes_max: int) -> PeerProgress:
        """For the caller, at tick `now`; who was heard after `since` is active."""
        return PeerProgress(
            peer,
            self.match,
            self.next,
            self.heard_tick > since and not self.down,
            self.blocked(inflight_bytes_max),
            self.flow is Flow.SNAPSHOT,
            self.learner,
            now - self.heard_tick,
            self.standing,
        )

    def _clear_inflight(self) -> None:
        self.inflight.clear()
        self.inflight_bytes = 0
