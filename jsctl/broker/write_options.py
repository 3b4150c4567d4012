"""How long what is written to a connection may take, and what happens then."""

from enum import Enum

from jsctl.dataclass import dataclass

DEADLINE_NS = 10_000_000_000


class WriteTimeout(Enum):
    """What happens to a connection whose write deadline passed."""

    DEFAULT = "default"
    """To clients as CLOSE, to other servers as RETRY."""
    CLOSE = "close"
    """It ends if not all was sent that waited when the deadline began."""
    RETRY = "retry"
    """It ends if nothing at all was sent."""

    @property
    def told(self) -> str:
        """As reports have it."""
        return "" if self is WriteTimeout.DEFAULT else self.value


@dataclass(frozen=True, slots=True)
class WriteLimit:
    """What counts for the connections of a kind."""

    deadline_ns: int = DEADLINE_NS
    whole: bool = True
    """Whether all that waits has to be sent in that time, or at least something."""

    @staticmethod
    def of_clients(deadline_ns: int, timeout: WriteTimeout) -> "WriteLimit":
        """Without a deadline ten seconds count."""
        whole = timeout is not WriteTimeout.RETRY
        return WriteLimit(deadline_ns if deadline_ns > 0 else DEADLINE_NS, whole)

    def of_servers(self, deadline_ns: int, timeout: WriteTimeout) -> "WriteLimit":
        """Without a deadline of their own that of clients counts."""
        whole = timeout is WriteTimeout.CLOSE
        return WriteLimit(deadline_ns if deadline_ns > 0 else self.deadline_ns, whole)
