"""The one disk thread: runs batches in order and tells the loop which are durable.

A batch touches nothing that the loop touches, so no lock is needed but the queue's own.

A full disk is no failure: what finds no room is tried again until there is some. Nothing of it was
promised to anybody, and the loop goes on meanwhile.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue

from jsctl.broker.errors import DiskError, DiskFull
from jsctl.broker.turn import DiskBatch

ROOM_RETRY_S = 0.2
"""How long what finds no room on the disk waits before it is tried again."""

Finished = Callable[[list[int], list[tuple[int, str]]], None]


class DiskWorker:
    """Batches in, tickets out. `finished(synced, failed)` runs in the loop's thread."""

    def __init__(self, finished: Finished, crashed: Callable[[BaseException], None]) -> None:
        self._finished = finished
        self._crashed = crashed
        self._loop = asyncio.get_running_loop()
        self._batches: SimpleQueue[DiskBatch | None] = SimpleQueue()
        self._done: deque[tuple[int, str | None]] = deque()
        self._told = threading.Event()
        self._thread = threading.Thread(target=self._work, name="disk", daemon=True)
        self._thread.start()

    def submit(self, batch: DiskBatch) -> None:
        """Queue a batch behind those before it."""
        self._batches.put(batch)

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
        waiting: list[DiskBatch] = []
        while True:
            try:
                batch = self._batches.get(timeout=ROOM_RETRY_S if waiting else None)
            except Empty:
                pass
            else:
                if batch is None:
                    return
                waiting.append(batch)
            waiting = self._try_all(waiting)

    def _try_all(self, batches: list[DiskBatch]) -> list[DiskBatch]:
        """One attempt at each; what there is no room for is returned, with what has to follow."""
        waiting: list[DiskBatch] = []
        stuck: set[bool] = set()
        for batch in batches:
            is_job = batch.ticket < 0
            reason: str | None = None
            try:
                if is_job in stuck:
                    waiting.append(batch)
                    continue
                batch.run()
            except DiskFull:
                stuck.add(is_job)
                waiting.append(batch)
                continue
            except DiskError as error:
                reason = str(error)
            self._tell(batch.ticket, reason)
        return waiting

    def _tell(self, ticket: int, reason: str | None) -> None:
        self._done.append((ticket, reason))
        if not self._told.is_set():
            self._told.set()
            self._loop.call_soon_threadsafe(self._hand_over)

    def _hand_over(self) -> None:
        """In the loop: the flag is cleared first, so that a batch finishing now tells again."""
        self._told.clear()
        synced: list[int] = []
        failed: list[tuple[int, str]] = []
        while self._done:
            ticket, reason = self._done.popleft()
            if reason is None:
                synced.append(ticket)
            else:
                failed.append((ticket, reason))
        if synced or failed:
            self._finished(synced, failed)
