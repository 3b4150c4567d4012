"""What a view needs of the application that shows it; the application is known by nothing else."""

from typing import Protocol

from jsctl.dashboard.connection.link import Link
from jsctl.dashboard.frame import Frame


class Host(Protocol):
    """Read by views at any time. What they want done they ask for by messages: see `requests`."""

    @property
    def frame(self) -> Frame:
        """What is to be drawn now."""

    @property
    def link(self) -> Link | None:
        """The present connection; another one after the operator chose another context."""
