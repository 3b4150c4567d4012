"""The part of one client: how many messages, how fast, and what they are."""

import asyncio
import random
import sys
from collections.abc import Mapping
from dataclasses import field
from time import perf_counter_ns

from jsctl.client.raw import header_block
from jsctl.client.wire.frames import frame_of
from jsctl.dataclass import dataclass

FLOW_MAX = 65_535
"""So many messages of a fast batch may be on their way at the most."""
TRIES_MAX = 3
"""How often a message is sent that nobody takes: a new stream is not yet known everywhere."""
TRY_AGAIN_S = 0.25
BAR_CELLS = 40
BAR_STEPS = 50


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a client may go; zeros are no limit."""

    sleep_seconds: float = 0.0
    offset_seconds: float = 0.0
    per_second: float = 0.0

    @property
    def free(self) -> bool:
        """Whether there is no limit."""
        return not (self.sleep_seconds or self.per_second)

    async def wait(self, sent: int, started_ns: int) -> None:
        """Before message number `sent` (from 0)."""
        if self.sleep_seconds:
            await asyncio.sleep(self.offset_seconds if not sent else self.sleep_seconds)
        if self.per_second:
            due_ns = started_ns + int(sent / self.per_second * 1e9)
            left_ns = due_ns - perf_counter_ns()
            if left_ns > 0:
                await asyncio.sleep(left_ns / 1e9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Plain data: it goes to another process. Which fields count is a matter of the benchmark.

    `offset` messages belong to the clients before this one. `subjects` spreads messages over that
    many subjects, 0 over as many as there are messages, None not at all.
    """

    number: int
    messages: int
    subject: str = ""
    payload: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    offset: int = 0
    subjects: int | None = None
    random_subjects: bool = False
    batch: int = 500
    acks_max: int = 1
    pace: Pace = Pace()
    timeout: float = 5.0
    run_id: str = ""
    dedup: bool = False
    progress: bool = False
    tries_max: int = TRIES_MAX
    stream: str = ""
    bucket: str = ""
    consumer: str = ""
    group: str = ""
    acks: str = "explicit"
    double_ack: bool = False
    filters: tuple[str, ...] = ()
    keys: int = 0
    api_prefix: str = "$JS.API."

    def subject_of(self, at: int) -> bytes:
        """Where message number `at` goes."""
        if self.subjects is None:
            return self.subject.encode()
        if not self.subjects:
            return f"{self.subject}.{at + self.offset}".encode()
        number = (
            random.randrange(self.subjects)
            if self.random_subjects
            else (at + self.offset) % abs(self.subjects)
        )
        return f"{self.subject}.{number:0{len(str(self.subjects))}}".encode()

    @property
    def listened(self) -> str:
        """What a subscriber listens to."""
        return self.subject if self.subjects is None else f"{self.subject}.*"

    def header_of(self, at: int, more: Mapping[str, str] | None = None) -> bytes:
        """What goes with it."""
        found = {**self.headers, **(more or {})}
        if self.dedup:
            found["Nats-Msg-Id"] = f"{self.run_id}-{self.number}-{at + self.offset}"
        return header_block(found)

    def frame_of(self, at: int, reply: bytes = b"", more: Mapping[str, str] | None = None) -> bytes:
        """Message number `at` as it is sent."""
        return frame_of(self.subject_of(at), self.payload, reply, self.header_of(at, more))

    @property
    def always_the_same(self) -> bool:
        """Whether all messages are equal."""
        return self.subjects is None and not self.dedup

    def key_of(self, at: int) -> int:
        """The key of message number `at`."""
        return random.randrange(self.keys) if self.keys > 0 else at + self.offset

    def tell(self, done: int) -> None:
        """Moves the progress bar, on a terminal and not too often."""
        if not self.progress:
            return
        step = max(1, self.messages // BAR_STEPS)
        if done % step and done != self.messages:
            return
        share = done / self.messages
        bar = "=" * int(share * BAR_CELLS)
        end = "\n" if done == self.messages else ""
        sys.stderr.write(f"\r[{self.number + 1}] [{bar:-<{BAR_CELLS}}] {share:4.0%}{end}")
