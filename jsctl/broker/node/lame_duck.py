"""How a server leaves: leaderships go first, then clients, then the process.

Shutdown is quick: hand over, write down what is applied, end. Lame duck is slow: the same, and
clients are sent away over a while, so that they do not all arrive elsewhere at once.
"""

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

from jsctl.broker import lazy
from jsctl.broker.options import Options
from jsctl.broker.routing.limits import ServerIdentity
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.turn import Command, Jitter, LogLevel, LogLine, TurnOutputs
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.broker.assets.engine import Engine
    from jsctl.broker.replication import last_writes
    from jsctl.broker.replication.last_writes import LastWrites
else:
    last_writes = lazy.module("jsctl.broker.replication.last_writes", optional=True)

HAND_OVER_NS = 1_000_000_000
"""How long leaderships may take to find another server."""
WRITE_DOWN_NS = 400_000_000
"""For how long applied state is written to the disk; the log has it anyway."""
DISK_WAIT_NS = 4_000_000_000
"""How long the disk may take for what it has to do then."""
CLOSE_SPACING_MAX_NS = 1_000_000_000


class Stage(Enum):
    """Where a departure is."""

    STAYING = 0
    HANDING_OVER = 1
    GRACE = 2
    CLOSING = 3
    WRITING = 4
    GONE = 5


@dataclass(slots=True)
class LameDuck:
    """One server's way out. Times in ns."""

    options: Options
    engine: "Engine | None"
    sessions: Sessions
    identity: ServerIdentity
    jitter: Jitter
    stage: Stage = Stage.STAYING
    lame: bool = False
    logs: list[LogLine] = field(default_factory=list)
    _until_ns: int = 0
    _next_close_ns: int = 0
    _spacing_ns: int = 0
    _last_writes: "LastWrites | None" = None
    _offered: set[str] = field(default_factory=set)

    def command(self, command: Command, now_ns: int) -> None:
        """Shutdown always works, also for a lame duck; each once, as nobody ends sooner by
        beginning anew."""
        if command is Command.LAME_DUCK and self.stage is Stage.STAYING:
            self.lame = True
            self._log("Entering lame duck mode, stop accepting new clients")
            self.identity.leave()
            self.sessions.send_info()
        elif command is Command.SHUTDOWN and (self._is_slow or self.stage is Stage.STAYING):
            self.lame = False
            self._log("Initiating Shutdown...")
        else:
            return
        self.stage = Stage.HANDING_OVER
        self._until_ns = now_ns + HAND_OVER_NS
        if self.engine is not None:
            self.engine.cluster.liveness.leaving = True

    @property
    def _is_slow(self) -> bool:
        """Whether it has not come to its end yet, and takes its time."""
        return self.lame and self.stage not in (Stage.WRITING, Stage.GONE)

    def _log(self, text: str) -> None:
        self.logs.append(LogLine(LogLevel.INFO, text))

    def step(self, now_ns: int, outputs: TurnOutputs) -> None:
        """Go on with leaving; called each turn."""
        if self.stage is Stage.STAYING:
            return
        outputs.stop_accepting = True
        if self.stage is Stage.HANDING_OVER and (self._handed_over() or now_ns >= self._until_ns):
            self._begin_grace(now_ns)
        if self.stage is Stage.GRACE and now_ns >= self._until_ns:
            self._begin_closing(now_ns)
        if self.stage is Stage.CLOSING:
            self._close_some(now_ns)
        if self.stage is Stage.WRITING:
            more = now_ns < self._until_ns
            written = self._last_writes is None or self._last_writes.step(more)
            if written or now_ns >= self._until_ns + DISK_WAIT_NS:
                self.stage = Stage.GONE
        if self.stage is Stage.GONE:
            outputs.exit = "lame duck mode" if self.lame else "shutdown"

    def _handed_over(self) -> bool:
        if self.engine is None:
            return True
        led = [
            group
            for group in self.engine.groups.by_name.values()
            if group.leading and len(group.raft.members.voters) > 1
        ]
        for group in led:
            if group.name not in self._offered and group.raft.transfer(None):
                self._offered.add(group.name)
                self.engine.groups.touch(group)
        return not led

    def _begin_grace(self, now_ns: int) -> None:
        if self.engine is not None:
            for replica in self.engine.assets.consumers.values():
                replica.end("Server Shutdown", pending=True)
        if not self.lame or not len(self.sessions):
            self._begin_writing(now_ns)
            return
        self.stage = Stage.GRACE
        self._until_ns = now_ns + self.options.lame_duck_grace_ns

    def _begin_closing(self, now_ns: int) -> None:
        self.stage = Stage.CLOSING
        span = self.options.lame_duck_duration_ns - self.options.lame_duck_grace_ns
        self._spacing_ns = min(max(span // max(len(self.sessions), 1), 1), CLOSE_SPACING_MAX_NS)
        self._next_close_ns = now_ns

    def _close_some(self, now_ns: int) -> None:
        if now_ns >= self._next_close_ns:
            session = next((one for one in self.sessions if not one.closing), None)
            if session is not None:
                self.sessions.kick(session.conn, "Server Shutdown")
            half = self._spacing_ns // 2 + 1
            self._next_close_ns = now_ns + half + self.jitter(half)
        if not len(self.sessions):
            self._begin_writing(now_ns)

    def _begin_writing(self, now_ns: int) -> None:
        """From here on clients may give no new work: it would have to be written down, too."""
        self.sessions.hush()
        if self.engine is not None:
            self._last_writes = last_writes.LastWrites(self.engine.groups)
        self.stage = Stage.WRITING
        self._until_ns = now_ns + WRITE_DOWN_NS

    def next_due_ns(self, now_ns: int) -> int | None:
        """When `step` has something to do."""
        match self.stage:
            case Stage.STAYING:
                return None
            case Stage.HANDING_OVER:
                return min(self._until_ns, now_ns + 10_000_000)
            case Stage.GRACE:
                return self._until_ns
            case Stage.WRITING:
                over = now_ns >= self._until_ns
                return self._until_ns + (DISK_WAIT_NS if over else 0)
            case Stage.CLOSING:
                return self._next_close_ns
            case Stage.GONE:
                return now_ns
