"""Answers to peers that have lost messages: a portion a turn, and no more than the rate allows.

Who is asked reads its store for it, beside everything else it does; so the queue is short, and a
question that does not fit in is forgotten: who asked asks another replica, or once more.
"""

from collections import deque
from dataclasses import field

from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.peers.items import RangeAnswer, RangeRequest
from jsctl.broker.peers.outbox import PeerOutbox
from jsctl.broker.store.seqset import SeqSet
from jsctl.dataclass import dataclass

ANSWER_BYTES_AIMED = 512 * 1024
ASKED_MAX = 64
"""Questions that wait."""
BYTES_PER_SECOND = 64 * 1024 * 1024
NANOSECONDS = 1_000_000_000


@dataclass(slots=True)
class RangeServer:
    """Of all replicas of this server."""

    context: ReplicaContext
    outbox: PeerOutbox
    _asked: deque[tuple[str, RangeRequest]] = field(default_factory=deque)
    _next_ns: int = 0

    def asked(self, peer: str, request: RangeRequest) -> None:
        """A peer asks."""
        if len(self._asked) < ASKED_MAX:
            self._asked.append((peer, request))

    def work(self, now_ns: int) -> None:
        """Answer one question, if the rate allows it now."""
        if not self._asked or now_ns < self._next_ns:
            return
        peer, request = self._asked.popleft()
        answer = self._answer(request)
        size = sum(map(len, answer.frames))
        self._next_ns = now_ns + size * NANOSECONDS // BYTES_PER_SECOND
        self.outbox.parcel(peer).found.append(answer)

    def _answer(self, request: RangeRequest) -> RangeAnswer:
        group = self.context.groups.by_key(request.key)
        replica = None if group is None else group.unit
        if not isinstance(replica, StreamReplica):
            return RangeAnswer(request.key, request.token, 0, 0, [], [])
        store, left, up_to = replica.store, ANSWER_BYTES_AIMED, 0
        lost, frames = SeqSet(), list[bytes]()
        for first, last in request.ranges:
            if left <= 0 or first > store.last_seq:
                break
            found = store.excerpt(first, last, left)
            for low, high in found.lost.ranges():
                lost.add_range(low, high)
            frames += found.frames
            left -= sum(map(len, found.frames))
            up_to = found.up_to
            if up_to < last:
                break
        index = replica.standing_index
        return RangeAnswer(request.key, request.token, index, up_to, list(lost.ranges()), frames)

    def next_due_ns(self) -> int | None:
        """When `work` has something to do."""
        return self._next_ns if self._asked else None
