"""A stream as it lies on this server: its state in a small file, its messages in a store beside it.

Stores are numbered, and the file says which one counts: a state that is received from another
replica is built in a new one, and takes the place of the old when it is durable.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import field

from jsctl.api.words import Storage
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.replica_files import ReplicaFiles
from jsctl.broker.assets.replicas.stores import StreamStores
from jsctl.broker.errors import DiskFull, ProtocolError
from jsctl.broker.jetstream.meta.assignments import StreamAssignment
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.replication.disk_jobs import NothingToKeep, SaveStoreAndState
from jsctl.broker.replication.group import SyncJob
from jsctl.broker.replication.state_file import LoadedState
from jsctl.broker.replication.state_import import Joiner, pieces
from jsctl.broker.store.checkpoint import Witness
from jsctl.broker.turn import LogLevel
from jsctl.dataclass import dataclass

_NUMBER = struct.Struct("<I")


def split_snapshot(snapshot: bytes) -> tuple[int, bytes]:
    """(store number, stream snapshot) of a state file."""
    number: int = _NUMBER.unpack_from(snapshot)[0]
    return number, snapshot[_NUMBER.size :]


@dataclass(slots=True)
class StoredStream:
    """The state in use, and how it becomes durable, is handed on, and is replaced."""

    context: ReplicaContext
    stream: Stream
    stores: StreamStores
    files: ReplicaFiles
    number: int
    """Of the store in use."""
    _newest_number: int = 0

    @staticmethod
    def load(
        context: ReplicaContext, directory: str, assignment: StreamAssignment, loaded: LoadedState
    ) -> "StoredStream":
        """What is in a directory; an empty stream if nothing is. Raises DiskError, Damaged."""
        volatile = assignment.config.storage is Storage.MEMORY
        stores = StreamStores(context.disk, directory, volatile, context.stores)
        files = ReplicaFiles.behind(context.disk, directory, loaded.state)
        number, snapshot = 0, b""
        if loaded.state is not None and not volatile:
            number, snapshot = split_snapshot(loaded.state.snapshot)
        if not loaded.damage and not loaded.is_new:
            stores.keep_only(number)
        witness = None
        if snapshot:
            # A state is written behind the store's checkpoint.
            known = Stream.bounds_of(snapshot)
            witness = Witness(known.first_seq, known.last_seq)
        store = stores.open(number, witness)
        account = assignment.account
        for damage in store.damage:
            where = f"Stream '{account} > {assignment.name}'"
            context.log(LogLevel.ERROR, f"{where}: damage found in its store: {damage}")
        stream = Stream(account, assignment.config, assignment.created_ns, store)
        if snapshot:
            stream.restore(snapshot)
        stream.chained.started()
        newest = 0 if loaded.is_new else stores.newest()
        return StoredStream(context, stream, stores, files, number, newest)

    @property
    def overtaken(self) -> bool:
        """Whether a newer store is there than the one in use: who spoke of that may be damaged."""
        return self.number != self._newest_number

    @property
    def forgets_removals(self) -> bool:
        """Whether messages may be here that were removed: those who told of that are damaged, and
        there are not as many as the state says."""
        store, known = self.stream.store, self.stream.bounds
        told = None if known is None else (known.messages, known.last_seq)
        return store.forgets_removals and told != (store.retained_messages, store.last_seq)

    def anew(self, assignment: StreamAssignment) -> "StoredStream":
        """An empty stream in the place of this one. What is here stays until the new one is
        durable, and a start comes behind that."""
        self.context.log(
            LogLevel.ERROR,
            f"Stream '{assignment.account} > {assignment.name}': what was removed is damaged on"
            " this server; the stream is fetched from a peer that has it",
        )
        self.close()
        number = self._newest_number + 1
        store = self.stores.open(number)
        stream = Stream(assignment.account, assignment.config, assignment.created_ns, store)
        return StoredStream(self.context, stream, self.stores, self.files, number, number)

    @property
    def volatile(self) -> bool:
        """Only memory holds the messages."""
        return self.stores.volatile

    # Durability

    def checkpoint(self, index: int, term: int, members: bytes) -> SyncJob | None:
        """Sync the store and write the small state beside it; None when there is nothing new."""
        if not self.files.is_due(index):
            return None
        if self.volatile:
            return NothingToKeep(index)
        if not self.stream.store.find_room():
            # The log keeps everything until there is room, and this is due as it was.
            self.files.overtaken()
            return None
        return self.job(self.stream, self.number, index, term, members)

    def job(
        self, stream: Stream, number: int, index: int, term: int, members: bytes
    ) -> SaveStoreAndState:
        """The job that makes a stream's state and its store durable."""
        assert not self.volatile, "a file would outlive what only memory holds"
        snapshot = _NUMBER.pack(number), *stream.snapshot_pieces()
        write = self.files.write(index, term, members, *snapshot)
        return SaveStoreAndState(stream.store, stream.store.checkpoint(), write)

    def checkpointed(self, job: SyncJob) -> None:
        """The store may forget what it kept for the job, unless another one took its place."""
        store = self.stream.store
        if isinstance(job, SaveStoreAndState) and job.store_job is not None and job.store is store:
            store.done(job.store_job)

    # Transfers

    def export(self) -> Iterator[bytes]:
        """The whole state: the small one first, then the store's chunks."""
        return pieces(self._blobs())

    def _blobs(self) -> Iterator[bytes]:
        yield self.stream.snapshot()
        yield from self.stream.store.export_chunks()

    def importer(
        self, assignment: StreamAssignment, replaced: Callable[[], None]
    ) -> "StreamImporter":
        """Take the state of another replica into a store of its own. `replaced` is called when it
        is in use."""
        self._newest_number = max(self._newest_number, self.number) + 1
        return StreamImporter(self, assignment, self._newest_number, replaced)

    def discard(self, number: int) -> None:
        """Delete a store that is not in use."""
        assert number != self.number, "the store in use"
        if not self.volatile:
            self.context.groups.removals.discard(self.context.disk, self.stores.path(number))

    def replace(self, stream: Stream, number: int) -> None:
        """Use a received state from now on."""
        assert stream is not self.stream
        old, old_number = self.stream, self.number
        self.stream, self.number = stream, number
        old.store.close()
        self.discard(old_number)

    def close(self) -> None:
        """Release files; keep the data."""
        self.stream.store.close()

    def delete(self) -> None:
        """Remove the data."""
        self.stream.store.close()
        self.context.groups.removals.discard(self.context.disk, self.files.directory)


