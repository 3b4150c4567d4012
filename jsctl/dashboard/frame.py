"""One frame: everything that a view draws from, as plain data."""

from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.model.snapshot import Snapshot
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Frame:
    """What there is to show at one moment, and how."""

    snapshot: Snapshot
    ink: Ink
    frozen: bool = False
    """Whether the picture stands still."""
    read_only: bool = False
    """Whether actions that change anything are absent."""
    web: bool = False
    """Whether a browser shows it: then this machine is not the operator's."""
    refresh_s: float = 1.0
    """Seconds between two ticks."""
    tasks: tuple[str, ...] = ()
    """What is being done and takes its time, in words."""
