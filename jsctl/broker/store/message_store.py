"""The store of a file stream: making it durable, and keeping its files tidy.

Appends are not synced: the caller's log is. A checkpoint job syncs segments, says how far in the
`durable` file, saves the index now and then, rewrites segments that are mostly dead, and removes
dead ones. Opening is in `opened_store`.
"""

from jsctl.broker.ports import Disk
from jsctl.broker.store.checkpoint import CheckpointJob, Compaction, Durable, encode_index
from jsctl.broker.store.opened_store import OpenedStore
from jsctl.broker.store.segmented import StoreOptions
from jsctl.broker.store.stream_store import StoreJob

_INDEX_CHANGES_MIN = 50_000
_COMPACTIONS_MAX = 2


class MessageStore(OpenedStore):
    """Messages of one stream in the files of one directory."""

    _job: CheckpointJob | None = None

    @staticmethod
    def open(disk: Disk, directory: str, options: StoreOptions | None = None) -> "MessageStore":
        """Open or create a store. Raises DiskError, DiskFull."""
        # What is in it counts with the first checkpoint only, which makes its name durable.
        disk.make_directory(directory, durable=False)
        store = MessageStore(disk, directory, options or StoreOptions())
        store._recover()
        return store

    # Durability

    def durable_mark(self) -> int:
        """Up to here a restart finds everything without the caller's log."""
        return self._durable.mark if self._durable else 0

    def checkpoint(self, index: bool = False) -> StoreJob | None:
        """Work that makes everything up to now durable; None if it is.

        Only one at a time: the caller reports a job `done` before it asks for the next one.
        The index is saved when enough has changed, or always with `index` (before closing).
        """
        # A None for a running job would be taken for "durable", and the log be let go of.
        assert self._job is None, "a checkpoint while another one runs"
        compactions = self._compactions()
        wants_index = self._wants_index(index)
        durable = self._durable
        if (
            durable
            and durable.mark == self._mark
            and not (self._unsynced or compactions or self._doomed or wants_index)
        ):
            return None
        newest = self._segments[-1]
        self._job = CheckpointJob(
            disk=self._disk,
            directory=self._directory,
            durable=Durable(
                durable.generation + 1 if durable else 1,
                newest.number,
                newest.size,
                self._mark,
                self._first,
                self._last,
                self._last_time,
            ),
            unsynced=sorted(self._unsynced),
            compactions=compactions,
            index=self._encode_index() if wants_index else None,
            doomed=self._doomed,
        )
        self._unsynced, self._doomed = set(), []
        if wants_index:
            self._changes = 0
        return self._job

    def done(self, job: StoreJob) -> None:
        """A job has been run without an error."""
        assert job is self._job, "one job at a time"
        self._durable = self._job.durable
        for one in self._job.compactions:
            self._replace(one)
        self._job = None

    def failed(self, job: StoreJob) -> None:
        """A job ended with an error other than SyncFailed: its work is done by a later one."""
        assert job is self._job, "one job at a time"
        alive = {one.number for one in self._segments}
        self._unsynced |= alive.intersection(self._job.unsynced)
        self._doomed += self._job.doomed
        for one in self._job.compactions:
            self._replace(one)
        self._job = None

    def close(self) -> None:
        """Release files; nothing is synced. Not while a job is running."""
        for segment in list(self._open):
            self._close_file(segment)

    def delete(self) -> None:
        """Remove the directory."""
        self.close()
        self._disk.remove_tree(self._directory)

    def _wants_index(self, forced: bool) -> bool:
        if self._lost:
            return False
        many = self._changes >= max(_INDEX_CHANGES_MIN, self._messages // 2)
        return many or (forced and self._changes > 0)

    def _encode_index(self) -> bytes:
        state = self._bytes.to_bytes(8, "little") + self.bounds(0).encode()
        live = self._index.live
        return encode_index(
            state, self._segments, ((subject, live(subject)) for subject in self._index)
        )

    def _compactions(self) -> list[Compaction]:
        """Give up dead segments, and choose those that are mostly dead to be rewritten."""
        chosen: list[Compaction] = []
        for segment in self._segments[:-1]:
            live = self._live_of(segment)
            if not live:
                self._doom(segment)
            elif (segment.erase or live * 2 < segment.count) and len(chosen) < _COMPACTIONS_MAX:
                seqs = self._live(segment.first_seq, segment.last_seq, live)
                if not any(seq in self._lost for seq in seqs):
                    chosen.append(Compaction(segment.number, segment.size, seqs))
        return chosen

    def _replace(self, one: Compaction) -> None:
        made = one.made
        if made is None:
            return
        known = next((s for s in self._segments if s.number == one.number), None)
        if made.file is not None:
            made.file.close()
            made.file = None
        if known is None:
            # It died while it was rewritten: the new file has to go as well.
            self._doomed.append(one.number)
            return
        self._close_file(known)
        at = self._segments.index(known)
        self._segments[at] = made
        self._firsts[at] = made.first_seq
        self._chunk = (0, 0, b"")
        if known in self._tables:
            self._tables.remove(known)
        self._changes += 1


__all__ = ["MessageStore", "StoreOptions"]
