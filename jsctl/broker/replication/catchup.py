"""Whole-state transfer to a replica whose next log entry the leader does not keep any more.

The leader sends its state as of one applied index in chunks, a window at a time; the follower
builds the state beside what it has, makes it durable, switches, and only then restarts its log
at that index. A transfer that breaks is started again from the beginning under a new number;
nothing half-built is ever used.
"""

from collections.abc import Iterator
from dataclasses import field

from jsctl.broker.peers.items import ChunkKind, StateAck, StateChunk
from jsctl.broker.replication.group import RaftGroup, Replica, ReplicaImporter, SyncJob
from jsctl.dataclass import dataclass

WINDOW_BYTES = 4 * 1024 * 1024
"""Sent and not yet acknowledged."""
STALL_NS = 3_000_000_000
"""A transfer without progress for this long is given up; raft asks for it again."""


@dataclass(slots=True)
class Sender:
    """The leader's side of one transfer."""

    group: RaftGroup
    peer: str
    transfer: int
    index: int
    term: int
    members: bytes
    chunks: Iterator[bytes]
    heard_ns: int
    sent: int = 0
    acked: int = 0
    started: bool = False
    ended: bool = False

    def pump(self) -> list[StateChunk]:
        """The next chunks, as far as the window allows."""
        out: list[StateChunk] = []
        while not self.ended and self.sent - self.acked < WINDOW_BYTES:
            payload = next(self.chunks, None)
            kind = ChunkKind.MORE if self.started else ChunkKind.FIRST
            if payload is None:
                self.ended = True
                if not self.started:
                    out.append(self._chunk(ChunkKind.FIRST, b""))
                kind, payload = ChunkKind.LAST, b""
            self.started = True
            out.append(self._chunk(kind, payload))
            self.sent += len(payload)
        return out

    def _chunk(self, kind: ChunkKind, payload: bytes) -> StateChunk:
        return StateChunk(
            self.group.key,
            self.transfer,
            kind,
            self.sent,
            self.index,
            self.term,
            self.members,
            payload,
        )

    def ack(self, ack: StateAck, now_ns: int) -> None:
        """The follower got further."""
        self.acked = max(self.acked, min(ack.offset, self.sent))
        self.heard_ns = now_ns


@dataclass(slots=True)
class Receiver:
    """The follower's side of one transfer."""

    transfer: int
    unit: Replica
    """Whom it is for."""
    importer: ReplicaImporter
    peer: str = ""
    """Who sends it."""
    heard_ns: int = 0
    offset: int = 0
    job: SyncJob | None = None
    chunk: StateChunk | None = field(default=None)
    """The last chunk, kept while its job runs."""

    def take(self, chunk: StateChunk) -> StateAck | None:
        """Use a chunk in order; the ack to send, None while the last one's job has to run."""
        if chunk.offset != self.offset or self.job is not None:
            return StateAck(chunk.key, chunk.transfer, self.offset, done=False)
        if chunk.payload:
            self.importer.feed(chunk.payload)
            self.offset += len(chunk.payload)
        if chunk.kind is not ChunkKind.LAST:
            return StateAck(chunk.key, chunk.transfer, self.offset, done=False)
        self.job = self.importer.finish(chunk.index, chunk.term, chunk.members)
        self.chunk = chunk
        return None
