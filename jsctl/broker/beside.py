"""Work of a start that is done in a thread of its own while the broker is loaded (decision 39)."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from jsctl.broker.ports import Disk
from jsctl.broker.store.wal.new_store import NewStore, incarnation_of, make_store

T = TypeVar("T")


class Beside(Generic[T]):
    """Begins when it is made. Until it ends nobody else may touch what it works on."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._value: T | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="beside", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._work()
        except BaseException as error:  # noqa: BLE001 (the caller's, who gets it)
            self._error = error

    def result(self) -> T:
        """Wait for the end. Raises what the call raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # it came to its end


def begin_store(
    disk: Disk, server: str, cluster: str, drawn: str, segment_bytes: int
) -> Beside[NewStore | None]:
    """Make one, if there is none.

    Its syncs and zeros take about as long as that.
    """
    incarnation = incarnation_of(drawn)
    return Beside(lambda: make_store(disk, server, cluster, incarnation, segment_bytes))