@dataclass(slots=True)
class StreamImporter:
    """Implements `group.ReplicaImporter`: a new store beside the one in use."""

    stored: StoredStream
    assignment: StreamAssignment
    number: int
    replaced: Callable[[], None]
    _joiner: Joiner = field(default_factory=Joiner)
    _stream: Stream | None = None
    _job: SaveStoreAndState | None = None
    _complete: bool = False

    def feed(self, chunk: bytes) -> None:
        """Take the next piece. Raises Damaged, ProtocolError, DiskError."""
        for blob in self._joiner.feed(chunk):
            if self._stream is None:
                self._begin(blob)
            elif self._complete:
                raise ProtocolError("a state transfer goes on behind its end")
            else:
                self._complete = self._stream.store.import_chunk(blob)

    def _begin(self, snapshot: bytes) -> None:
        made = self.assignment
        store = self.stored.stores.open(self.number)
        self._stream = Stream(made.account, made.config, made.created_ns, store)
        self._stream.restore(snapshot)

    def finish(self, index: int, term: int, members: bytes) -> SyncJob:
        """The job that makes it durable. Raises ProtocolError when pieces are missing."""
        self._joiner.finish()
        if self._stream is None or not self._complete:
            raise ProtocolError("a state transfer ended before its last part")
        if self.stored.volatile:
            return NothingToKeep(index)
        if not self._stream.store.find_room():
            raise DiskFull("no room for a state that is received")
        self._job = self.stored.job(self._stream, self.number, index, term, members)
        return self._job

    def switch(self) -> None:
        """Use it."""
        assert self._stream is not None and self._complete
        if self._job is not None and self._job.store_job is not None:
            # Else the store takes this job for running, and no checkpoint would sync it again.
            self._stream.store.done(self._job.store_job)
        self.stored.replace(self._stream, self.number)
        self.replaced()

    def abandon(self) -> None:
        """Remove what was built."""
        if self._stream is not None:
            self._stream.store.close()
        self.stored.discard(self.number)
