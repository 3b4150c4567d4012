"""The one disk thread: runs batches and tells the loop which are durable.

The way to the thread and back costs more than a quick sync. A brief batch that finds the thread
without work may be run in the loop's own thread instead (`run_here`, decision 21), while syncs
take little time: each one is measured, wherever it ran. While many are served it is written there,
and where that is compiled a thread that needs no interpreter syncs it beside them (`begin_beside`,
decision 101).

A batch touches nothing that the loop touches, so no lock is needed but the queue's own.

Batches of the log run in order, and so do jobs (checkpoints, deletions), but a batch of the log
does not wait for more than the job that runs: clients wait for the log, and when a segment of it
is to be let go of, every group on the server may have a job at once.

A full disk is no failure: what finds no room is tried again until there is some. Nothing of it was
promised to anybody, and the loop goes on meanwhile. What is to be deleted does not wait behind it:
that may be all that makes room.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue

from jsctl.broker.errors import DiskError, DiskFull
from jsctl.broker.ports import Syncer
from jsctl.broker.turn import BriefBatch, DiskBatch, RoomMaker
from jsctl.dataclass import dataclass, replace

ROOM_RETRY_S = 0.2
"""How long what finds no room on the disk waits before it is tried again."""

MEAN_OF = 8
"""The mean of syncs follows a new one by this part of the difference: one that takes very long
keeps syncs away from the loop for dozens."""

Finished = Callable[[list[int], list[tuple[int, str]]], None]


@dataclass(frozen=True, slots=True)
class Ran:
    """A batch was run: why it failed, if it did, and how long it took."""

    ticket: int
    reason: str | None
    took_ns: int
    is_brief: bool


class DiskWorker:
    """Batches in, tickets out. `finished(synced, failed)` runs in the loop's thread.

    `here_ns_max` is the mean of syncs up to which batches may be run in the loop's thread.
    """

    def __init__(
        self,
        finished: Finished,
        crashed: Callable[[BaseException], None],
        here_ns_max: int = 0,
        syncer: Syncer | None = None,
    ) -> None:
        self._syncer = syncer
        self._here_ns_max = here_ns_max
        self._mean_ns = 2 * here_ns_max
        """Of brief batches; begins too high, so that the first ones are measured in the thread."""
        self._open = 0
        """Batches that the thread has, or that are on the way back."""
        self._log_open = 0
        """Those of the log among them."""
        self.beside: BriefBatch | None = None
        """What is synced while everybody is served."""
        self._finished = finished
        self._crashed = crashed
        self._loop = asyncio.get_running_loop()
        self._batches: SimpleQueue[DiskBatch | None] = SimpleQueue()
        self._done: deque[Ran] = deque()
        self._told = threading.Event()
        self._thread = threading.Thread(target=self._work, name="disk", daemon=True)
        self._thread.start()

    def submit(self, batch: DiskBatch) -> None:
        """Queue a batch behind those of its kind."""
        self._open += 1
        self._log_open += batch.ticket >= 0
        self._batches.put(batch)

    def may_run_here(self, batches: Sequence[DiskBatch]) -> BriefBatch | None:
        """A turn's batches, if they are one brief one, the thread has none, and syncs are quick."""
        if len(batches) != 1 or self._open or self.beside is not None:
            return None
        if self._mean_ns >= self._here_ns_max:
            return None
        return batches[0].brief

    def may_run_beside(self, batches: Sequence[DiskBatch]) -> BriefBatch | None:
        """The one batch of the log in a turn, if it may be begun here and synced beside: while
        others are served, and the thread has other work."""
        if self._syncer is None or self._log_open or self.beside is not None:
            return None
        if self._mean_ns >= self._here_ns_max:
            return None
        log = [batch for batch in batches if batch.ticket >= 0]
        return log[0].brief if len(log) == 1 else None

    def run_here(self, batch: BriefBatch) -> Ran | None:
        """Run a batch that may be run here; None: the thread has it, as there is no room for it.

        It is durable, or has failed, when this returns; `finished` is not told. What is left of it
        is for `finish_here`, before the log gets another one.
        """
        assert not self._open, "batches of the log run in order"
        try:
            ran = _run(batch, partial(_promise, batch))
        except DiskFull:
            self.submit(batch)
            return None
        self._measure(ran)
        return ran

    def begin_beside(self, batch: BriefBatch) -> None:
        """Begin with a batch that may be synced beside: `end_beside` follows when `fileno` of who
        syncs can be read. What finds no room the thread has; of what failed `finished` is told."""
        assert not self._log_open and self.beside is None, "batches of the log run in order"
        try:
            ran = _run(batch, lambda: batch.begin(self._syncer))
        except DiskFull:
            self.submit(batch)
            return
        if ran.reason is None:
            self.beside = batch
        else:
            self._finished([], [(ran.ticket, ran.reason)])

    def end_beside(self) -> tuple[BriefBatch, Ran]:
        """What was synced beside: it is durable, or has failed; see `run_here`."""
        batch, self.beside = self.beside, None
        assert batch is not None and self._syncer is not None, "nothing was begun"
        ran = replace(_run(batch, batch.promise), took_ns=self._syncer.took_ns)
        self._measure(ran)
        return batch, ran

    def finish_here(self, batch: BriefBatch) -> str | None:
        """Do what is left of a batch; why it failed, if it did."""
        assert not self._log_open, "batches of the log run in order"
        try:
            batch.finish()
        except DiskFull:
            pass  # The next batch says the same.
        except DiskError as error:
            return str(error)
        return None

    def _measure(self, ran: Ran) -> None:
        if ran.is_brief:
            self._mean_ns += (ran.took_ns - self._mean_ns) // MEAN_OF

    def stop(self, deadline_s: float) -> bool:
        """Run what is queued, then end the thread; False if it has not ended in time.

        What waits for room on the disk is given up.
        """
        self._batches.put(None)
        self._thread.join(deadline_s)
        return not self._thread.is_alive()

    def _work(self) -> None:
        try:
            self._run_all()
        except BaseException as error:  # noqa: BLE001 (top of the thread: it ends the process)
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._crashed, error)

    def _run_all(self) -> None:
        log, jobs = deque[DiskBatch](), deque[DiskBatch]()
        ending, ran = False, False
        while not ending or ran:
            # What found no room is looked at again in a moment.
            pause = ROOM_RETRY_S if log or jobs else None
            for batch in self._submitted(0 if ran or ending else pause):
                if batch is None:
                    ending = True
                else:
                    (jobs if batch.ticket < 0 else log).append(batch)
            # One of each, so that neither keeps the other out.
            ran = self._run_first(log)
            ran = self._run_first(jobs) or ran

    def _submitted(self, wait_s: float | None) -> Iterator[DiskBatch | None]:
        """What was queued; waits for the first so long, None: until there is one."""
        with suppress(Empty):
            yield self._batches.get(timeout=wait_s)
            while True:
                yield self._batches.get_nowait()

    def _run_first(self, batches: deque[DiskBatch]) -> bool:
        """Run the first of these; it stays the first if there is no room for it."""
        if not batches:
            return False
        batch = batches[0]
        try:
            ran = _run(batch, batch.run)
        except DiskFull:
            return self._make_room(batches)
        batches.popleft()
        self._tell(ran)
        return True

    def _make_room(self, batches: deque[DiskBatch]) -> bool:
        """What was to run first finds no room: what makes some may come before it."""
        front: list[DiskBatch] = []
        for at, batch in enumerate(batches):
            if isinstance(batch, RoomMaker) and batch.may_overtake(front):
                with suppress(DiskFull):
                    ran = _run(batch, batch.run)
                    del batches[at]
                    self._tell(ran)
                    return True
                return False
            front.append(batch)
        return False

    def _tell(self, ran: Ran) -> None:
        self._done.append(ran)
        if not self._told.is_set():
            self._told.set()
            self._loop.call_soon_threadsafe(self._hand_over)

    def _hand_over(self) -> None:
        """In the loop: the flag is cleared first, so that a batch finishing now tells again."""
        self._told.clear()
        synced: list[int] = []
        failed: list[tuple[int, str]] = []
        while self._done:
            ran = self._done.popleft()
            self._open -= 1
            self._log_open -= ran.ticket >= 0
            self._measure(ran)
            if ran.reason is None:
                synced.append(ran.ticket)
            else:
                failed.append((ran.ticket, ran.reason))
        if synced or failed:
            self._finished(synced, failed)


def _promise(batch: BriefBatch) -> None:
    batch.begin(None)
    batch.promise()


def _run(batch: DiskBatch, run: Callable[[], None]) -> Ran:
    """Run a batch, and see how long it takes. Raises DiskFull."""
    began_ns = time.monotonic_ns()
    reason: str | None = None
    try:
        run()
    except DiskFull:
        raise
    except DiskError as error:
        reason = str(error)
    return Ran(batch.ticket, reason, time.monotonic_ns() - began_ns, batch.brief is not None)
