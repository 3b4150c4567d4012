"""The segments whose files are open, of all stores of a server.

Each stream that has messages keeps the file open that it writes to, and there may be more streams
than a process may have files. Where the disk says that these run short, those that were opened
longest ago are closed, until somebody needs them again. All of it belongs to the loop's thread;
what the disk's thread works with it opens itself.
"""

from itertools import islice
from typing import Protocol

from jsctl.broker.store.segments.patient_file import PatientFile
from jsctl.broker.store.segments.segment import Segment

CLOSED_AT_ONCE = 16
LOOKED_AT = 64
"""Those that cannot be closed are passed over, so many at most."""


class Closer(Protocol):
    """A store's segments."""

    def is_needed(self, segment: Segment) -> bool:
        """Whether its file has to stay open."""

    def close_file(self, segment: Segment) -> None:
        """Close a file until it is needed."""


class OpenFiles:
    """In the order in which they were opened."""

    def __init__(self) -> None:
        self._closers: dict[Segment, Closer] = {}

    def __len__(self) -> int:
        return len(self._closers)

    def opened(self, segment: Segment, closer: Closer) -> None:
        """A segment has a file."""
        self._closers[segment] = closer

    def closed(self, segment: Segment) -> None:
        """It has none any more."""
        self._closers.pop(segment, None)

    def relieve(self, needed: Segment) -> None:
        """Close some of those that are not needed in this moment."""
        count = 0
        for one in list(islice(self._closers, LOOKED_AT)):
            if count == CLOSED_AT_ONCE:
                return
            if one is needed or self._closers[one].is_needed(one):
                self._closers[one] = self._closers.pop(one)
            else:
                self._closers[one].close_file(one)
                count += 1


def waits_for_room(segment: Segment) -> bool:
    """Whether some of it is in memory only, as there is no room."""
    return isinstance(segment.file, PatientFile) and segment.file.is_waiting
