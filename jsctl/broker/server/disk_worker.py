"""The one disk thread: runs batches in order and tells the loop which are durable.

A batch touches nothing that the loop touches, so no lock is needed but the queue's own.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from jsctl.broker.errors import DiskError
from jsctl.broker.turn import DiskBatch

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
        """Run what is queued, then end the thread; False if it has not ended in time."""
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
        while (batch := self._batches.get()) is not None:
            self._done.append((batch.ticket, self._run(batch)))
            if not self._told.is_set():
                self._told.set()
                self._loop.call_soon_threadsafe(self._hand_over)

    def _run(self, batch: DiskBatch) -> str | None:
        try:
            batch.run()
        except DiskError as error:
            return str(error)
        return None

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
