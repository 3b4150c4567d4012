"""What a process has to write, as the edge's disk thread does it: one batch at a time, in order.

A batch that finds no room is tried again, and those of its kind wait behind it. One that fails is
reported, and what comes behind it runs: of the log nothing is written behind one that failed.

A brief batch that is alone may run in the loop's own thread (decision 21): until it has ended the
process does nothing else, and then takes the turn that waited for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from jsctl.broker.errors import DiskError, DiskFull
from jsctl.broker.turn import BriefBatch, DiskBatch
from tests.simulation.disks import Interrupted
from tests.simulation.world import MS

if TYPE_CHECKING:
    from tests.simulation.machine import Process

ROOM_RETRY_NS = 200 * MS
FINISH_NS = 50_000
"""From the sync to the rest of a batch that ran in the loop: the process may end in between."""


class DiskQueue:
    """The batches of one process."""

    def __init__(self, process: Process) -> None:
        self.failed = False
        """A batch failed; the node is told, or will be."""
        self.here = False
        """The process itself syncs, and does nothing else."""
        self._process = process
        self._machine = process.machine
        self._world = process.world
        self._batches: list[DiskBatch] = []
        self._running = False
        self._promised: DiskBatch | None = None
        """It is durable and told, and the rest of it is still to be done."""
        self._stuck: set[bool] = set()
        """Whether jobs, or batches of the log, wait for room on the disk."""

    def submit(self, batches: Sequence[DiskBatch], *, may_sync: bool = False) -> None:
        """Run these, behind the others; `may_sync`: in the loop, if they are alone."""
        if may_sync and self._runs_here(batches):
            self.run_here(batches[0])
        else:
            self._batches += batches
            self._start()

    def _runs_here(self, batches: Sequence[DiskBatch]) -> bool:
        """Whether the process may sync these itself, and is of a mind to."""
        often = self._machine.loop_syncs
        alone = len(batches) == 1 and not self._batches and batches[0].brief is not None
        return alone and often > 0 and self._world.chance(often)

    def run_here(self, batch: DiskBatch) -> None:
        """The process waits for this one."""
        self.here = True
        self._batches.append(batch)
        self._start()

    def _start(self) -> None:
        ready = (one for one in self._batches if (one.ticket < 0) not in self._stuck)
        batch = next(ready, None)
        if batch is not None and not self._running:
            self._running = True
            took = self._world.random.expovariate(1.0) * self._machine.sync_ms
            self._world.at(int(took * MS) + 100_000, lambda: self._end(batch))

    def _end(self, batch: DiskBatch) -> None:
        if not self._process.alive:
            return
        brief = batch.brief if self.here else None
        here, self.here, self._running = self.here, False, False
        try:
            if brief is not None:
                brief.begin(None)
                brief.promise()
            else:
                batch.run()
        except DiskFull:
            self._stuck.add(batch.ticket < 0)
            self._world.at(ROOM_RETRY_NS, self._retry)
        except DiskError as error:
            self.failed = True
            self._batches.remove(batch)
            self._process.ran(batch.ticket, str(error))
        else:
            self._machine.watch.durable(self._process, batch)
            self._process.ran(batch.ticket, "")
            if brief is not None:
                self._follow(brief)
                return
            self._batches.remove(batch)
        self._start()
        if here and batch not in self._batches:
            self._process.follow()
        self._process.wake()

    def _follow(self, batch: BriefBatch) -> None:
        """The turn that waited for it comes first, then its rest, then everything else."""
        self._promised, self._running = batch, True
        self._process.follow()
        self.here = True
        self._world.at(FINISH_NS, lambda: self._finish(batch))

    def _finish(self, batch: BriefBatch) -> None:
        if not self._process.alive:
            return
        self.here, self._running, self._promised = False, False, None
        self._batches.remove(batch)
        with suppress(DiskFull):
            try:
                batch.finish()
            except DiskFull:
                raise
            except DiskError as error:
                self.failed = True
                self._process.ran(batch.ticket, str(error))
        self._start()
        self._process.wake()

    def _retry(self) -> None:
        """There may be room."""
        self._stuck.clear()
        if self._process.alive:
            self._start()

    def interrupt(self, *, power: bool) -> None:
        """The end comes while a batch runs: some of it may be written."""
        disk = self._machine.disk
        if not self._batches or self._world.chance(0.3):
            return
        syncs = self._world.random.randrange(3)
        if power:
            disk.power_fails_in = syncs
        else:
            disk.killed_in = syncs
        self._machine.interrupted = Interrupted.of(self._batches[0])
        # A sync that fails is told to a process that lives. Else what was lost would look written
        # to the next one, until the power goes: damage that nobody can know of.
        failing, disk.fail_syncs = disk.fail_syncs, 0
        try:
            self._batches[0].run()
            if self._batches[0] is not self._promised:
                self._machine.watch.durable(self._process, self._batches[0])
        except DiskError:
            pass
        disk.power_fails_in = disk.killed_in = None
        disk.fail_syncs = failing
