"""Pacing of a push consumer: flow control windows, rate limit, original speed, heartbeats.

Everything here answers one of two questions: how much may be sent now, and when to look again.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from jsctl.dataclass import dataclass

WINDOW_BYTES_MAX = 32 * 1024 * 1024
WINDOW_BYTES_FIRST = WINDOW_BYTES_MAX // 16
REPLAY_GAP_NS_MIN = 1_000_000
"""Gaps between messages up to this are not replayed."""

FLOW_CONTROL_REQUEST = b"NATS/1.0 100 FlowControl Request\r\n\r\n"


def idle_heartbeat(consumer_seq: int, stream_seq: int, stalled: bytes = b"") -> bytes:
    """The header block of a heartbeat; `stalled` is the outstanding flow control subject."""
    head = b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: %d\r\nNats-Last-Stream: %d\r\n"
    text = head % (consumer_seq, stream_seq)
    if stalled:
        text += b"Nats-Consumer-Stalled: %s\r\n" % stalled
    return text + b"\r\n"


@dataclass(slots=True)
class FlowControl:
    """A window of bytes that doubles with each response.

    `asked` is the subject of the request that is not answered yet, empty when there is none.
    """

    window_bytes: int = WINDOW_BYTES_FIRST
    outstanding_bytes: int = 0
    asked: bytes = b""
    asked_bytes: int = 0

    @property
    def blocked(self) -> bool:
        """Whether delivery has to wait for a response."""
        return self.outstanding_bytes > self.window_bytes

    def sent(self, size: int) -> bool:
        """Count a delivery; True when it is time to ask."""
        self.outstanding_bytes += size
        if not self.asked:
            return self.outstanding_bytes > self.window_bytes // 2
        if self.outstanding_bytes - self.asked_bytes >= self.window_bytes:
            self.asked_bytes += size
        return False

    def ask(self, subject: bytes) -> None:
        """A request goes out on `subject`."""
        self.asked, self.asked_bytes = subject, self.outstanding_bytes

    def answered(self, subject: bytes) -> bool:
        """A response came; False when it is not for the last request."""
        if not self.asked or subject != self.asked:
            return False
        self.window_bytes = min(2 * self.window_bytes, WINDOW_BYTES_MAX)
        self.outstanding_bytes = max(0, self.outstanding_bytes - self.asked_bytes)
        self.asked, self.asked_bytes = b"", 0
        return True


@dataclass(slots=True)
class RateLimit:
    """A token bucket. `rate` in bytes a second; the bucket may go below zero once."""

    rate: int
    burst_bytes: int
    tokens: float = 0.0
    filled_ns: int = 0

    def fill(self, now_ns: int) -> None:
        """Let time add tokens."""
        if not self.filled_ns:
            self.tokens = float(self.burst_bytes)
        else:
            gained = (now_ns - self.filled_ns) * self.rate / 1e9
            self.tokens = min(self.burst_bytes, self.tokens + gained)
        self.filled_ns = now_ns

    def fitting(self, sizes: Sequence[int]) -> int:
        """How many messages of these sizes may go now, and take their tokens."""
        if self.tokens < 0:
            return 0
        sums = list(accumulate(sizes))
        count = min(bisect_right(sums, self.tokens) + 1, len(sums))
        self.tokens -= sums[count - 1] if count else 0
        return count

    @property
    def next_due_ns(self) -> int:
        """When the next message may go."""
        if self.tokens >= 0:
            return self.filled_ns
        return self.filled_ns + int(-self.tokens * 1e9 / self.rate) + 1


@dataclass(slots=True)
class Replay:
    """Delivers messages with the gaps they were stored with, up to sequence `until`."""

    until: int
    last_time_ns: int = 0
    last_sent_ns: int = 0

    def fitting(self, times: Sequence[int], now_ns: int) -> tuple[int, int | None]:
        """How many messages stored at these times may go now, and when the next one may."""
        for count, time_ns in enumerate(times):
            gap = time_ns - self.last_time_ns
            if self.last_time_ns and gap > REPLAY_GAP_NS_MIN:
                due = self.last_sent_ns + gap
                if due > now_ns:
                    return count, due
                self.last_sent_ns = due
            else:
                self.last_sent_ns = max(self.last_sent_ns, now_ns)
            self.last_time_ns = time_ns
        return len(times), None
