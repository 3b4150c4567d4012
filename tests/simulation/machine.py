"""A machine with a disk, over all the lives of the server process that runs on it."""

import random

from jsctl.broker.errors import DiskError
from jsctl.broker.routing.setup import peer_id
from jsctl.broker.store.identity import INCARNATION_BYTES
from tests.simulation.disks import DurableGroup, DurableLog, Interrupted, MachineDisk
from tests.simulation.port import Hub
from tests.simulation.process import RESTART_NS, Process
from tests.simulation.rot import Decay, note_refused
from tests.simulation.settings import Settings
from tests.simulation.watch import Watch
from tests.simulation.world import SECOND, Network

ACCOUNT = "$G"
EPOCH_NS = 1_700_000_000 * SECOND
SEGMENT_BYTES = 192 * 1024
PENDING_MAX = 48 * 1024
"""What may wait for a client that does not read."""


class Machine:
    """One server over all its lives. `rate`, `offset_ns`: how its clock differs."""

    def __init__(
        self, number: int, network: Network, settings: Settings, watch: Watch, hub: Hub
    ) -> None:
        self.number = number
        self.name = f"n{number}"
        self.peer = peer_id(self.name)
        self.network = network
        self.world = network.world
        self.settings = settings
        self.watch = watch
        self.hub = hub
        self.others: list[Machine] = []
        self.rate = self.world.random.uniform(0.99, 1.01)
        self.offset_ns = self.world.random.randrange(2 * SECOND)
        self.sync_ms = 1.0
        self.loop_syncs = 0.0  # How often a process syncs in its own loop, where it may.
        self.ill = False
        """Its disk failed once, or is full: its process may end for it."""
        self._told_ns = self._looked_ns = 0
        self.latest_ns = 0
        """The latest time that its clock ever told."""
        self.process: Process | None = None
        self.last: Process | None = None
        """What runs, or ran last on the present disk."""
        self.runs = 0
        self.log = DurableLog()
        self.lost: list[DurableLog] = []
        """What disks held that were lost since."""
        self.memory: dict[str, DurableGroup] = {}
        """What the running process holds of groups that live in memory."""
        self.interrupted = Interrupted()
        """What was being written when the last process ended."""
        self._new_disk()

    def _new_disk(self) -> None:
        self.incarnation = bytes(INCARNATION_BYTES)
        """What the server calls the present disk, once it has seen it."""
        self.log = DurableLog()
        self.decay = decay = Decay()
        self.disk = disk = MachineDisk(random.Random(self.world.random.randrange(1 << 60)))
        disk.crowded = self.number % 3 == 1
        disk.when_refused = lambda path: note_refused(disk, decay, path)

    @property
    def life(self) -> int:
        """What an assignment calls the present disk."""
        return int.from_bytes(self.incarnation[:8], "big") >> 1

    def network_name(self, host: str) -> "Machine":
        """The machine of that name."""
        return next(one for one in (self, *self.others) if one.name == host)

    def now_ns(self) -> int:
        """What its process takes for the time: a clock that is set back slows it down only."""
        wall_ns = EPOCH_NS + self.offset_ns + int(self.world.now_ns * self.rate)
        elapsed = self.world.now_ns - self._looked_ns
        self._looked_ns = self.world.now_ns
        self._told_ns = max(self._told_ns + elapsed // 2, wall_ns)
        self.latest_ns = max(self.latest_ns, self._told_ns)
        return self._told_ns

    def start(self) -> None:
        """Begin to run, if it does not."""
        if self.process is not None:
            return
        self.runs += 1
        self._told_ns = 0
        self.process = process = Process(self)
        try:
            process.start()
        except DiskError:
            if not self.ill:
                raise
            self.process = None
            self.disk.crash()
            self.world.at(RESTART_NS, self.start)
            return
        self.last = process

    def stop(self, *, power: bool, noticed: bool) -> None:
        """End at once. `power`: what is not synced is lost; `noticed`: peers see it end."""
        process, self.process = self.process, None
        if process is None:
            return
        self.interrupted = Interrupted()
        for name, group in self.memory.items():
            self.log.dropped.setdefault(name, []).append(group)
        self.memory = {}
        process.writing.interrupt(power=power)
        if power:
            self.disk.crash()
        else:
            self.disk.kill()
        if noticed:
            process.hang_up()

    def wipe(self) -> None:
        """Lose the disk. Only while nothing runs."""
        assert self.process is None
        self.lost.append(self.log)
        self.last = None
        self._new_disk()

    def held(self, name: str, index: int, term: int) -> bool:
        """Whether an entry was made safe here; what disks and memory that were lost held counts,
        too."""
        memory = self.memory.get(name)
        if memory is not None and memory.holds(index, term):
            return True
        return any(log.held(name, index, term) for log in (self.log, *self.lost))
