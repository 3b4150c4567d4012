"""The loop that drives the node: collect inputs, run one turn per burst, perform the outputs.

Whoever has something for the node puts it into `inputs` and calls `wake`. The turn runs in the
next round of the event loop, so that everything that arrived in this round is one batch; where it
is known that there is nothing else in this round, in that moment (`run`).
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from jsctl.broker.options import EdgeLimits, Options
from jsctl.broker.server.process import ProcessMeter
from jsctl.broker.turn import LogLevel, LogLine, TurnInputs, TurnOutputs

NANOSECONDS = 1_000_000_000
ALONE_CHUNKS_MAX = 4
"""A turn for which more arrived is one of many clients: they do not wait for a sync."""


_STEADY_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""It goes on while the machine sleeps, where there is one that does: leases end meanwhile."""


class NodeLike(Protocol):
    """The broker without I/O, as the edge sees it."""

    def listening(self, kind: str, host: str, port: int, reached_at: Sequence[str]) -> None:
        """Before `start`: where the edge listens; kind is client, cluster, leafnode or monitor.

        `reached_at` are the hosts by which others find it: addresses, where `host` is "any".
        """

    def start(self, now_ns: int) -> TurnOutputs:
        """Recover. Raises ConfigError, DiskError."""

    def turn(self, inputs: TurnInputs, now_ns: int) -> TurnOutputs:
        """Take everything that happened, answer with everything that is to be done."""

    def settle(self, now_ns: int) -> int | None:
        """Behind the outputs of a turn that no other one follows at once: when the next one has to
        be, even if nothing arrives."""

    @property
    def unfinished(self) -> bool:
        """Whether the last turn had no room for all that waited in it."""

    @property
    def assets(self) -> int:
        """How many streams and consumers are on this server."""


@runtime_checkable
class Reloadable(Protocol):
    """A node that takes changed options while it runs."""

    def try_out(self, options: Options) -> None:
        """Raises ConfigError for options that the node could not take; changes nothing."""

    def reload(self, options: Options, *, by_claims: bool = False) -> None:
        """Options that were tried out count from now on. A turn with Command.RELOAD follows.

        `by_claims`: nothing has changed but accounts, which are those of JWTs.
        """


