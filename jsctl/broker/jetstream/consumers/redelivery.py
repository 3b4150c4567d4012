"""When unacknowledged messages are due again, without a timer per message.

Theory of operation. What a turn delivers shares a time, so it is filed as one batch of
sequences under its deadline, rounded up to a step of the ack wait. When a deadline passes, its
batch is compared with the state: acknowledged and touched messages are simply not due (touched
ones were filed again). What is due goes to the queue `again`, in sequence order, and is
delivered before anything new. Batches of a consumer with nothing pending are dropped at once;
when most of what is filed is acknowledged, the batches are made anew from the state.
"""

import heapq
from collections.abc import Sequence

from jsctl.broker.jetstream.consumers.state import ConsumerState

STEP_NS_MIN = 1_000_000
STEP_NS_MAX = 5_000_000
STEPS_OF_A_WAIT = 100
"""Deadlines are rounded up to a hundredth of the ack wait, but to whole milliseconds and to no
more than a few: whoever puts a message off names a time of his own, however long the ack wait."""
WAIT_NS_MAX = 1 << 62
"""Nobody waits for longer; times between which lies more are not written down."""
SLACK = 10_000
"""Filed sequences beyond four times the pending ones that make it worth to file anew."""


class Redelivery:
    """Deadlines of pending messages and the queue of those to be delivered again."""

    __slots__ = ("_batches", "_filed", "_heap", "_step", "_waits", "again")

    def __init__(self, ack_wait_ns: int, backoff: Sequence[int]) -> None:
        self.again: dict[int, None] = {}
        """Stream sequences to deliver again, in order."""
        self.set_waits(ack_wait_ns, backoff)
        self.clear()

    def set_waits(self, ack_wait_ns: int, backoff: Sequence[int]) -> None:
        """How long to wait for an ack (0: for ever); after each delivery, if `backoff`."""
        waits = tuple(backoff) or ((ack_wait_ns,) if ack_wait_ns > 0 else ())
        self._waits = tuple([min(wait, WAIT_NS_MAX) for wait in waits])
        shortest = min(waits, default=STEP_NS_MIN)
        self._step = min(max(STEP_NS_MIN, shortest // STEPS_OF_A_WAIT), STEP_NS_MAX)

    def clear(self) -> None:
        """Forget all deadlines and the queue."""
        self._batches: dict[int, list[Sequence[int]]] = {}
        self._heap: list[int] = []
        self._filed = 0
        self.again.clear()

    def wait_of(self, deliveries: int) -> int:
        """The ack wait in ns after this many deliveries; 0: none."""
        waits = self._waits
        return waits[min(deliveries, len(waits)) - 1] if waits else 0

    @property
    def next_due_ns(self) -> int | None:
        """When `take_due` will have something to look at."""
        return self._heap[0] if self._heap else None

    def file(self, seqs: Sequence[int], time_ns: int, deliveries: int) -> None:
        """Pending messages whose ack wait runs from `time_ns`, all delivered equally often."""
        wait = self.wait_of(deliveries)
        if not wait or not seqs:
            return
        deadline = -(-(time_ns + wait) // self._step) * self._step
        batch = self._batches.get(deadline)
        if batch is None:
            self._batches[deadline] = [seqs]
            heapq.heappush(self._heap, deadline)
        else:
            batch.append(seqs)
        self._filed += len(seqs)

    def file_pending(self, state: ConsumerState) -> None:
        """File everything pending anew: for a new leader, and when waits change."""
        self._batches, self._heap, self._filed = {}, [], 0
        groups: dict[tuple[int, int], list[int]] = {}
        for seq, (_, time_ns) in state.pending.items():
            if seq not in self.again:
                groups.setdefault((time_ns, state.deliveries(seq)), []).append(seq)
        for (time_ns, deliveries), seqs in groups.items():
            self.file(seqs, time_ns, deliveries)

    def trim(self, state: ConsumerState) -> None:
        """Drop what is not needed any more; call once a turn after acks."""
        if not state.pending:
            self.clear()
        elif self._filed > 4 * len(state.pending) + SLACK:
            self.file_pending(state)
        if self.again:
            gone = [seq for seq in self.again if seq not in state.pending]
            for seq in gone:
                del self.again[seq]

    def take_due(self, state: ConsumerState, now_ns: int) -> list[int]:
        """Pending sequences whose wait is over and which are not queued, ascending."""
        due: list[int] = []
        pending, again = state.pending, self.again
        while self._heap and self._heap[0] <= now_ns:
            for seqs in self._batches.pop(heapq.heappop(self._heap)):
                self._filed -= len(seqs)
                for seq in seqs:
                    held = pending.get(seq)
                    if held is None or seq in again:
                        continue
                    if held[1] + self.wait_of(state.deliveries(seq)) <= now_ns:
                        due.append(seq)
        return sorted(set(due))

    def queue(self, seqs: Sequence[int]) -> None:
        """Deliver these again as soon as somebody takes them."""
        self.again.update(dict.fromkeys(seqs))

    def unqueue(self, seq: int) -> None:
        """Do not deliver this again now."""
        self.again.pop(seq, None)
