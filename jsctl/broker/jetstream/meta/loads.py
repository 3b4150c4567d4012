"""How much each peer has been given: counted with each change, whatever there is."""

from collections.abc import Mapping

from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment, StreamAssignment
from jsctl.dataclass import dataclass, replace

Made = StreamAssignment | ConsumerAssignment | None


@dataclass(slots=True)
class PeerLoad:
    """What one server holds, or is to hold. Reserved bytes are those that configs name."""

    streams: int = 0
    replicated: int = 0
    """Streams and consumers with more than one replica."""
    store_reserved: int = 0
    memory_reserved: int = 0


class Loads:
    """The load of every peer that was ever given something."""

    __slots__ = ("_peers",)

    def __init__(self, peers: Mapping[str, PeerLoad] | None = None) -> None:
        self._peers = {peer: replace(load) for peer, load in (peers or {}).items()}

    def of(self, peer: str) -> PeerLoad:
        """The load of one peer, not to be changed."""
        return self._peers.get(peer) or PeerLoad()

    def copy(self) -> "Loads":
        """Another one, to try changes on."""
        return Loads(self._peers)

    def change(self, before: Made, after: Made) -> None:
        """A stream or a consumer is made (`before` None), changed, or gone (`after` None)."""
        self._count(before, -1)
        self._count(after, 1)

    def release(self, stream: StreamAssignment) -> None:
        """What a stream reserves counts no longer."""
        self._reserve(stream, -1)

    def _count(self, made: Made, by: int) -> None:
        if made is None:
            return
        is_stream = isinstance(made, StreamAssignment)
        is_replicated = len(made.group.peers) > 1
        for peer in made.group.members:
            load = self._load(peer)
            load.streams += by * is_stream
            load.replicated += by * is_replicated
        if isinstance(made, StreamAssignment):
            self._reserve(made, by)

    def _reserve(self, made: StreamAssignment, by: int) -> None:
        size = max(made.config.max_bytes, 0) * by
        for peer in made.group.members if size else ():
            load = self._load(peer)
            if made.group.storage == "memory":
                load.memory_reserved += size
            else:
                load.store_reserved += size

    def _load(self, peer: str) -> PeerLoad:
        return self._peers.setdefault(peer, PeerLoad())