class Clock:
    """Unix time in ns that never steps back.

    When the machine's clock is set back, this one runs at half speed until they meet, so that
    deadlines still come; when it is set forward, this one follows.
    """

    def __init__(
        self,
        wall_ns: Callable[[], int] = time.time_ns,
        steady_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._now = wall_ns()
        self._steady = steady_ns()

    def now_ns(self) -> int:
        """The time; at least that of the call before."""
        steady = self._steady_ns()
        elapsed, self._steady = steady - self._steady, steady
        self._now = max(self._now + elapsed // 2, self._wall_ns())
        return self._now


class Turns:
    """Runs turns. All methods belong to the event loop's thread."""

    def __init__(
        self,
        node: NodeLike,
        perform: Callable[[TurnOutputs], None],
        crashed: Callable[[BaseException], None],
        clock: Clock,
        limits: EdgeLimits,
    ) -> None:
        self.inputs = TurnInputs()
        self.count = 0
        self.bytes_in = 0
        """Bytes received for the coming turn."""
        self._node = node
        self._perform = perform
        self._crashed = crashed
        self._clock = clock
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._meter = ProcessMeter()
        self.asked = False
        """Whether a turn is asked for already."""
        self._chunks = 0
        """What arrived for this turn."""
        self._follows = False
        """What this turn asked for is done: the next turn is straight after it."""
        self._goes_on = False
        """The same, or the next turn is behind a look at the sockets: this one need not settle."""
        self._follower = False
        """Whether this turn came straight after another."""
        self._held_ns = 0
        """How long the loop waited for what was done before the turn."""
        self._turn_ns = 0
        """The time of this turn."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns = 0
        self._deadline_ns: int | None = None
        self._stall_told_ns = 0
        self._started = False

    def start(self) -> None:
        """Recover the node and perform what it wants first."""
        self._turn_ns = self._clock.now_ns()
        outputs = self._node.start(self._turn_ns)
        self._started = True
        self._finish(outputs)
        self.wake()

    @property
    def has_input(self) -> bool:
        """Whether a look at the sockets has found something for the coming turn."""
        return bool(self.bytes_in or self.inputs.synced or self.inputs.disk_failed)

    def wake(self) -> None:
        """Ask for a turn; asking again before it runs changes nothing."""
        if not self.asked and self._started:
            self.asked = True
            self._loop.call_soon(self._run)

    def run(self) -> bool:
        """Run a turn in this moment, as nothing else is to be done now; whether another one is
        asked for."""
        self._run()
        return self.asked

    def is_alone(self, outputs: TurnOutputs) -> bool:
        """Whether this turn had little to do, and left nothing: who performs its outputs may take
        a moment, and `follow`."""
        return (
            not self.asked
            and not self._follower
            and self._chunks <= ALONE_CHUNKS_MAX
            and not self._node.unfinished
            and outputs.exit is None
        )

    def follow(self, took_ns: int, *, straight: bool) -> None:
        """Something was done for so long while everybody waited: what is in `inputs` is for the
        next turn, which is straight after this one, or behind a look at the sockets."""
        self._held_ns = took_ns
        self._goes_on = True
        if straight:
            self._follows = True
        else:
            self.wake()

    def stop(self) -> None:
        """No turn runs after this."""
        self._started = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        self.asked = False
        if not self._started:
            return
        try:
            self._turn()
            if self._follows and self._started:
                self._follower = True
                self._turn()
                self._follower = False
        except BaseException as error:  # noqa: BLE001 (top of every turn: a bug ends the process)
            self.stop()
            self._crashed(error)

    def _turn(self) -> None:
        inputs, self.inputs = self.inputs, TurnInputs()
        self.bytes_in = 0
        self._follows = self._goes_on = False
        self._chunks = len(inputs.chunks)
        began_ns = time.monotonic_ns()
        inputs.steady_ns = time.clock_gettime_ns(_STEADY_CLOCK)
        inputs.process = self._meter.sample(began_ns)
        self.count += 1
        self._turn_ns = self._clock.now_ns()
        outputs = self._node.turn(inputs, self._turn_ns)
        took_ns = time.monotonic_ns() - began_ns + self._held_ns
        self._held_ns = 0
        if took_ns > self._limits.stall_warn_ns:
            self._tell_stall(outputs, took_ns, began_ns)
        self._finish(outputs)

    def _finish(self, outputs: TurnOutputs) -> None:
        self._perform(outputs)
        if self._goes_on or not self._started:
            return
        self._deadline_ns = deadline_ns = self._node.settle(self._turn_ns)
        if deadline_ns is not None:
            self._set_timer(deadline_ns)

    def _set_timer(self, deadline_ns: int) -> None:
        """Keep a timer that fires first; it looks again then. Saves a timer a turn."""
        if self._timer is not None:
            if self._timer_ns <= deadline_ns:
                return
            self._timer.cancel()
        delay_ns = max(0, deadline_ns - self._clock.now_ns())
        self._timer_ns = deadline_ns
        self._timer = self._loop.call_later(delay_ns / NANOSECONDS, self._due)

    def _due(self) -> None:
        self._timer = None
        if self._deadline_ns is None:
            return
        if self._clock.now_ns() >= self._deadline_ns:
            self.wake()
        else:
            self._set_timer(self._deadline_ns)

    def _tell_stall(self, outputs: TurnOutputs, took_ns: int, now_ns: int) -> None:
        if self._stall_told_ns and now_ns < (
            self._stall_told_ns + self._limits.stall_warn_interval_ns
        ):
            return
        self._stall_told_ns = now_ns
        text = f"A turn took {took_ns / 1e6:.0f} ms: clients and peers waited"
        outputs.logs.append(LogLine(LogLevel.WARNING, text))
