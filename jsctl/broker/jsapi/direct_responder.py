"""Who owns the direct gets that a replica has captured; known before JetStream is loaded."""

from typing import TYPE_CHECKING, ClassVar

from jsctl.broker.interest.targets import Sink
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.broker.assets.replicas.listening import Listening
    from jsctl.broker.assets.replicas.stream_replica import StreamReplica


@dataclass(slots=True)
class DirectGetResponder:
    """One stream's direct gets; the owner of its sink."""

    replica: "StreamReplica"
    listening: "Listening"
    asked: str
    """The stream that is asked: a mirror answers for its origin as well."""
    doubtful: int = 0
    """The last entry of which a get waited to hear whether it is committed, and ..."""
    doubted_until_ns: int = 0
    """... until when gets wait for that one."""

    def doubts_like(self, other: "DirectGetResponder") -> None:
        """Take over what another one of the same replica waits to hear."""
        if other.doubtful >= self.doubtful:
            self.doubtful, self.doubted_until_ns = other.doubtful, other.doubted_until_ns


class ReplicaSink(Sink):
    """Captures what a replica of the stream itself is asked. One here is asked before those
    elsewhere: two ways between servers cost twice as much as the get."""

    __slots__ = ()

    nearest: ClassVar[bool] = True
