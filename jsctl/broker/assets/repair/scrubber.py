"""All that rests on this server's disks is read now and then, and what is damaged is mended.

Theory of operation. A pass takes one target after the other: what belongs to the server itself,
then each group with what it keeps. A target has checks, one a file, which read a portion at a time
on the disk thread; between portions passes as much time as the rate demands. What a check finds
its target acts upon: messages that are damaged are asked for (`repairs`), and files of which a
sound copy is in memory are written anew. Who wants a stream to be checked now goes first, at the
full rate.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Protocol

from jsctl.broker.assets.engine_options import ScrubLimits
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.store.scrub import FileCheck
from jsctl.broker.turn import LogLevel
from jsctl.dataclass import dataclass

PORTION_BYTES = 256 * 1024
URGENT_BYTES = 1024 * 1024
"""Of a check that somebody waits for: each portion may wait for a sync of the log, and the log for
it."""
FILE_BYTES = 4096
"""What a small file costs, at least."""
RATE_MIN = 256 * 1024
AGAIN_NS = 1_000_000_000
"""When a read that failed is tried again."""
FIRST_NS = 60_000_000_000
"""How long after the start the first pass begins, at most."""
FINDINGS_MAX = 100
NANOSECONDS = 1_000_000_000


class ScrubTarget(Protocol):
    """What is checked together."""

    @property
    def name(self) -> str:
        """Its group; empty for what belongs to the server itself."""

    def checks(self) -> Sequence[FileCheck]:
        """One a file, as files are now; none if it is gone."""

    def found(self, check: FileCheck) -> bool:
        """A check found damage: act upon it. False if the file has changed since it began."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Damage that was found."""

    time_ns: int
    group: str
    text: str


@dataclass(slots=True)
class TargetReport:
    """How far the check of one target is, or how it ended."""

    began_ns: int
    bytes_total: int = 0
    bytes_read: int = 0
    findings: int = 0
    ended_ns: int = 0
    """0 while it goes on."""


@dataclass(slots=True)
class ScrubReport:
    """What the scrub of a server has done. Times in ns; 0: not yet."""

    began_ns: int = 0
    ended_ns: int = 0
    """When the last whole pass ended."""
    passes: int = 0
    bytes_read: int = 0
    """In this pass."""
    bytes_total: int = 0
    """What the pass has to read, as far as that is known."""
    findings: deque[Finding] = field(default_factory=lambda: deque(maxlen=FINDINGS_MAX))
    found: int = 0
    """Findings since the start of the process."""


class Scrubber:
    """See the module. `targets` are all that there are, in the order of a pass."""

    def __init__(
        self,
        context: ReplicaContext,
        limits: ScrubLimits,
        targets: Callable[[], Iterator[ScrubTarget]],
        size: Callable[[], int],
    ) -> None:
        self.limits = limits
        self.report = ScrubReport()
        self.targets: dict[str, TargetReport] = {}
        """The last check of each target, by its name."""
        self._context = context
        self._all = targets
        self._size = size
        self._begin_ns = 0
        self._next_ns = 0
        self._pass: Iterator[ScrubTarget] | None = None
        self._urgent: deque[ScrubTarget] = deque()
        self._target: ScrubTarget | None = None
        self._is_urgent = False
        self._checks: deque[FileCheck] = deque()
        self._running = False

    def check_now(self, target: ScrubTarget) -> None:
        """Somebody wants a target to be checked."""
        if all(one.name != target.name for one in self._urgent):
            self._urgent.append(target)
            self._next_ns = 0

    @property
    def in_pass(self) -> bool:
        """Whether a pass goes on."""
        return self._pass is not None

    @property
    def waiting(self) -> int:
        """Targets that somebody wants to be checked."""
        return len(self._urgent) + (self._is_urgent and self._target is not None)

    def tick(self, now_ns: int) -> None:
        """Go on, if it is time to."""
        if self._running or now_ns < self._next_ns:
            return
        if self._target is None and not self._choose(now_ns):
            return
        while self._target is not None and not self._checks:
            self._end_target(now_ns)
            if not self._choose(now_ns):
                return
        self._step()

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""
        if self._running:
            return None
        if self._target is not None or self._urgent or self._pass is not None:
            return self._next_ns
        return self._begin_ns if self.limits.interval_ns else None

    def _choose(self, now_ns: int) -> bool:
        """The next target; False if there is none now."""
        if self._target is not None:
            return True
        self._is_urgent = bool(self._urgent)
        chosen = self._urgent.popleft() if self._urgent else self._next_of_pass(now_ns)
        if chosen is None:
            return False
        self._target = chosen
        self._checks = deque(chosen.checks())
        total = sum(max(one.size, 0) for one in self._checks)
        self.targets[chosen.name] = TargetReport(now_ns, total)
        return True

    def _next_of_pass(self, now_ns: int) -> ScrubTarget | None:
        interval_ns, report = self.limits.interval_ns, self.report
        if self._pass is None:
            if not interval_ns:
                return None
            if not self._begin_ns:
                self._begin_ns = now_ns + min(FIRST_NS, interval_ns // 10)
            if now_ns < self._begin_ns:
                return None
            self._begin_ns = now_ns + interval_ns
            report.began_ns, report.bytes_read, report.bytes_total = now_ns, 0, self._size()
            self._pass = self._all()
        chosen = next(self._pass, None)
        if chosen is None:
            self._pass = None
            report.ended_ns, report.bytes_total = now_ns, report.bytes_read
            report.passes += 1
            self._forget_gone()
        return chosen

    def _forget_gone(self) -> None:
        """What was not met in a whole pass is there no more."""
        began_ns, known = self.report.began_ns, self.targets
        self.targets = {name: one for name, one in known.items() if one.began_ns >= began_ns}

    def _end_target(self, now_ns: int) -> None:
        assert self._target is not None, "somebody is checked"
        self.targets[self._target.name].ended_ns = now_ns
        self._target = None

    def _step(self) -> None:
        check, disk = self._checks[0], self._context.disk
        before, portion = check.read, URGENT_BYTES if self._is_urgent else PORTION_BYTES
        self._running = True

        def work() -> None:
            check.step(disk, portion)

        self._context.groups.side_jobs.read(work, lambda: self._stepped(check, before))

    def _stepped(self, check: FileCheck, before: int) -> None:
        now_ns, target = self._context.now_ns, self._target
        self._running = False
        assert target is not None, "who is checked stays until all is done"
        read = check.read - before
        self._next_ns = now_ns + max(read, FILE_BYTES) * NANOSECONDS // self._rate()
        report = self.targets[target.name]
        report.bytes_read += read
        if not self._is_urgent:
            self.report.bytes_read += read
        if not check.done:
            if not read:
                self._next_ns = now_ns + AGAIN_NS
            return
        self._checks.popleft()
        if check.damage and target.found(check):
            report.findings += 1
            self.report.found += 1
            self.report.findings.append(Finding(now_ns, target.name, check.damage))
            self._context.log(LogLevel.ERROR, f"Scrub found damage: {check.damage}")

    def _rate(self) -> int:
        """Bytes in a second."""
        most = self.limits.bytes_per_second
        if self._is_urgent or not self.limits.interval_ns:
            return most
        # In half the time, so that a pass has ended when the next one is to begin.
        wanted = 2 * self.report.bytes_total * NANOSECONDS // self.limits.interval_ns
        return min(most, max(wanted, RATE_MIN))
